#!/usr/bin/env bash
# GEMM Ladder: the one entry.
#
#   ./run_all.sh                   build, check every rung, time the ladder and cuBLAS, write results/<gpu>/report.html; --sim,
#                                  --results, --with
#   ./run_all.sh --quick           the same with fewer sizes and rounds: about two minutes on a GPU. The first build comes on top:
#                                  about two minutes on 16 cores, about five on 2
#   ./run_all.sh test              every test that can run here; --fast, --with
#   ./run_all.sh run 06 M N K ...  build and run one rung (06b: a variant); --watch, --sim, --with. Its options: run 06 --help
#   ./run_all.sh new 90 my_idea --from 16   a rung of your own: a copy of 16 in kernels/local (docs/your_own_kernel.md); --with
#   ./run_all.sh exercise          the exercises: kernels with holes (docs/exercises.md)
#   ./run_all.sh exercise 1        yours, in kernels/local: builds and runs it, and says what is wrong; --watch, --solution, --with
#   ./run_all.sh list              every rung: number, name, kind, idea, types, instruction, architecture; --json, --with
#   ./run_all.sh diff 05 06        two rungs side by side: what changed, with registers and GFLOPS; 05 may be left out; --with
#   ./run_all.sh profile 06 M N K  Nsight Compute with the metrics that the chapters speak of; --type, --with
#   ./run_all.sh counts 06 M N K   what each source line of a rung did, counted by the simulator; --csv, --with
#   ./run_all.sh sim PROGRAM ...   run any CUDA program on the simulator; before PROGRAM: --sim-seed, --sim-gpu, --sim-counts,
#                                  --sim-checks
#   ./run_all.sh compare A B       two results folders side by side, with what is outside the noise
#   ./run_all.sh docs              build the documentation site
#   ./run_all.sh help              this text; help run, or run --help: the part on run
#
# Options of those that name them:
#   --results DIR      a folder in place of results/<gpu>
#   --sim              use the simulator where there is a GPU, too
#   --with DIR         every NN_name.cu in DIR is a rung, too, as those in kernels/local are (kernels/local/README.md)
#   --fast             those that take less than three minutes together, once the tree is built
#   --watch            again whenever the file is saved, until Ctrl-C
#   --solution         the answer as a diff
#   --json             all that the rungs state about themselves, for scripts
#   --type TYPE        of the operands, such as tf32; without it the rung's first
#   --csv FILE         the counts of every line, into a file
#   --sim-seed N       of the order in which the simulator's warps run
#   --sim-gpu NAME     the GPU that it describes: h200, h100, a100, rtx4090, rtx5090 or t4
#   --sim-counts FILE  what each source line did, as CSV
#   --sim-checks LIST  what its checks do: race=warn,exited=off or all=warn
#
# Interrupted, the first two commands keep what was measured, and the same command goes on from there.
# With no GPU, or with --sim, they and run use the simulator: the same programs, executed on the CPU at small sizes, checked
# and counted, not timed. The report in results/simulator shows the counters and, labelled as such, a real GPU's recorded results.
# What is missing on the machine is set up inside the checkout (tools/setup.sh): .deps, .venv and build hold it all.
set -euo pipefail
caller=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=tools/setup.sh
source tools/setup.sh
export NO_MKDOCS_2_WARNING=1  # Material's advertisement of its successor
export MPLCONFIGDIR=${MPLCONFIGDIR:-$PWD/.deps/matplotlib}  # its cache of fonts: a home may be read-only

# What the reader can open is named as seen from where they are.
here=$PWD/
[[ ! $caller -ef . ]] || here=

usage_error() { say "run_all.sh: $*"; exit 2; }
has_gpu() { nvidia-smi --list-gpus 2>/dev/null | grep -q '^GPU'; }

# door WHAT FILE: the last words of a sub-command that made a file for the reader.
door() {
  [[ -s $2 ]] || die "$2 was not written"
  echo "$1: $2"
}

# ---- help ------------------------------------------------------------------------------------------------------------

