#!/bin/bash
# Process rewards inside PPO against the outcome alone, where an outcome says too little: answers of six numbers and more, of which a weak
# policy hardly ever gets all right. Both arms have the same policy, critic, steps and outcome reward; one is also told which steps were
# right, by a process reward model.
# Usage: benchmarks/learning/prm_ppo.sh [SEEDS] [OUTPUT]   (5 seeds; about a minute an arm on two cores). TROUPE: the program.
# On stdout: the test accuracy on such answers of both arms over the seeds. Exit 1 unless process rewards win in every seed.
cd "$(dirname "$0")/../.."
. benchmarks/learning/digit_rows.sh
. benchmarks/learning/interval.sh
seeds=${1:-5} output=${2:-runs/learning/prm-ppo}
mkdir -p "$output"

warm_up "$output/warm-up" 70
longer 6 <$rows/train.jsonl >"$output/train.jsonl"
longer 6 <$rows/test.jsonl >"$output/test.jsonl"
judged_steps 1 <$rows/train.jsonl >"$output/steps.jsonl"
"$troupe" train --algorithm prm --set model="$output/warm-up/latest" --set data.path="$output/steps.jsonl" --set output="$output/prm" \
  --set prm.step_separator=, --set train.steps=300 --set train.batch_size=64 --set train.max_length=64 --set train.learning_rate=1e-3 \
  --set train.save_every=0 >&2

# arm NAME SEED REWARD
arm() {
  local run=$output/$1-$2
  "$troupe" train --algorithm ppo --set model="$output/warm-up/latest" --set data.path="$output/train.jsonl" --set output="$run" \
    --set train.seed="$2" --set train.steps=120 --set train.batch_size=32 --set train.max_length=64 --set train.learning_rate=3e-4 \
    --set train.schedule=constant --set train.save_every=0 --set rollout.max_new_tokens=32 --set rollout.max_sequences=256 \
    --set ppo.epochs=2 --set ppo.samples=4 --set ppo.kl_coef=0 --set ppo.step_baseline=0.5 --set critic.learning_rate=5e-4 \
    --set critic.value_clip=0.5 --set "reward=$3" >&2
  accuracy "$run/latest" "$output/test.jsonl" | tee -a "$output/$1.txt"
}

rm -f "$output"/{outcome,process}.txt
for ((seed = 0; seed < seeds; seed++)); do
  outcome=$(arm outcome "$seed" "[{rule: exact_match}]")
  process=$(arm process "$seed" "[{rule: exact_match}, {rule: process, path: '$output/prm/latest', separator: ',', aggregation: mean}]")
  echo "seed $seed: outcome $outcome, process $process"
done
echo "before:  $(accuracy "$output/warm-up/latest" "$output/test.jsonl")"
echo "outcome: $(mean_and_interval <"$output/outcome.txt")"
echo "process: $(mean_and_interval <"$output/process.txt")"
paste "$output"/{outcome,process}.txt | awk '$2 <= $1 { lost++ } END { exit lost > 0 }'
