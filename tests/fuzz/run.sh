#!/bin/bash
# Runs every fuzz target for SECONDS each (default 20), from its corpus: tests/fuzz/run.sh [SECONDS] [BUILD]. A finding is written to
# BUILD/fuzz and ends the script with an error; the file is its input: BUILD/fuzz/NAME_fuzz FILE repeats it.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-20} build=${2:-build/fuzz}
shopt -s nullglob

targets=("$build"/fuzz/*_fuzz)
if ((${#targets[@]} == 0)); then
  echo "$build has no fuzz targets; build them first: cmake --preset fuzz && cmake --build --preset fuzz" >&2
  exit 2
fi
for target in "${targets[@]}"; do
  name=$(basename "$target" _fuzz)
  found=$build/fuzz/$name.corpus
  mkdir -p "$found"
  seeds=(tests/fuzz/corpus/"$name")
  [[ -d ${seeds[0]} ]] || seeds=()
  echo "fuzzing $name for $seconds s" >&2
  if ! "$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -malloc_limit_mb=256 -print_final_stats=1 \
    -artifact_prefix="$build/fuzz/$name-" "$found" "${seeds[@]}" >"$build/fuzz/$name.log" 2>&1; then
    tail -40 "$build/fuzz/$name.log" >&2
    exit 1
  fi
  grep -E 'number_of_executed_units|DONE' "$build/fuzz/$name.log" | tail -2 >&2
done
