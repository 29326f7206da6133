#!/bin/bash
# Instructions of tiny steps, counted by callgrind, against counts.txt: fails where one needs over 3 % more, or less than 0.9 of it (a function of another name
# counts nothing). Needs valgrind and the release preset's build.
# Usage: benchmarks/instructions/run.sh [record | masks]
#   record  writes what was counted into counts.txt instead
#   masks   counts a training step with sampling masks of 20 and of 2,000 of 32,768 tokens beside one without: fails where one needs over 1.03 of it (minutes)
set -euo pipefail
cd "$(dirname "$0")/../.."
counts=benchmarks/instructions/counts.txt
build=build/release/benchmarks

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Of the functions that are named, and what they call: neither ceilings nor what is done once is counted.
training=(--toggle-collect='troupe::engine::train::Trainer::forward_backward(*' --toggle-collect='troupe::engine::train::Trainer::update(*')
decoding=(--toggle-collect='troupe::engine::generate::Generator::step(*')

# NAME PROGRAM DTYPE FUNCTIONS... [-- OPTIONS...]: "NAME COUNT"
count() {
  local name=$1 program=$2 dtype=$3
  shift 3
  local functions=()
  while [[ $# -gt 0 && $1 != -- ]]; do
    functions+=("$1")
    shift
  done
  [[ $# -eq 0 ]] || shift
  # valgrind 3.19 knows no AVX-512
  if ! valgrind --tool=callgrind --callgrind-out-file="$work/$name" "${functions[@]}" \
    "$build/$program" --shape tiny --dtype "$dtype" --threads 1 --isa avx2 --rounds 1 "$@" >"$work/said" 2>&1; then
    cat "$work/said" >&2
    return 1
  fi
  echo "$name $(sed -n 's/.*Collected : *//p' "$work/said")"
}

for program in train_step decode; do
  if [[ ! -x $build/$program ]]; then
    echo "$build/$program is not there; build it: cmake --preset release && cmake --build --preset release" >&2
    exit 1
  fi
done
if [[ ${1:-} == masks ]]; then
  for kept in 0 20 2000; do
    options=(--vocabulary 32768)
    ((kept == 0)) || options+=(--kept "$kept")
    count "kept_$kept" train_step f32 "${training[@]}" -- "${options[@]}"
  done >"$work/counted"
  awk '
    NR == 1 { whole = $2 }
    {
      printf "%s: %d instructions, %.3f of those without masks\n", $1, $2, $2 / whole
      if (!($2 > 0) || $2 > 1.03 * whole) failed = 1
    }
    END { exit failed }' "$work/counted"
  exit
fi
{
  count train_step_f32 train_step f32 "${training[@]}"
  count train_step_bf16 train_step bf16 "${training[@]}"
  count decode_f32 decode f32 "${decoding[@]}"
  count decode_bf16 decode bf16 "${decoding[@]}"
} >"$work/counted"

if [[ ${1:-} == record ]]; then
  cp "$work/counted" "$counts"
  cat "$counts"
  exit 0
fi
awk '
  NR == FNR { before[$1] = $2; next }
  !($1 in before) || !($2 > 0) { print $1 ": nothing to compare, or nothing was counted"; failed = 1; next }
  {
    change = 100 * ($2 - before[$1]) / before[$1]
    printf "%s: %d instructions, %+.2f %%\n", $1, $2, change
    if (change > 3) {
      printf "%s grew from %d to %d instructions, by %.1f %% (3 %% is allowed); where that is meant: benchmarks/instructions/run.sh record\n", \
        $1, before[$1], $2, change
      failed = 1
    }
    if (change < -10) {
      printf "%s fell from %d to %d instructions: is a counted function missing? Where that is meant: benchmarks/instructions/run.sh record\n", \
        $1, before[$1], $2
      failed = 1
    }
  }
  END { exit failed }' "$counts" "$work/counted"