whole_help() { sed -n '2,/^set/ { /^set/d; s/^# \{0,1\}//; p }' run_all.sh; }

# help_of COMMAND: its lines of that text, and those of the options that they name. --quick stands for the whole ladder.
help_of() {
  whole_help | awk -v command="$1" '
    /^  \.\/run_all\.sh/ {
      word = match($0, /\.sh [^ ]+/) ? substr($0, RSTART + 4, RLENGTH - 4) : "--quick"
      mine = word == command
    }
    /^  --/ { mine = said ~ ("(^|[^a-z-])" $1 "([^a-z-]|$)"); if (mine && !options++) print "" }
    !/^  / { mine = 0 }
    mine { print; if (!options) said = said " " $0 }'
}

# asks_for_help COMMAND WORD...: what comes after the rung that is to run is the rung's, and sim looks for itself.
asks_for_help() {
  local word
  [[ $1 != sim ]] || return 1
  for word in "${@:2}"; do
    case $word in
      --help | -h) return 0 ;;
      -*) ;;
      *) [[ $1 != run ]] || return 1 ;;
    esac
  done
  return 1
}

# unknown WHAT WORD LIST CANDIDATE...: names the candidate that is like WORD; where none is, the command that lists all.
unknown() {
  local near
  near=$(python3 tools/nearest.py "$2" "${@:4}" 2>/dev/null || :)
  usage_error "$1 '$2'${near:-; ./run_all.sh $3 lists all}"
}

# unknown_option COMMAND WORD [BEFORE]
unknown_option() {
  local options
  mapfile -t options < <(help_of "$1" | grep -oE -e '--[a-z-]+' | sort -u)
  unknown "${3:-}there is no option" "$2" "$1 --help" "${options[@]}" --help
}

unknown_command() {
  local commands
  mapfile -t commands < <(whole_help | sed -n 's|^  \./run_all\.sh \([a-z]*\) .*|\1|p' | sort -u)
  unknown "there is no sub-command" "$1" help "${commands[@]}"
}

# ---- the build ---------------------------------------------------------------------------------------------------------

# Fails with the line with which tools/rungs.cmake refuses a file; where there is none, with what the compiler said (of what
# FAILED, Ninja prints the command first); where that is nothing, too, with the whole log.
build_failed() {
  local log=$1 what=$2 refused said
  refused=$(sed -n '/^ *kernels: /{s///p;q}' "$log")
  [[ -z $refused ]] || usage_error "$refused"
  said=$(sed -n '/^FAILED: /,$ { /^FAILED: /{n;d}; /^\[[0-9]/d; /^ninja: /d; p }' "$log")
  said=${said:-$(<"$log")}
  say "${said//"$PWD/"/}"
  die "$what failed (the whole log: $log)"
}

# configure [again]: where that was not done, or not with this folder of --with.
configure() {
  local log=build/configure.log
  if [[ -z ${1:-} && -f build/build.ninja ]] && grep -qxF "LADDER_WITH:PATH=$with" build/CMakeCache.txt; then return; fi
  say "build: configuring"
  mkdir -p build
  cmake --preset default -D LADDER_WITH:PATH="$with" >"$log" 2>&1 && return
  rm -f build/build.ninja  # it would be that of other folders
  build_failed "$log" "configuring the build"
}

# build TARGET...: progress is shown in a first build, which takes minutes; a later one is quiet unless it fails.
build() {
  need_build
  configure
  local log=build/last_build.log
  if [[ -f build/.ninja_log ]]; then
    cmake --build build --target "$@" >"$log" 2>&1 || build_failed "$log" "the build of $*"
  else
    say "build: $* for the first time"
    cmake --build build --target "$@" >&2 || die "the build of $* failed"
  fi
}

