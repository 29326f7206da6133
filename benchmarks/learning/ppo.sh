#!/bin/bash
# PPO with an outcome reward model raises that model's score while the policy stays near where it began. The reward model is trained from a
# model that knows the task, on pairs of a right and a wrong answer.
# Usage: benchmarks/learning/ppo.sh [SEEDS] [OUTPUT]   (5 seeds; about two minutes each on one core). TROUPE: the program.
# On stdout: the reward model's accuracy on pairs of held-out prompts, and over the seeds the score of the first and the last ten steps, the
# KL per sample of the last ten, the test accuracy before and after. Exit 1 unless every seed's score rises and every KL stays below 10 nats
# a sample. A run that is there already is not run again.
cd "$(dirname "$0")/../.."
. benchmarks/learning/digit_rows.sh
. benchmarks/learning/interval.sh
seeds=${1:-5} output=${2:-runs/learning/ppo} steps=80
mkdir -p "$output"

outcome_model() {
  warm_up "$output/knows" 500
  wrong_answers 1 <$rows/train.jsonl >"$output/pairs.jsonl"
  wrong_answers 2 <$rows/test.jsonl >"$output/pairs-held-out.jsonl"
  "$troupe" train --algorithm orm --set model="$output/knows/latest" --set data.path="$output/pairs.jsonl" --set output="$output/orm" \
    --set eval.path="$output/pairs-held-out.jsonl" --set train.steps=500 --set train.batch_size=64 --set train.max_length=64 \
    --set train.learning_rate=1e-3 --set train.weight_decay=0.1 --set train.save_every=0 --set orm.center_rewards_coefficient=0.01
}

# one_run SEED
one_run() {
  "$troupe" train --algorithm ppo --set model="$output/warm-up/latest" --set data.path=$rows/train.jsonl --set output="$output/seed-$1" \
    --set train.seed="$1" --set train.steps=$steps --set train.batch_size=64 --set train.max_length=64 --set train.learning_rate=2e-4 \
    --set train.schedule=constant --set train.save_every=0 --set rollout.max_new_tokens=32 --set rollout.max_sequences=256 \
    --set ppo.epochs=2 --set ppo.minibatches=1 --set ppo.samples=4 --set ppo.kl_coef=0.05 --set ppo.missing_eos_penalty=1 \
    --set critic.model="$output/orm/latest" --set critic.learning_rate=5e-4 --set critic.value_clip=0.5 \
    --set "reward=[{rule: model, path: '$output/orm/latest'}]"
}

once warm-up warm_up "$output/warm-up" 90
once orm outcome_model
echo "outcome reward model, pairs of held-out prompts: accuracy $(metric "$output/orm/metrics.jsonl" eval/accuracy 500 500)"
rm -f "$output"/{first,last,kl,accuracy}.txt
for ((seed = 0; seed < seeds; seed++)); do
  once "seed-$seed" one_run "$seed"
  metrics=$output/seed-$seed/metrics.jsonl
  metric "$metrics" objective/scores 1 10 >>"$output/first.txt"
  metric "$metrics" objective/scores $((steps - 9)) $steps >>"$output/last.txt"
  metric "$metrics" objective/kl $((steps - 9)) $steps >>"$output/kl.txt"
  accuracy "$output/seed-$seed/latest" $rows/test.jsonl >>"$output/accuracy.txt"
done
echo "score, first ten steps: $(mean_and_interval <"$output/first.txt")"
echo "score, last ten steps:  $(mean_and_interval <"$output/last.txt")"
echo "KL a sample, last ten:  $(mean_and_interval <"$output/kl.txt")"
echo "test accuracy: $(accuracy "$output/warm-up/latest" $rows/test.jsonl) before, $(mean_and_interval <"$output/accuracy.txt") after"
paste "$output"/{first,last,kl}.txt | awk '$2 <= $1 || $3 >= 10 { failed++ } END { exit failed > 0 }'
