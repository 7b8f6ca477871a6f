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
#   ./run_all.sh use               PyTorch's FP32 products with and without the library (docs/use.md); --results
#   ./run_all.sh python 90 FILE    a Python program whose gemm_ladder.matmul() is this rung (docs/use.md): with NumPy on the
#                                  simulator, too; --with
#   ./run_all.sh compare A B       two results folders side by side, with what is outside the noise
#   ./run_all.sh docs              build the documentation site
#   ./run_all.sh words             check the language of all pages, or of those that are named: a report
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
#   --sim-gpu NAME     the GPU that it describes: h200, h100, b200, a100, rtx4090, rtx5090 or t4
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

usage_error() { say "run_all.sh: $*"; exit 2; }

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

# asks_for_help COMMAND WORD...: what comes after the rung that is to run, or after a program, is theirs.
asks_for_help() {
  local word after_value=
  for word in "${@:2}"; do
    case $word in
      --help | -h) return 0 ;;
      --sim-*) after_value=yes; continue ;;
      -*) ;;
      *) [[ $1 != @(run|sim) || ($1 == sim && $after_value) ]] || return 1 ;;
    esac
    after_value=
  done
  return 1
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

# configure: where that was not done, or not with this folder of --with; with `again` in any case.
configure() {
  local log=build/configure.log
  if [[ -z ${again:-} && -f build/build.ninja ]] && grep -qxF "LADDER_WITH:PATH=$with" build/CMakeCache.txt; then return; fi
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

# ---- what was asked for -------------------------------------------------------------------------------------------------

# carry_out COMMAND WORD...: tools/cli.py says what to set up, to build and to start.
carry_out() {
  local lines
  lines=$(python3 -S -m tools.cli "$caller" "$with" "$@") || exit
  eval "$lines"
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
if [[ $command == help ]]; then
  (($# <= 1)) || usage_error "help takes one sub-command, such as: help run"
  text=$(if (($#)); then help_of "$1"; else whole_help; fi)
  [[ -z $text ]] || { echo "$text"; exit; }
  command=$1  # there is no such sub-command
fi
need_python3
carry_out "$command" "$@"