# file_of NUMBER: 06, 6, bank_conflict_free and 06_bank_conflict_free all mean kernels/06_bank_conflict_free.cu. A rung's name
# is that of its file, so nothing need be built to find it.
file_of() {
  local word=$1 file stem words=()
  [[ $word =~ ^[0-9][a-z]?$ ]] && word=0$word
  for file in kernels/*.cu kernels/local/*.cu ${with:+"$with"/*.cu}; do
    stem=$(basename "$file" .cu)
    if [[ $word == "$stem" || $word == "${stem%%_*}" || $word == "${stem#*_}" ]]; then echo "$file"; return; fi
    [[ $stem == '*' ]] || words+=("${stem%%_*}" "$stem")
  done
  unknown "there is no rung" "$word" list "${words[@]}"
}

stem_of() {
  local file
  file=$(file_of "$1") || exit
  basename "$file" .cu
}

# ---- the whole ladder ------------------------------------------------------------------------------------------------

# step TITLE COMMAND...: a wrong result is remembered and told at the end; Ctrl-C and failures end the run.
wrong=0
published=2048x2048x2048,4096x4096x4096,8192x8192x8192
step() {
  local status=0
  say "== $1"
  shift
  "$@" || status=$?
  case $status in
    0 | 77) ;;  # 77: some shape or rung does not apply; the rows say why
    1) wrong=1 ;;
    130) interrupted ;;
    *) die "stopped by '$1' (status $status)" ;;
  esac
}

interrupted() {
  say "run_all.sh: interrupted; what was measured is in $results, and the same command goes on from there"
  exit 130
}

# Keeps a run that ended, or one of other sources; one that was interrupted goes on.
prepare_results() {
  local mode=$1 state recorded archive file
  state="$mode $(sed -n 's/.*COMMIT "\(.*\)".*/\1/p' build/generated/build_info.h)"
  recorded=$(sed -n 's/.*"gpu": *"\([^"]*\)".*/\1/p' "$results/environment.json" 2>/dev/null || true)
  [[ -z $recorded || $recorded == "$gpu" ]] ||
    usage_error "$results holds results of $recorded, and this is $gpu: name another folder with --results"
  mkdir -p "$results"
  if [[ -f $results/run.txt && $(<"$results/run.txt") == "$state" ]]; then
    say "going on with the interrupted run in $results"
  elif [[ -f $results/run.txt ]]; then
    archive=$results/archive/$(date -u +%Y%m%dT%H%M%SZ)
    mkdir -p "$archive"
    for file in {ladder,samples,ceilings,check,steady,waves,counts}.csv {rungs,environment}.json run.txt report.html summary.md share.png plots; do
      [[ ! -e $results/$file ]] || mv "$results/$file" "$archive"
    done
    say "the earlier results are now in $archive"
  fi
  echo "$state" >"$results/run.txt"
  build/bin/ladder --list --json >"$results/rungs.json"
}

ladder() { build/bin/ladder --resume --environment "$results/environment.json" --ceilings "$results/ceilings.csv" "$@"; }

# The types of operands, from the facts that the results keep.
types() { python3 -c 'import json, sys; print(*(t["name"] for t in json.load(sys.stdin)["types"]))' <"$results/rungs.json"; }

# What is published is the median of five sittings, spread over the run. Each goes once through every rung and type, in an
# order of its own; --resume keeps those before.
sittings=5 sitting=0
sit_published() {
  local type
  sitting=$((sitting + 1))
  for type in $(types); do
    step "sitting $sitting of $sittings, $type" \
      ladder --type "$type" --shapes "$published" --sittings "$sitting/$sittings" "${times[@]}"
  done
}

measure() {
  local mode=$1 type times=(--csv "$results/ladder.csv" --samples-csv "$results/samples.csv")
  local odd=(--check-only --shapes tests/shapes/odd.txt --ld-pad align --csv "$results/check.csv")
  trap interrupted INT
  if [[ ! -f $results/ceilings.csv ]]; then
    step "what this GPU can do" build/bin/ceilings --csv "$results/ceilings.csv"
  fi
  step "check" ladder "${odd[@]}"
  if [[ $mode == quick ]]; then
    step "time" ladder --shapes 1024x1024x1024,2048x2048x2048,4096x4096x4096 --rounds 10 "${times[@]}"
    finish
    return
  fi
  for type in $(types); do
    step "check with alpha and beta, $type" ladder --type "$type" "${odd[@]}" --alpha -1.5 --beta 0.75
  done
  for type in $(types); do
    sit_published
    step "time, $type" ladder --type "$type" --shapes square "${times[@]}"
  done
  while ((sitting < sittings)); do sit_published; done
  step "time" ladder --shapes llm,tails,skinny "${times[@]}"  # each rung in the first of its types
  step "time, steady" ladder --shapes 4096x4096x4096,8192x8192x8192 --protocol steady --csv "$results/steady.csv"
  step "time, waves" python3 bench/sweep_waves.py --csv "$results/waves.csv" --ceilings "$results/ceilings.csv"
  finish
}

