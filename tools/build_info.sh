#!/usr/bin/env bash
# Writes the header FILE with GEMM_LADDER_COMMIT, and only where it changes, so that nothing is rebuilt for nothing.
# The commit is that of the checkout, with the hash of the difference where the measured sources differ from it;
# without git it is the environment's GEMM_LADDER_COMMIT, or "unknown".
#   usage: tools/build_info.sh FILE
set -euo pipefail

file=$1
mkdir -p "$(dirname "$file")"
file=$(cd "$(dirname "$file")" && pwd)/$(basename "$file")
cd "$(dirname "$0")/.."
sources=(kernels common bench ':!bench/recorded')

if [[ -e .git ]] && commit=$(git rev-parse --short=10 HEAD 2>/dev/null); then
  if [[ -n $(git status --porcelain -- "${sources[@]}") ]]; then
    difference=$({
      git diff HEAD -- "${sources[@]}"
      git ls-files -z --others --exclude-standard -- "${sources[@]}" | xargs -0r cat
    } | git hash-object --stdin)
    commit+="+dirty.${difference:0:8}"
  fi
else
  commit=${GEMM_LADDER_COMMIT:-unknown}
fi

text="#pragma once
#define GEMM_LADDER_COMMIT \"$commit\""
if [[ ! -f $file || $(<"$file") != "$text" ]]; then printf '%s\n' "$text" >"$file"; fi
