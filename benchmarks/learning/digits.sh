#!/bin/bash
# Do GRPO, RLOO, REINFORCE++, GSPO and DAPO each solve the digit task (launch/quickstart) from the same warmed-up weights?
#   benchmarks/learning/digits.sh [SEEDS=5] [OUTPUT=runs/digits] [ALGORITHM...]
# Prints, per algorithm, the mean reward of the last 20 steps (DAPO: of all samples drawn, also those that dynamic sampling throws away; a
# run ends where nothing is left to learn): mean over seeds and its 95 % interval (Student's t). Needs a built program:
# TROUPE (default build/release/troupe). A run that is there already is not run again.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/../.."
. benchmarks/learning/interval.sh
troupe=${TROUPE:-build/release/troupe}
seeds=${1:-5} output=${2:-runs/digits}
shift $(($# < 2 ? $# : 2))
algorithms=("$@")
((${#algorithms[@]})) || algorithms=(grpo rloo reinforce_pp gspo dapo)
here=launch/quickstart steps=${STEPS:-400} last=20

# What an algorithm needs beside launch/quickstart/grpo.yaml, whose group size, learning rate and sampling all of them share. RLOO and
# REINFORCE++ hold on to the reference through the reward, with the small coefficient that the demo has.
settings_of() {
  case $1 in
    grpo) ;;
    # Every group that is kept has something to teach, so that fewer steps do; each draws up to four times the samples.
    dapo) echo "--set grpo.max_refills=3 --set train.steps=160" ;;
    rloo | reinforce_pp) echo "--set grpo.reward_beta=1e-3" ;;
    # Two updates a round, so that its ratios are not all 1 and its clip has something to do.
    gspo) echo "--set grpo.minibatches=2 --set grpo.clip_low=0.03 --set grpo.clip_high=0.04" ;;
    *) echo "--set grpo.reward_beta=0" ;;
  esac
}

warm=$output/warm-up/latest
[[ -e $warm ]] || "$troupe" train --config $here/sft.yaml --set data.path=$here/train.jsonl --set output="$output/warm-up" --set train.seed=0 >&2

one_run() {
  local algorithm=$1 seed=$2 folder=$output/$1-$2
  [[ -e $folder/done ]] && return
  rm -rf "$folder"
  # shellcheck disable=SC2046
  "$troupe" train --algorithm "$algorithm" --config $here/grpo.yaml --set model="$warm" --set data.path=$here/train.jsonl \
    --set output="$folder" --set train.seed="$seed" --set train.steps="$steps" $(settings_of "$algorithm") >&2
  touch "$folder/done"
}

# The mean of a metric over the last lines of a run's metrics: FOLDER NAME.
last_rewards() {
  tail -n $last "$1/metrics.jsonl" | awk -v name="\"$2\":" '
    { at = index($0, name); if (at) { sum += substr($0, at + length(name)) + 0; n++ } }
    END { if (n == 0) exit 1; printf "%.6f\n", sum / n }'
}

printf '%-22s %6s  %s\n' algorithm seeds "mean reward of the last $last steps, 95 % interval"
for algorithm in "${algorithms[@]}"; do
  for ((seed = 0; seed < seeds; seed++)); do
    one_run "$algorithm" "$seed"
    last_rewards "$output/$algorithm-$seed" "$([[ $algorithm == dapo ]] && echo filter_groups/reward || echo reward)"
  done | interval "$algorithm" 22 3
done
