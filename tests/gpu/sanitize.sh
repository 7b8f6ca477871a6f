#!/usr/bin/env bash
# Every rung under every tool of compute-sanitizer, at sizes around its tiles: tests/gpu/sanitize.sh [build/bin/ladder]
# Prints one line a tool; exits 1 where one finds an error.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
ladder=${1:-build/bin/ladder}
shapes=1x1x1,64x64x64,129x131x17,127x255x7,130x259x33,257x260x9
if ! command -v compute-sanitizer >/dev/null; then
  echo "sanitize.sh: compute-sanitizer is not on the PATH; it comes with the CUDA Toolkit" >&2
  exit 77
fi

probe=$("$ladder" --check-only --kernels 01 --shapes 1x1x1 2>&1 >/dev/null)
if [[ $? == 77 || $probe == *simulator* ]]; then
  echo "sanitize.sh: no GPU here" >&2
  exit 77
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
failures=0
# The check samples elements against FP64 here, so that no kernel of cuBLAS runs: what is reported is ours.
for tool in memcheck racecheck initcheck synccheck; do
  for factors in "--alpha 1 --beta 0" "--alpha -1.5 --beta 0.5"; do
    # shellcheck disable=SC2086  # factors are four words
    if compute-sanitizer --tool "$tool" --error-exitcode 99 "$ladder" --check-only --check sample --shapes "$shapes" \
      --ld-pad align $factors >"$log" 2>&1; then
      verdict=clean
    else
      verdict="FAILED (exit $?)"
      failures=$((failures + 1))
    fi
    echo "$tool, $factors: $verdict; $(grep -E 'SUMMARY' "$log" | tail -n 1 | sed 's/^=* *//'); $(grep -c ' ok$' "$log") results right"
    [[ $verdict == clean ]] || tail -n 40 "$log"
  done
done
exit $((failures > 0))