finish() {
  step "report" python3 -m plots report --results "$results" --out "$results"
  echo "finished $(date -u +%FT%TZ)" >"$results/run.txt"
  ((!wrong)) || say "run_all.sh: there are wrong results: look for status 'wrong' or 'failed' in $results/*.csv"
  door "Report" "$results/report.html"
  [[ ! -f $results/share.png ]] || door "To share" "$results/share.png"
  return "$wrong"
}

# The ladder on the simulator: what it says of itself in every row is its gpu, as a GPU's name is.
simulate() {
  local mode=$1 sizes=256x256x256,512x512x512
  [[ $mode == quick ]] && sizes=256x256x256
  trap interrupted INT
  simulated_ladder() { build/bin/ladder --sim --resume --environment "$results/environment.json" "$@"; }
  step "check" simulated_ladder --shapes tests/shapes/small.txt --ld-pad align --csv "$results/check.csv"
  if [[ $mode == full ]]; then
    step "check with alpha and beta" simulated_ladder --shapes tests/shapes/small.txt --ld-pad align \
      --alpha -1.5 --beta 0.75 --csv "$results/check.csv"
  fi
  step "count" simulated_ladder --shapes "$sizes" --csv "$results/counts.csv"
  finish
}

# With neither GPU nor simulator: the recorded results, as a report that says which GPU and date they are from.
show_recorded() {
  local folder out shown=()
  for folder in bench/recorded/*/; do
    [[ -f $folder/ladder.csv ]] || continue
    out=${here}results/recorded/$(basename "$folder")
    step "report of $folder" python3 -m plots report --recorded --results "$folder" --out "$out"
    shown+=("$out/report.html")
  done
  ((${#shown[@]})) || say "no results are recorded in bench/recorded"
  for out in ${shown[@]+"${shown[@]}"}; do door "Report of recorded results" "$out"; done
}

whole_ladder() {
  local mode=full sim=
  results=
  while (($#)); do
    case $1 in
      --quick) mode=quick ;;
      --sim) sim=yes ;;
      --results)
        [[ -n ${2:-} ]] || usage_error "--results takes a folder"
        results=$2
        [[ $results == /* ]] || results=$caller/$results
        shift ;;
      *) unknown_option --quick "$1" ;;
    esac
    shift
  done
  build ladder ceilings baselines ${sim:+simulator}
  need_python report
  if [[ -z $sim ]] && ! has_gpu; then
    sim=yes
    say "no GPU here (nvidia-smi lists none): the ladder runs on the simulator, checked and counted, not timed"
  fi
  if [[ -n $sim && ! -f build/sim/libcudart.so.13 ]]; then
    say "the simulator is not built (cmake --preset default says why): recorded results follow"
    show_recorded
    return
  fi
  if [[ -n $sim ]]; then
    gpu="Simulated NVIDIA H200 (PTX on the CPU)"
    results=${results:-${here}results/simulator}
    prepare_results "$mode"
    simulate "$mode"
    return
  fi
  export CUDA_DEVICE_ORDER=PCI_BUS_ID  # so that CUDA and nvidia-smi number the GPUs alike
  gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader --id="${CUDA_VISIBLE_DEVICES:-0}" | head -n 1)
  results=${results:-${here}results/$(tr 'A-Z ' 'a-z-' <<<"$gpu")}
  prepare_results "$mode"
  measure "$mode"
}

# ---- the other sub-commands ------------------------------------------------------------------------------------------

run_rung() {
  local argument arguments=() watch='' file stem
  for argument in "$@"; do
    if [[ $argument == --watch ]]; then watch=yes; else arguments+=("$argument"); fi
  done
  set -- ${arguments[@]+"${arguments[@]}"}
  (($#)) || usage_error "run takes a rung and its arguments, such as: run 06 4096 4096 4096"
  file=$(file_of "$1")
  stem=$(basename "$file" .cu)
  if [[ $watch ]]; then
    need_python3
    exec python3 -m tools.watch "$file" ./run_all.sh ${with:+--with "$with"} run "$stem" "${@:2}"
  fi
  if [[ " ${*:2} " == *" --sim"* ]]; then build "$stem" simulator; else build "$stem"; fi
  exec "build/bin/$stem" "${@:2}"
}

new_rung() {
  local words=() from='' source
  while (($#)); do
    if [[ $1 == --from && $# -gt 1 ]]; then from=$2; shift; else words+=("$1"); fi
    shift
  done
  [[ ${#words[@]} == 2 && $from ]] || usage_error "new takes a number, a name and --from, such as: new 90 my_idea --from 16"
  source=$(file_of "$from")
  need_python3
  exec python3 -m tools.new_rung "${words[@]}" "$source" ${with:+"$with"}
}

run_exercise() {
  local argument number='' how='' file stem rung
  for argument in "$@"; do
    case $argument in
      --watch | --solution) how=$argument ;;
      -*) unknown_option exercise "$argument" "exercise: " ;;
      *) [[ -z $number ]] || usage_error "exercise takes one number, such as: exercise 1"; number=$argument ;;
    esac
  done
  need_python3
  [[ $number ]] || exec python3 -m tools.exercise list
  file=$(python3 -m tools.exercise copy "$number" ${with:+"$with"}) || exit
  [[ $how != --solution ]] || exec python3 -m tools.exercise solution "$number" "$file"
  [[ $how != --watch ]] || exec python3 -m tools.watch "$file" ./run_all.sh ${with:+--with "$with"} exercise "$number"
  stem=$(basename "$file" .cu)
  rung=$(stem_of "${stem%%x_*}")
  build "$rung" "$stem" simulator
  exec python3 -m tools.exercise check "$number" "$file"
}

diff_rungs() {
  (($# == 1 || $# == 2)) || usage_error "diff takes two rungs, such as: diff 05 06, or one and compares it with its predecessor"
  local from to
  to=$(stem_of "${!#}")
  if (($# == 2)); then
    from=$(stem_of "$1")
  else
    build "$to"
    need_python3
    from=$(python3 -m plots.data.rungs predecessor "$to")
    [[ $from ]] || usage_error "$to states no predecessor: name the rung to compare it with, such as: diff 01 $1"
    from=$(stem_of "$from")
  fi
  build "$from" "$to"
  need_sass
  need_python report
  exec python3 -m tools.diff "$from" "$to"
}

profile_rung() {
  (($# == 1 || $# == 4)) || [[ $# == 6 && $5 == --type ]] ||
    usage_error "profile takes a rung, M N K (4096 4096 4096 without) and --type, such as: profile 14 4096 4096 4096 --type tf32"
  local stem
  stem=$(stem_of "$1")
  have ncu || die "profile needs Nsight Compute: no 'ncu' on the PATH (developer.nvidia.com/nsight-compute)"
  has_gpu || { say "run_all.sh: profile needs a GPU, and nvidia-smi lists none"; exit 77; }
  build "$stem"
  need_python report
  exec python3 -m tools.profile "$stem" "${@:2}"
}

count_rung() {
  (($#)) || usage_error "counts takes a rung and its arguments, such as: counts 06 256 256 256"
  local stem
  stem=$(stem_of "$1")
  build "$stem" simulator
  need_python report
  exec python3 -m tools.counts "$stem" "${@:2}"
}

# The program runs where the caller is, and gets its arguments as they are. Each option is a variable of the simulator's.
sim_program() {
  local program option
  while [[ ${1:-} == -* ]]; do
    [[ $1 != @(--help|-h) ]] || { help_of sim; exit; }
    option=${1#--sim-}
    [[ $1 == --sim-@(seed|gpu|counts|checks) ]] || unknown_option sim "$1" "sim: "
    [[ -n ${2:-} ]] || usage_error "sim: $1 takes a value"
    export "GEMM_LADDER_SIM_${option^^}=$2"
    shift 2
  done
  (($#)) || usage_error "sim takes a program and its arguments, such as: sim ./vector_add 1024"
  program=$1
  # shellcheck disable=SC2088  # a ~ that the shell has left as it is, in quotes
  [[ $program == "~/"* ]] && program=$HOME/${program#"~/"}
  [[ $program == /* ]] || program=$caller/$program
  need_python3
  python3 tools/sim_program.py "$program"
  [[ -f build/sim/libcudart.so.13 && -f build/sim/libcuda.so.1 ]] || build simulator
  [[ -f build/sim/libcudart.so.13 ]] || { say "run_all.sh: sim: the simulator is not built (cmake --preset default says why)"; exit 77; }
  export LD_LIBRARY_PATH=$PWD/build/sim${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  cd "$caller"
  exec "$program" "${@:2}"
}

list_rungs() { build ladder; exec build/bin/ladder --list "$@"; }

# What cannot be set up (a GPU node without a network) is named, and the tests that do without it are run.
run_tests() {
  (($# == 0)) || [[ $* == --fast ]] || usage_error "test takes no argument but --fast, got '$*'"
  need_python3
  optional=yes need_googletest || :
  need_build
  configure again
  build all
  optional=yes need_sass || :
  optional=yes need_python test docs || :
  exec python3 -m tools.test "$@"
}

compare_results() {
  (($# == 2)) || usage_error "compare takes two results folders, such as: compare results/before results/after"
  local folder folders=()
  for folder in "$@"; do
    [[ $folder == /* ]] || folder=$caller/$folder
    folders+=("$folder")
  done
  need_python report
  exec python3 -m plots compare "${folders[@]}"
}

build_docs() {
  (($# == 0)) || usage_error "docs takes no arguments, got '$*'"
  need_python docs
  mkdocs build --quiet --strict
  door "Documentation" "$here$(sed -n 's/^site_dir: *//p' mkdocs.yml)/index.html"
}

