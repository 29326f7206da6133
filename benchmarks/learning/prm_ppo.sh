#!/bin/bash
# PPO with and without process rewards, for sparse outcome rewards: answers of at least six numbers, which a weak policy rarely gets right.
# Both runs have the same policy, critic, steps and outcome reward; one also has a process reward model, trained on answers that are partly
# correct, from a model that knows the task.
# Usage: benchmarks/learning/prm_ppo.sh [SEEDS] [OUTPUT]   (5 seeds; about two minutes per run on one core). TROUPE: the program.
# On stdout: the process reward model's accuracy on steps of held-out prompts, and the test accuracy of both runs on such answers over the
# seeds. Exit 1 unless process rewards win in every seed. Existing runs are not repeated.
cd "$(dirname "$0")/../.."
. benchmarks/learning/digit_rows.sh
. benchmarks/learning/interval.sh
seeds=${1:-5} output=${2:-runs/learning/prm-ppo}
mkdir -p "$output"
longer 6 <$rows/train.jsonl >"$output/train.jsonl"
longer 6 <$rows/test.jsonl >"$output/test.jsonl"

process_model() {
  warm_up "$output/knows" 500
  labelled_steps 1 <$rows/train.jsonl >"$output/steps.jsonl"
  labelled_steps 2 <$rows/test.jsonl >"$output/steps-held-out.jsonl"
  "$troupe" train --algorithm prm --set model="$output/knows/latest" --set data.path="$output/steps.jsonl" --set output="$output/prm" \
    --set eval.path="$output/steps-held-out.jsonl" --set prm.step_separator=, --set train.steps=600 --set train.batch_size=128 \
    --set train.max_length=64 --set train.learning_rate=1e-3 --set train.weight_decay=0.1 --set train.save_every=0
}

# arm NAME SEED REWARD
arm() {
  "$troupe" train --algorithm ppo --set model="$output/warm-up/latest" --set data.path="$output/train.jsonl" --set output="$output/$1-$2" \
    --set train.seed="$2" --set train.steps=160 --set train.batch_size=32 --set train.max_length=64 --set train.learning_rate=5e-4 \
    --set 'train.betas=[0.9, 0.98]' --set train.schedule=linear --set train.save_every=0 --set rollout.max_new_tokens=32 \
    --set rollout.max_sequences=512 --set ppo.epochs=1 --set ppo.samples=8 --set ppo.kl_coef=0 --set ppo.step_baseline=0.5 \
    --set critic.learning_rate=1e-3 --set critic.value_clip=0 --set "reward=$3"
}

once warm-up warm_up "$output/warm-up" 70
once prm process_model
echo "process reward model, steps of held-out prompts: accuracy $(metric "$output/prm/metrics.jsonl" eval/accuracy 600 600)"
rm -f "$output"/{outcome,process}.txt
for ((seed = 0; seed < seeds; seed++)); do
  once "outcome-$seed" arm outcome "$seed" "[{rule: exact_match}]"
  once "process-$seed" arm process "$seed" "[{rule: exact_match}, {rule: process, path: '$output/prm/latest', separator: ',', aggregation: mean}]"
  for name in outcome process; do accuracy "$output/$name-$seed/latest" "$output/test.jsonl" >>"$output/$name.txt"; done
  echo "seed $seed: outcome $(tail -n 1 "$output/outcome.txt"), process $(tail -n 1 "$output/process.txt")"
done
echo "before:  $(accuracy "$output/warm-up/latest" "$output/test.jsonl")"
echo "outcome: $(mean_and_interval <"$output/outcome.txt")"
echo "process: $(mean_and_interval <"$output/process.txt")"
paste "$output"/{outcome,process}.txt | awk '$2 <= $1 { lost++ } END { exit lost > 0 }'
