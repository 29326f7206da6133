#!/bin/bash
# Runs every fuzz target for SECONDS each (default 20), from its corpus, one per processor at a time: tests/fuzz/run.sh [SECONDS] [BUILD].
# A finding is written to BUILD/fuzz and ends the script with an error; the file is its input: BUILD/fuzz/NAME_fuzz FILE repeats it.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-20} build=${2:-build/asan}
shopt -s nullglob

targets=("$build"/fuzz/*_fuzz)
if ((${#targets[@]} == 0)); then
  echo "$build has no fuzz targets; build them first: cmake --preset asan && cmake --build --preset fuzz" >&2
  exit 2
fi
fuzz() { # fuzz TARGET
  local target=$1 name found seeds
  name=$(basename "$target" _fuzz)
  found=$build/fuzz/$name.corpus
  mkdir -p "$found"
  seeds=(tests/fuzz/corpus/"$name")
  [[ -d ${seeds[0]} ]] || seeds=()
  if ! "$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -malloc_limit_mb=256 -print_final_stats=1 \
    -artifact_prefix="$build/fuzz/$name-" "$found" "${seeds[@]}" >"$build/fuzz/$name.log" 2>&1; then
    echo "fuzzing $name failed:" >&2
    tail -40 "$build/fuzz/$name.log" >&2
    return 1
  fi
  echo "fuzzed $name for $seconds s: $(grep -E 'number_of_executed_units|DONE' "$build/fuzz/$name.log" | tail -1)" >&2
}
export -f fuzz
export seconds build
printf "%s\0" "${targets[@]}" | xargs -0 -n 1 -P "$(nproc)" bash -c 'fuzz "$0"'
