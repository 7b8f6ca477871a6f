#!/usr/bin/env bash
# Records this GPU in bench/recorded/<gpu>: bench/record.sh [STEP...], all steps without one, from a clean checkout.
#
#   ladder    ./run_all.sh in full, and its tables              ladder.csv steady.csv check.csv ceilings.csv environment.json
#   spread    the 4096 cells a second time, in a new process    spread.csv
#   tests     every rung over odd shapes; planted faults        gpu_tests.txt
#   sanitize  every rung under compute-sanitizer                sanitizer.txt
#   profile   every rung under Nsight Compute, 4096 cubed       profile.csv
#   counters  the same at 512 cubed, beside the simulator's     counters_512.csv
#   sweep     variants of rungs 08 and 14                       sweep_08.csv sweep_14.csv
#
# README and the chapters draw their numbers from there: python3 -m plots readme; python3 -m plots docs;
# python3 -m plots recorded.
set -euo pipefail
cd "$(dirname "$0")/.."
steps=("$@")
((${#steps[@]})) || steps=(ladder spread tests sanitize profile counters sweep)

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

spread() {
  rm -f "$to/spread.csv"
  build/bin/ladder --shapes 4096x4096x4096 --ceilings "$to/ceilings.csv" --csv "$to/spread.csv"
}

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

# profile_all SIZE FILE
profile_all() {
  local kernel stem shape="$1 $1 $1" file=$2
  rm -f "$file"
  for kernel in kernels/*.cu; do
    stem=$(basename "$kernel" .cu)
    # shellcheck disable=SC2086
    ./run_all.sh profile "$stem" $shape
    if [[ -f $file ]]; then
      tail -n +2 "results/profile/${stem}_${shape// /x}.csv" >>"$file"
    else
      cp "results/profile/${stem}_${shape// /x}.csv" "$file"
    fi
  done
}

profile() { profile_all 4096 "$to/profile.csv"; }

counters() { profile_all 512 "$to/counters_512.csv"; }

sweep() {
  local rung
  for rung in 08 14; do
    python3 "bench/sweep_$rung.py"
    cp "build/sweep_$rung/ladder.csv" "$to/sweep_$rung.csv"
  done
}

for step in "${steps[@]}"; do
  case $step in
    ladder | spread | tests | sanitize | profile | counters | sweep) "$step" ;;
    *) echo "record.sh: there is no step '$step'; there are ladder, spread, tests, sanitize, profile, counters, sweep" >&2; exit 2 ;;
  esac
done
echo "Recorded in $to"
