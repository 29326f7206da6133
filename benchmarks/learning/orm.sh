#!/bin/bash
# Accuracy and calibration of an outcome reward model.
#   benchmarks/learning/orm.sh [SEEDS=5] [OUTPUT=runs/orm]
# 1. A separable set, made here from a seed: of two sentences the chosen one has a glad word among neutral ones, the rejected one a sad
#    word. Prints held-out accuracy (>= 0.9 is expected).
# 2. HH-RLHF rows (HH=FILE, default the 40 that the repository carries), a fifth held out, a different one for each seed. Prints held-out
#    accuracy and the expected calibration error: sum over bins of (pairs in the bin / all pairs) |accuracy - mean confidence|, the
#    confidence being sigmoid(|s_w - s_l|), in ten bins of equal width from 0.5 to 1 (`troupe score`).
# Each is the mean over the seeds and its 95 % interval (Student's t). Needs a built program: TROUPE (default build/release/troupe). A run
# that is there already is not run again.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/../.."
. benchmarks/learning/interval.sh
troupe=${TROUPE:-build/release/troupe}
seeds=${1:-5} output=${2:-runs/orm}
model=tests/data/models/stories260k/hf hh=${HH:-tests/data/datasets/pairwise/hh_rlhf_harmless_base_test_head.jsonl}

# pairs SEED COUNT
pairs() {
  awk -v seed="$1" -v count="$2" '
    function pick(list, n) { return list[int(rand() * n) + 1] }
    BEGIN {
      srand(seed)
      who = split("girl boy dog cat bird man fish bear", names, " ")
      good = split("happy glad kind nice good", glad, " "); bad = split("sad mad bad mean sick", sad, " ")
      rest = split("big small old red blue tall new", plain, " "); places = split("park house tree water garden", where, " ")
      for (i = 0; i < count; i++) {
        name = pick(names, who); place = pick(where, places)
        first = pick(plain, rest); second = pick(plain, rest); left = rand() < 0.5
        a = pick(glad, good); b = pick(sad, bad)
        printf "{\"prompt\":\"Once upon a time there was a %s at the %s.\",", name, place
        printf "\"chosen\":\" The %s was %s and %s.\",", name, left ? a : first, left ? second : a
        printf "\"rejected\":\" The %s was %s and %s.\"}\n", name, left ? b : first, left ? second : b
      }
    }'
}

# train SEED FOLDER ROWS [option...]
train() {
  local seed=$1 folder=$2 rows=$3
  shift 3
  [[ -e $folder/done ]] && return
  "$troupe" train --algorithm orm --set model=$model --set data.path="$rows" --set output="$folder" --set train.seed="$seed" \
    --set orm.center_rewards_coefficient=0.01 --set train.save_every=0 "$@" >&2
  touch "$folder/done"
}

# field NAME < a line of `troupe score`: the first number of that name, which is the file's own
field() { awk -v key="\"$1\":" '{ at = index($0, key); if (at == 0) exit 1; print substr($0, at + length(key)) + 0 }'; }

mkdir -p "$output"
printf '%-34s %6s  %s\n' what seeds "mean, 95 % interval"
for ((seed = 0; seed < seeds; seed++)); do
  pairs $((1000 + seed)) 512 > "$output/separable-$seed.jsonl"
  pairs $((2000 + seed)) 256 > "$output/separable-$seed-held-out.jsonl"
  train $seed "$output/separable-$seed" "$output/separable-$seed.jsonl" --set train.steps=60 --set train.batch_size=16 \
    --set train.learning_rate=1e-3
  "$troupe" score --model "$output/separable-$seed/latest" --data "$output/separable-$seed-held-out.jsonl" > "$output/separable-$seed.json"
  awk -v seed=$seed -v out="$output/hh-$seed" 'NR % 5 == seed % 5 { print > (out "-held-out.jsonl"); next } { print > (out ".jsonl") }' "$hh"
  train $seed "$output/hh-$seed" "$output/hh-$seed.jsonl" --set train.epochs=1 --set train.batch_size=8 --set train.learning_rate=1e-4
  "$troupe" score --model "$output/hh-$seed/latest" --data "$output/hh-$seed-held-out.jsonl" > "$output/hh-$seed.json"
done
for ((seed = 0; seed < seeds; seed++)); do field accuracy < "$output/separable-$seed.json"; done | interval "separable: held-out accuracy" 34 3
for ((seed = 0; seed < seeds; seed++)); do field accuracy < "$output/hh-$seed.json"; done | interval "HH: held-out accuracy" 34 3
for ((seed = 0; seed < seeds; seed++)); do field calibration_error < "$output/hh-$seed.json"; done | interval "HH: expected calibration error" 34 3
