#!/bin/bash
# Seconds from a change of one source to its object, and from there to the program: medians of three, for a source of each of ten folders,
# without ccache. Fails where a source compiles for more than 15 s. Other work of the machine counts: run it alone.
# Usage: benchmarks/edit.sh [--no-link] [BUILD]
#   BUILD: a build folder that is up to date; without it build/plain, which is brought up to date first (every source compiled alone)
#   --no-link: objects only, so that the program need not be built
set -euo pipefail
cd "$(dirname "$0")/.."
limit=15 runs=3
sources=(
  engine/ops/cpu/cpu_device.cpp
  engine/nn/attention.cpp
  engine/generate/generator.cpp
  engine/data/layouts/layout.cpp
  transports/frame.cpp
  actors/roles/trainer.cpp
  algorithms/losses/grpo_loss.cpp
  launch/run/algorithm_run.cpp
  launch/serve/api/api.cpp
  launch/commands/train.cpp
)
links=1
if [ "${1:-}" = --no-link ]; then
  links=0
  shift
fi
build=${1:-build/plain}
if (($# == 0)); then
  cmake --preset plain >/dev/null
  ((links)) && cmake --build --preset plain --target troupe >/dev/null
fi
export CCACHE_DISABLE=1

object_of() { # the object of a library of the tree that is compiled from a source
  awk -v source="$PWD/$1" -v folder="${1%%/*}/" \
    '$1 == "build" && index($2, folder) == 1 && $4 == source { sub(/:$/, "", $2); print $2; exit }' "$build/build.ninja"
}
seconds() { # seconds TARGET: of one build of it
  local start=$EPOCHREALTIME
  if ! ninja -C "$build" "$1" >"$log" 2>&1; then
    cat "$log" >&2
    exit 1
  fi
  awk -v from="$start" -v to="$EPOCHREALTIME" 'BEGIN { printf "%.1f\n", to - from }'
}
median() { sort -n | sed -n "$(((runs + 1) / 2))p"; }

log=$(mktemp)
stamp=$(mktemp)
changed=
restore() {
  [ -z "$changed" ] || touch -r "$stamp" "$changed"
  rm -f "$log" "$stamp"
}
trap restore EXIT

slow=0
printf '%-36s %10s %10s\n' source "compile, s" "link, s"
for source in "${sources[@]}"; do
  object=$(object_of "$source")
  if [ -z "$object" ]; then
    echo "$source has no object of its own in $build/build.ninja; expected a build of the preset plain" >&2
    exit 1
  fi
  touch -r "$source" "$stamp"
  changed=$source
  compiled=() linked=()
  for ((run = 0; run < runs; ++run)); do
    touch "$source"
    compiled+=("$(seconds "$object")")
    ((links)) && linked+=("$(seconds troupe)")
  done
  touch -r "$stamp" "$source"
  changed=
  compile=$(printf '%s\n' "${compiled[@]}" | median)
  link=-
  ((links)) && link=$(printf '%s\n' "${linked[@]}" | median)
  over=$(awk -v seconds="$compile" -v limit=$limit 'BEGIN { print (seconds > limit) }')
  ((over)) && slow=1
  printf '%-36s %10s %10s%s\n' "$source" "$compile" "$link" "$( ((over)) && echo "  more than $limit s" || true)"
done
exit $slow
