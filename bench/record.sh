#!/usr/bin/env bash
# Records this GPU in bench/recorded/<gpu>: bench/record.sh [STEP...], all steps without one, from a clean checkout.
#
#   ladder    ./run_all.sh in full, and its tables              ladder.csv steady.csv check.csv ceilings.csv environment.json
#   types     the rungs on tensor cores, in each of their types ladder_TYPE.csv steady_TYPE.csv spread_TYPE.csv
#   late      14 to 16 at large shapes, with 16-bit results and beta, in both protocols   late_PROTOCOL.csv
#   checks    the rungs on tensor cores over odd shapes, results of both types   check_TYPE.csv
#   spread    the 4096 cells a second time, in a new process    spread.csv
#   tests     every rung over odd shapes; planted faults        gpu_tests.txt
#   sanitize  every rung under compute-sanitizer                sanitizer.txt
#   profile   FP32 rungs under Nsight Compute, 4096 cubed       profile.csv
#   profile_types  the rungs on tensor cores                    profile_TYPE.csv
#   counters  FP32 rungs at 512 cubed, beside the simulator's   counters_512.csv
#   raster    what 14 and 15 ask of L2 and DRAM at 8192 cubed   profile_8192_bf16.csv
#   sweep     variants of rungs 08 and 14                       sweep_08.csv sweep_14.csv
#   prefetch  of these, two blocks an SM with 2, 3, 4 stages    profile_prefetch_bf16.csv
#
# README and the chapters draw their numbers from there: python3 -m plots readme; python3 -m plots docs;
# python3 -m plots recorded.
# TYPES="bf16 f16" in the environment confines types and checks to those types.
set -euo pipefail
cd "$(dirname "$0")/.."
TYPES=${TYPES:-bf16 tf32 f16}
steps=("$@")
((${#steps[@]})) || steps=(ladder types late checks spread tests sanitize profile profile_types raster counters sweep prefetch)

if ! nvidia-smi --list-gpus 2>/dev/null | grep -q '^GPU'; then
  echo "record.sh: needs a GPU, and nvidia-smi lists none" >&2
  exit 77
fi
gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1 | tr 'A-Z ' 'a-z-')
to=bench/recorded/$gpu
mkdir -p "$to"

ladder() {
  ./run_all.sh
  cp results/"$gpu"/{ladder,steady,check,ceilings}.csv results/"$gpu"/environment.json "$to"
}

# Rows whose status is 77 do not apply; they say why.
applies() { "$@" || (($? == 77)); }

timed() { applies build/bin/ladder --ceilings "$to/ceilings.csv" "$@"; }

types() {
  local type shapes
  build/bin/ceilings --csv "$to/ceilings.csv"
  for type in $TYPES; do
    shapes=square
    [[ $type == bf16 ]] && shapes=square,llm,tails,skinny
    rm -f "$to"/{ladder,steady,spread}_"$type".csv
    timed --type "$type" --kernels "$(rungs_of "$type")" --shapes 4096x4096x4096 --csv "$to/spread_$type.csv" \
      --environment "$to/environment_types.json"
    timed --type "$type" --kernels "$(rungs_of "$type")" --shapes $shapes --csv "$to/ladder_$type.csv"
    timed --type "$type" --kernels 13-16 --shapes 4096x4096x4096 --protocol steady --csv "$to/steady_$type.csv"
  done
}

late() {
  local out protocol
  for protocol in rounds steady; do
    rm -f "$to/late_$protocol.csv"
    late_rungs() { timed --type bf16 --kernels 14-16 --protocol $protocol --csv "$to/late_$protocol.csv" "$@"; }
    late_rungs --shapes 4096x4224x4096,4224x4224x4096,8192x8192x8192,16384x16384x4096
    late_rungs --shapes 4096x4096x4096 --out same
    late_rungs --shapes 4096x4096x4096 --out same --beta 0.5
  done
}

checks() {
  local type kernels out factors
  for type in $TYPES; do
    kernels=$(rungs_of "$type")
    rm -f "$to/check_$type.csv"
    for out in f32 same; do
      for factors in "--alpha 1 --beta 0" "--alpha -1.5 --beta 0.5"; do
        # shellcheck disable=SC2086  # factors are four words
        applies build/bin/ladder --type "$type" --out $out --kernels "$kernels" --check-only --shapes tests/shapes/odd.txt \
          --ld-pad align $factors --csv "$to/check_$type.csv"
      done
    done
  done
}

spread() {
  rm -f "$to/spread.csv"
  build/bin/ladder --shapes 4096x4096x4096 --ceilings "$to/ceilings.csv" --csv "$to/spread.csv"
}

# The rungs that compute TYPE, as --kernels takes them.
rungs_of() { build/bin/ladder --list | grep -w "$1" | awk '{print $1}' | paste -sd,; }

heading() { echo "$1 on $(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1), $(date -u +%FT%TZ)"; }

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

# profile_all SIZE TYPE RUNGS FILE
profile_all() {
  local rung from size=$1 type=$2 file=$4
  rm -f "$file"
  for rung in ${3//,/ }; do
    ./run_all.sh profile "$rung" "$size" "$size" "$size" --type "$type"
    from=(results/profile/"${rung}"_*_"${size}x${size}x${size}_$type.csv")
    if [[ -f $file ]]; then tail -n +2 "${from[0]}" >>"$file"; else cp "${from[0]}" "$file"; fi
  done
}

profile() { profile_all 4096 f32 "$(rungs_of f32)" "$to/profile.csv"; }

profile_types() {
  local type
  for type in bf16 tf32 f16; do profile_all 4096 $type "$(rungs_of $type)" "$to/profile_$type.csv"; done
}

counters() { profile_all 512 f32 "$(rungs_of f32)" "$to/counters_512.csv"; }

raster() { profile_all 8192 bf16 14,15 "$to/profile_8192_bf16.csv"; }

prefetch() {
  local variant from file=$to/profile_prefetch_bf16.csv
  rm -f "$file"
  for variant in twice_stages_2 twice twice_stages_4; do
    python3 -m tools.profile "sweep_14/block_128x128_$variant" 4096 4096 4096 --type bf16
    from=results/profile/sweep_14_block_128x128_${variant}_4096x4096x4096_bf16.csv
    if [[ -f $file ]]; then tail -n +2 "$from" >>"$file"; else cp "$from" "$file"; fi
  done
}

sweep() {
  local rung
  for rung in 08 14; do
    python3 "bench/sweep_$rung.py"
    cp "build/sweep_$rung/ladder.csv" "$to/sweep_$rung.csv"
  done
}

for step in "${steps[@]}"; do
  case $step in
    ladder | types | late | checks | spread | tests | sanitize | profile | profile_types | raster | counters | sweep | prefetch) "$step" ;;
    *) echo "record.sh: there is no step '$step'; see the first lines of bench/record.sh" >&2; exit 2 ;;
  esac
done
echo "Recorded in $to"
