#!/bin/bash
# Does GRPO learn the digit task (launch/quickstart) from older samples, and how long does it take?
#   benchmarks/learning/async.sh [SEEDS=5] [OUTPUT=runs/async] [ETA...]
# From the same warmed-up weights with async.mode pinned and async.eta 0, 1 and 4 (the default corrections), one thread for sampling and one for
# training. Prints, per eta, the mean reward of the last 20 steps and the seconds of a run: means over seeds and 95 % intervals (Student's t).
# Needs a built program: TROUPE (default build/release/troupe); STEPS sets the length of a run. A run that is there already is not run again.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/../.."
. benchmarks/learning/interval.sh
. benchmarks/learning/digit_rows.sh
seeds=${1:-5} output=${2:-runs/async}
shift $(($# < 2 ? $# : 2))
etas=("$@")
((${#etas[@]})) || etas=(0 1 4)
steps=${STEPS:-400} last=20

mkdir -p "$output"
once warm-up "$troupe" train --config $rows/sft.yaml --set data.path=$rows/train.jsonl \
  --set output="$output/warm-up" --set train.seed=0

one_run() { # one_run ETA SEED
  once "$1-$2" "$troupe" train --config $rows/grpo.yaml --set model="$output/warm-up/latest" --set data.path=$rows/train.jsonl \
    --set output="$output/$1-$2" --set train.seed="$2" --set train.steps="$steps" --set async.mode=pinned --set async.eta="$1" \
    --set rollout.threads=1 --set train.threads=1
}
last_reward() {
  tail -n $last "$1/metrics.jsonl" | awk '{ at = index($0, "\"reward\":"); if (at) { sum += substr($0, at + 9) + 0; n++ } }
    END { if (n == 0) exit 1; printf "%.6f\n", sum / n }'
}
seconds() { tail -n 1 "$1/timings.jsonl" | awk '{ at = index($0, "\"wall\":"); print substr($0, at + 7) + 0 }'; }

printf '%-22s %6s  %s\n' "" seeds "mean, 95 % interval"
for eta in "${etas[@]}"; do
  for ((seed = 0; seed < seeds; seed++)); do
    one_run "$eta" "$seed"
    last_reward "$output/$eta-$seed"
  done | interval "eta $eta: reward" 22 3
  for ((seed = 0; seed < seeds; seed++)); do seconds "$output/$eta-$seed"; done | interval "eta $eta: seconds" 22 0
done
