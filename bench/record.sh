#!/usr/bin/env bash
# Records this GPU in bench/recorded/<gpu>: bench/record.sh [--to DIR] [--resume] [STEP...], all steps without one.
#
#   published  every rung and type at 2048, 4096 and 8192 cubed, in five sittings   ladder.csv ceilings.csv environment.json
#   shapes     the other squares, and the families llm, tails and skinny            ladder.csv, added to
#   steady     the steady protocol at 4096 and 8192 cubed                           steady.csv
#   power      BF16 at 8192 cubed, back to back: rungs 22 to 25 and plans of 33     power.csv
#   map        30 to 33, 37 and 41 over many shapes, beside the libraries               map.csv
#   plans      all plans of 33 over many shapes, for bench/fit_cost_model.py        plans.csv tuned.csv
#   layouts    38 and 39 in each layout of A and B                                  layouts.csv layouts_map.csv layouts_16bit.csv
#   grouped    44, products of few rows each in one launch                          grouped.csv
#   library    what a call of the library costs the host; PyTorch with it and without  host_time.csv use.csv use_fp8.csv train.csv torch_opinfo.txt
#   waves      products whose tiles fill the SMs more or less evenly                waves.csv
#   fp8        FP8 tiles and long sums, which tests compare with the simulator (needs sm_90a)  fp8_tiles.csv fp8_sums.csv
#   scales     FP8 and FP4 with scales: 41 to 43b, 53, 54, beside cuBLASLt            scales.csv
#   epilogues  45 with each of its epilogues                                        epilogues.csv
#   quantise   what quantising a matrix takes, beside a copy of as many bytes      quantise.csv
#   conditions the rungs and conditions that chapters show beside these             conditions.csv
#   checks     every rung and type over odd shapes, with both types of results      check.csv
#   tests      every rung over odd shapes; planted faults                           gpu_tests.txt
#   sanitize   every rung under compute-sanitizer                                   sanitizer.txt
#   profile    every rung and type under Nsight Compute, 4096 cubed                 profile_TYPE.csv
#   profiles   other sizes and variants of sweeps, as chapters show them            profile_TYPE_SIZE.csv profile_sweep_NN.csv
#   counters   FP32 rungs at 512 cubed, beside the simulator's                      counters_512.csv
#   sweep      variants of some rungs                                               sweep_NN.csv
#   timeline   who waits for whom inside rungs 22 to 25, 4096 cubed (needs sm_90a)  timeline{,_runs}.csv
#   second     `published` alone, into <folder>-second: run it on another machine of the same model
#
# With each of them goes rungs.json, the facts of the rungs that there are.
#
# It runs the programs in build/ as they are and builds nothing but sweeps that are not built (bench/sweep.py NN --build-only
# builds them on any machine). Each row is written as soon as it is known. A step begins its files anew; with --resume it
# goes on where it was stopped. TYPES="bf16 f16" in the environment confines it to those types.
#
# README and the chapters draw their numbers from there: python3 -m plots readme; python3 -m plots docs;
# python3 -m plots recorded.
set -euo pipefail
cd "$(dirname "$0")/.."

to='' resume='' steps=()
while (($#)); do
  case $1 in
    --to) [[ -n ${2:-} ]] || { echo "record.sh: --to takes a folder" >&2; exit 2; }; to=$2; shift ;;
    --resume) resume=yes ;;
    published | shapes | steady | power | map | plans | layouts | grouped | library | waves | fp8 | scales | epilogues | quantise | conditions | checks | tests | sanitize | profile | profiles | counters | sweep | timeline | second) steps+=("$1") ;;
    *) echo "record.sh: there is no step '$1'; see the first lines of bench/record.sh" >&2; exit 2 ;;
  esac
  shift
