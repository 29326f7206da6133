#!/bin/bash
# Do DPO and SimPO raise the reward margin of pairs that they never saw?
#   benchmarks/learning/preference.sh [SEEDS=5] [OUTPUT=runs/preference] [ALGORITHM...]
# HH-RLHF rows (HH=FILE, default the 400 that the repository carries), a fifth held out, a different one for each seed. For DPO, SimPO and
# KTO it prints, on the held-out pairs, the margin and the accuracy of the rewards before the first update (a step at learning rate 0) and
# after the last one: means over the seeds with 95 % intervals (Student's t), and by how many of the seeds the margin rises.
# Needs a built program: TROUPE (default build/release/troupe). A run that is there already is not run again.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/../.."
. benchmarks/learning/interval.sh
troupe=${TROUPE:-build/release/troupe}
seeds=${1:-5} output=${2:-runs/preference}
shift $(($# < 2 ? $# : 2))
algorithms=("$@")
((${#algorithms[@]})) || algorithms=(dpo simpo kto)
model=tests/data/models/stories260k/hf hh=${HH:-tests/data/datasets/pairwise/hh_rlhf_harmless_base_test_400.jsonl}

# train FOLDER SEED ROWS ALGORITHM [option...]
train() {
  local folder=$1 seed=$2 rows=$3 algorithm=$4
  shift 4
  [[ -e $folder/done ]] && return
  rm -rf "$folder"
  "$troupe" train --algorithm "$algorithm" --set model=$model --set data.path="$rows.jsonl" --set eval.path="$rows-held-out.jsonl" \
    --set output="$folder" --set train.seed="$seed" --set train.batch_size=16 --set train.max_length=384 --set train.save_every=0 "$@" >&2
  touch "$folder/done"
}

# metric FOLDER NAME: of the last step that has it
metric() {
  awk -v key="\"$2\":" '{ at = index($0, key); if (at) value = substr($0, at + length(key)) + 0; found = found || at }
    END { if (!found) exit 1; print value }' "$1/metrics.jsonl"
}

mkdir -p "$output"
settings() {
  case $1 in
    dpo) echo "--set train.learning_rate=2e-4 --set dpo.beta=0.1" ;;
    simpo) echo "--set train.learning_rate=1e-3 --set simpo.beta=2 --set simpo.gamma_beta_ratio=0.25" ;;
    kto) echo "--set train.learning_rate=2e-4 --set kto.beta=0.1" ;;
  esac
}
for ((seed = 0; seed < seeds; seed++)); do
  rows=$output/rows-$seed
  awk -v seed=$seed -v out="$rows" 'NR % 5 == seed % 5 { print > (out "-held-out.jsonl"); next } { print > (out ".jsonl") }' "$hh"
  for algorithm in "${algorithms[@]}"; do
    # shellcheck disable=SC2046
    train "$output/$algorithm-$seed-before" $seed "$rows" $algorithm $(settings $algorithm) --set train.learning_rate=0 --set train.steps=1
    # shellcheck disable=SC2046
    train "$output/$algorithm-$seed" $seed "$rows" $algorithm $(settings $algorithm) --set train.epochs=2
  done
done
printf '%-34s %6s  %s\n' what seeds "mean, 95 % interval"
for algorithm in "${algorithms[@]}"; do
  for name in margins accuracies; do
    [[ $algorithm == kto && $name == accuracies ]] && continue  # no pairs, no accuracy
    for when in before after; do
      for ((seed = 0; seed < seeds; seed++)); do
        suffix=
        [[ $when == after ]] || suffix=-before
        metric "$output/$algorithm-$seed$suffix" eval/rewards/$name
      done | interval "$algorithm: held-out $name $when" 34 4
    done
  done
  rises=0
  for ((seed = 0; seed < seeds; seed++)); do
    before=$(metric "$output/$algorithm-$seed-before" eval/rewards/margins) after=$(metric "$output/$algorithm-$seed" eval/rewards/margins)
    rises=$((rises + $(awk -v a="$before" -v b="$after" 'BEGIN { print (b > a) }')))
  done
  echo "$algorithm: the held-out margin rises for $rises of $seeds seeds"
done