show_help() {
  (($# <= 1)) || usage_error "help takes one sub-command, such as: help run"
  local text
  text=$(if (($#)); then help_of "$1"; else whole_help; fi)
  [[ $text ]] || unknown_command "$1"
  echo "$text"
}

with=
arguments=()
while (($#)); do
  if [[ $1 == sim && ${#arguments[@]} == 0 ]]; then  # what comes after the program is the program's
    arguments=("$@")
    break
  elif [[ $1 == --with ]]; then
    with=$([[ -n ${2:-} ]] && cd "$caller" && cd -- "$2" 2>/dev/null && pwd) || usage_error "--with takes a folder, got '${2:-}'"
    shift
  else
    arguments+=("$1")
  fi
  shift
done
set -- ${arguments[@]+"${arguments[@]}"}

case ${1:-} in
  --help | -h) command=help; shift ;;
  "" | -*) command=--quick ;;  # without it, too: the whole ladder
  *) command=$1; shift ;;
esac
if asks_for_help "$command" "$@"; then set -- "$command"; command=help; fi

case $command in
  --quick) whole_ladder "$@" ;;
  test) run_tests "$@" ;;
  run) run_rung "$@" ;;
  exercise) run_exercise "$@" ;;
  new) new_rung "$@" ;;
  list) list_rungs "$@" ;;
  diff) diff_rungs "$@" ;;
  profile) profile_rung "$@" ;;
  counts) count_rung "$@" ;;
  sim) sim_program "$@" ;;
  docs) build_docs "$@" ;;
  compare) compare_results "$@" ;;
  help) show_help "$@" ;;
  *) unknown_command "$command" ;;
esac
