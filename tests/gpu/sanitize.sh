#!/usr/bin/env bash
# Every rung under every tool of compute-sanitizer, at sizes around its tiles: tests/gpu/sanitize.sh [build/bin/ladder]
# Prints one line per tool and case; exits 1 where one finds an error.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
ladder=${1:-build/bin/ladder}
shapes=1x1x1,64x64x64,129x131x17,127x255x7,130x259x33,257x260x9,34000x8x72,130x259x1050  # the last one is cut along K
waiting=900x1016x712,1152x1408x136,1024x2176x1160,130x259x32776  # for each rung that plans, blocks wait for one another in one of them
if ! command -v compute-sanitizer >/dev/null; then
  echo "sanitize.sh: compute-sanitizer is not on the PATH; it comes with the CUDA Toolkit" >&2
  exit 77
fi

probe=$("$ladder" --check-only --kernels 01 --shapes 1x1x1 2>&1 >/dev/null)
if [[ $? == 77 || $probe == *simulator* ]]; then
  echo "sanitize.sh: no GPU here" >&2
  exit 77
fi

cases=()
# facts EXPRESSION: of what the rungs state, as `all` in Python
facts() { "$ladder" --list --json | python3 -c "import json, sys; all = json.load(sys.stdin); print($1)"; }
planning=$(facts '",".join(r["number"] for r in all["rungs"] if r["plans"])')
for type in $(facts '" ".join(t["name"] for t in all["types"] if any(t["name"] in r["types"] for r in all["rungs"]))'); do
  cases+=("--type $type --alpha 1 --beta 0" "--type $type --out same --alpha -1.5 --beta 0.5")
done
for scales in tensor rows blocks; do cases+=("--type e4m3 --out same --scales $scales"); done
for steps in bias,gelu silu,gate silu,gate,quantise; do cases+=("--type bf16 --out same --epilogue $steps"); done
cases+=("--type bf16 --out same --groups 5 --group-rows random" "--type e4m3 --out same --scales blocks --groups 5 --group-rows random")

# sanitize TOOL OPTION...: one line, and the end of the log where it is not clean. The check samples elements against FP64,
# so that no kernel of cuBLAS runs: what is reported is ours.
sanitize() {
  local log verdict=clean
  log=$(mktemp)
  compute-sanitizer --tool "$1" --error-exitcode 99 "$ladder" --check-only --check sample --shapes "$shapes" \
    --ld-pad align "${@:2}" >"$log" 2>&1 || verdict="FAILED (exit $?)"
  echo "$1, ${*:2}: $verdict; $(grep -E 'SUMMARY' "$log" | tail -n 1 | sed 's/^=* *//'); $(grep -cE '  ok(, |$)' "$log") results right"
  [[ $verdict == clean ]] || tail -n 40 "$log"
  rm -f "$log"
  [[ $verdict == clean ]]
}

failures=0 running=()
for tool in memcheck racecheck initcheck synccheck; do
  for options in "${cases[@]}"; do
    # shellcheck disable=SC2086  # options are several words
    sanitize "$tool" $options &
    running+=($!)
  done
  if [[ $planning ]]; then
    shapes=$waiting sanitize "$tool" --kernels "$planning" &
    running+=($!)
  fi
  for job in "${running[@]}"; do wait "$job" || failures=$((failures + 1)); done
  running=()
done
exit $((failures > 0))