done
((${#steps[@]})) || steps=(published shapes steady power map plans layouts grouped library waves fp8 scales epilogues quantise conditions checks tests sanitize profile profiles counters sweep timeline)

if ! nvidia-smi --list-gpus 2>/dev/null | grep -q '^GPU'; then
  echo "record.sh: needs a GPU, and nvidia-smi lists none" >&2
  exit 77
fi
if [[ ! -x build/bin/ladder || ! -x build/bin/ceilings ]]; then
  echo "record.sh: build/bin/ladder and build/bin/ceilings are not built: cmake --build build --target ladder ceilings" >&2
  exit 2
fi
name=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1)
to=${to:-bench/recorded/$(tr 'A-Z ' 'a-z-' <<<"$name")}
types=${TYPES:-$(python3 -m plots.data.rungs types)}

begin() { [[ $resume ]] || rm -f "$@"; }

# Rows whose status is 77 do not apply; they say why.
ladder() { build/bin/ladder --resume --ceilings "$to/ceilings.csv" "$@" || (($? == 77)); }

# What documents show after the words given, a line per block, without the folder of a card: asked_for 'profiled bf16'.
asked_for() { sed -n "s/^<!-- generated: $1 \(.*\) -->\$/\1/p" docs/*.md | sed 's/ nvidia-[^ ]*$//'; }

published() {
  local type sitting
  begin "$to"/{ladder,ceilings}.csv
  [[ -f $to/ceilings.csv ]] || build/bin/ceilings --csv "$to/ceilings.csv"
  for sitting in 1 2 3 4 5; do
    for type in $types; do
      ladder --type "$type" --shapes 2048x2048x2048,4096x4096x4096,8192x8192x8192 --sittings "$sitting/5" \
        --csv "$to/ladder.csv" --environment "$to/environment.json"
    done
  done
}

second() { bench/record.sh --to "$to-second" ${resume:+--resume} published; }

shapes() {
  local type
  for type in $types; do ladder --type "$type" --shapes square --csv "$to/ladder.csv"; done
  ladder --shapes llm,tails,skinny --csv "$to/ladder.csv"  # each rung in the first of its types
}

steady() {
  local size type
  begin "$to/steady.csv"
  for size in 4096 8192; do
    for type in $types; do
      ladder --type "$type" --shapes "${size}x${size}x$size" --protocol steady --csv "$to/steady.csv"
    done
  done
}

power() {
  local out plan plans
  begin "$to/power.csv"
  ladder --protocol steady --type bf16 --shapes 8192x8192x8192 --kernels 22-25 --csv "$to/power.csv"
  plans=$(mktemp)
  for plan in p128x192 c256x128 "c256x192t 1x2" "p128x176 2x1"; do
    for out in f32 same; do  # a file by which this plan is the fastest
      printf '%s\n' gpu,rung,type,out,m,n,k,lda,ldb,ldc,plan,microseconds,predicted,utc \
        "$name,33,bf16,$out,8192,8192,8192,8192,8192,8192,$plan,1,1,2000-01-01T00:00:00Z" >"$plans"
      build/bin/ladder --protocol steady --type bf16 --out $out --shapes 8192x8192x8192 --kernels 33 --plans "$plans" \
        --ceilings "$to/ceilings.csv" --csv "$to/power.csv"  # no --resume: the rows differ in their plan alone
    done
  done
  rm -f "$plans"
}

map() {
  local how
  begin "$to/map.csv"
  for how in "30,31,32,33 --type bf16 --out same" "33 --type f16 --out same" "33 --type tf32" "33 --type bf16" "37 --type f32" "41 --type e4m3 --out same"; do
    # shellcheck disable=SC2086  # several words
    ladder --kernels $how --shapes bench/shapes/map.txt --check sample --sittings 3 --csv "$to/map.csv"
  done
}

plans() {
  local shapes
  begin "$to"/{plans,tuned}.csv
  for shapes in map fit_cost_model; do
    ladder --kernels 33 --type bf16 --out same --shapes "bench/shapes/$shapes.txt" --check sample --tune --plans "$to/plans.csv" \
      --csv "$to/tuned.csv"
  done
}

layouts() {
  local layout shapes
  begin "$to"/layouts{,_map,_16bit}.csv
  for layout in nn nt tn tt; do
    ladder --kernels 38 --layout $layout --check sample --sittings 3 --csv "$to/layouts.csv" --shapes bench/shapes/layouts.txt
    ladder --kernels 33,39 --type bf16 --out same --layout $layout --check sample --sittings 3 --csv "$to/layouts_16bit.csv" \
      --shapes bench/shapes/layouts.txt
    for shapes in map few_columns; do
      ladder --kernels 38 --layout $layout --check sample --csv "$to/layouts_map.csv" --shapes bench/shapes/$shapes.txt
    done
  done
}

grouped() {
  local rows
  begin "$to/grouped.csv"
  of_kernel() { ladder --out same --check sample --sittings 3 --csv "$to/grouped.csv" --groups 64 "$@"; }
  of_groups() {
    of_kernel --kernels 44 --type bf16 --group-rows "$@"
    of_kernel --kernels 46 --type e4m3 --scales blocks --group-rows "$@"
  }
  for rows in random equal one; do of_groups $rows --shapes 8192x4096x7168; done
  of_groups random --shapes 1024x4096x7168
  of_groups equal --shapes 32768x4096x2048
}

library() {
  build/bin/host_time >"$to/host_time.csv"
  GEMM_LADDER_TYPES=f32,tf32,bf16,f16 LD_PRELOAD=build/lib/libgemm_ladder_blas.so python3 bench/use.py --csv "$to/use.csv" || (($? == 77))
  PYTHONPATH=lib/python python3 bench/use_fp8.py --csv "$to/use_fp8.csv" || (($? == 77))
  LD_PRELOAD=build/lib/libgemm_ladder_blas.so python3 bench/train.py --csv "$to/train.csv" || (($? == 77))
  python3 tests/lib/torch_suites.py --count | tee "$to/torch_opinfo.txt" || (($? == 77))
}

waves() {
  begin "$to/waves.csv"
  python3 bench/sweep_waves.py --csv "$to/waves.csv" --ceilings "$to/ceilings.csv" || (($? == 77))
}

fp8() {
  build/bin/fp8_tiles >"$to/fp8_tiles.csv"
  build/bin/fp8_sums >"$to/fp8_sums.csv"
}

scales() {
  local mode
  begin "$to/scales.csv"
  of_scales() { ladder --out same --check sample --sittings 3 --csv "$to/scales.csv" --shapes bench/shapes/fp8.txt "$@"; }
  for mode in none tensor rows; do of_scales --type e4m3 --kernels 41 --scales $mode; done
  of_scales --type e4m3 --kernels 42,43,43b --scales blocks
  of_scales --type e4m3 --kernels 53 --scales mx
  of_scales --type e2m1 --kernels 54 --scales nv
}

epilogues() {
  local steps
  begin "$to/epilogues.csv"
  of_epilogues() { ladder --type bf16 --out same --kernels 45 --sittings 3 --csv "$to/epilogues.csv" --shapes "$@"; }
  for steps in none bias bias,gelu silu silu,gate quantise silu,gate,quantise; do
    of_epilogues 4096x4096x4096,8192x8192x8192,2048x11008x4096 --epilogue $steps
  done
  of_epilogues 4096x8192x4096,8192x16384x8192,2048x22016x4096  # as many operations as with a gate
}

quantise() { build/bin/quantise >"$to/quantise.csv"; }

conditions() {
  local kernels protocol
  kernels=$(asked_for conditions | tr ' ' '\n' | sort -u | paste -sd,)
  begin "$to/conditions.csv"
  for protocol in rounds steady; do
    of_protocol() { ladder --type bf16 --kernels "$kernels" --protocol $protocol --csv "$to/conditions.csv" "$@"; }
    of_protocol --shapes 4096x4224x4096,4224x4224x4096,8192x8192x8192,16384x16384x4096
    of_protocol --shapes 4096x4096x4096,8192x8192x1024 --out same
    of_protocol --shapes 4096x4096x4096 --out same --beta 0.5
  done
  # rows that cross lines of 128 bytes
  ladder --type bf16 --out same --kernels 31-33 --check sample --sittings 3 --csv "$to/conditions.csv" \
    --shapes 1544x1528x3080,904x2008x1032,2200x2120x2072,2168x4056x2104,1112x4904x2968
}

checks() {
  local type out factors
  begin "$to/check.csv"
  for type in $types; do
    for out in f32 same; do
      for factors in "--alpha 1 --beta 0" "--alpha -1.5 --beta 0.5"; do
        # shellcheck disable=SC2086  # factors are four words
        ladder --type "$type" --out $out --check-only --shapes tests/shapes/odd.txt --ld-pad align $factors --csv "$to/check.csv"
      done
    done
  done
}

heading() { echo "$1 on $name, $(date -u +%FT%TZ)"; }

tests() {
  {
    heading build/bin/gpu_tests
    build/bin/gpu_tests | grep -E '^\[( +OK|  FAILED|  SKIPPED|  PASSED|==========)'
  } | tee "$to/gpu_tests.txt"
}

sanitize() {
  {
    heading tests/gpu/sanitize.sh
    tests/gpu/sanitize.sh
  } | tee "$to/sanitizer.txt"
}

# profile_into FILE TYPE SIZE STEM...: those that the file does not have yet.
profile_into() {
  local file=$to/$1 type=$2 size=$3 stem
  for stem in "${@:4}"; do
    [[ -f $file ]] && grep -q "^$stem," "$file" && continue
    python3 -m tools.profile "$stem" "$size" "$size" "$size" --type "$type" --csv "$file"
  done
}

profile() {
  local type stems
  for type in $types; do
    begin "$to/profile_$type.csv"
    mapfile -t stems < <(python3 -m plots.data.rungs stem "$type")
    profile_into "profile_$type.csv" "$type" 4096 "${stems[@]}"
  done
}

profiles() {
  local what names name
  begin "$to"/profile_*_*.csv
  asked_for profiled | while read -r what names; do
    for name in $names; do
      case $what in
        *@*) profile_into "profile_${what#*@}_${what%@*}.csv" "${what%@*}" "${what#*@}" "$(basename kernels/"${name}"_*.cu .cu)" ;;
        sweep_*) profile_into "profile_$what.csv" bf16 4096 "$what/$name" ;;
      esac
    done
  done
}

counters() {
  local stems
  begin "$to/counters_512.csv"
  mapfile -t stems < <(python3 -m plots.data.rungs stem f32)
  profile_into counters_512.csv f32 512 "${stems[@]}"
}

sweep() {
  local rung
  local -a script
  for rung in 08 16 17 25 27 32 37; do
    script=(bench/sweep.py "$rung")
    [[ $rung != 17 ]] || script=(bench/sweep_17.py)
    if [[ -f build/sweep_$rung/built.json ]]; then python3 "${script[@]}" --built; else python3 "${script[@]}"; fi
    cp "build/sweep_$rung/ladder.csv" "$to/sweep_$rung.csv"
  done
}

# Of one block the first tile of C, its epilogue and some of the next tile: 22 has 7 records per k tile, and a tile 64 k tiles.
timeline() {
  if [[ ! -x build/bin/timeline ]]; then
    echo "record.sh: build/bin/timeline is not built, where there is no sm_90a: cmake --build build --target timeline" >&2
    return
  fi
  build/bin/timeline --type bf16 --shape 4096x4096x4096 --blocks 0 --records 600 --csv "$to/timeline.csv"
}

mkdir -p "$to"
build/bin/ladder --list --json >"$to/rungs.json"  # whatever the step: it may be the first with a new rung
for step in "${steps[@]}"; do "$step"; done
echo "Recorded in $to"
