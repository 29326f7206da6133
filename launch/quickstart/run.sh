#!/bin/bash
# The demo, run with an existing build: launch/quickstart/run.sh SEEDS OUTPUT STAGE. Called by launch/quickstart.sh.
# STAGE: how GRPO runs: one_process, or cluster (as groups of processes, then in one process with the same grid; compares weights).
set -euo pipefail
shopt -s inherit_errexit
seeds=$1 output=$2 stage=$3
here=launch/quickstart
troupe=build/release/troupe

# Exact-match accuracy of greedy decoding on the 200 test prompts: "0.52".
accuracy() {
  "$troupe" eval --model "$1" --data $here/test.jsonl --reward exact_match --max-new-tokens 32 |
    awk '/^accuracy / { printf "%.2f\n", $2; found = 1 } END { exit !found }'
}

# grpo FOLDER SETTINGS...
grpo() {
  local folder=$1
  shift
  if [[ $stage == one_process ]]; then
    "$troupe" train "$@" --set output="$folder" >&2
    return
  fi
  # A small KL term makes use of the reference. The two runs have the same settings and must produce the same weights.
  "$troupe" launch --cluster $here/cluster.yaml -- train "$@" --set grpo.beta=1e-3 --set output="$folder" >&2
  "$troupe" train "$@" --set grpo.beta=1e-3 --set parallel.tp=2 --set output="$folder-one-process" >&2
  cmp "$folder/latest/model.safetensors" "$folder-one-process/latest/model.safetensors" >&2
}

one_seed() {
  local seed=$1 folder=$2 rows=$here/train.parquet before warm after
  # Without the Arrow library, read the same rows from the JSON-lines file.
  [[ -e build/release/libtroupe_parquet.so ]] || rows=$here/train.jsonl
  before=$(accuracy $here/model)
  echo "accuracy $before (before)"
  "$troupe" train --config $here/sft.yaml --set data.path=$rows --set output="$folder/warm-up" --set train.seed="$seed" >&2
  warm=$(accuracy "$folder/warm-up/latest")
  echo "accuracy $warm (warm-up)"
  grpo "$folder/grpo" --config $here/grpo.yaml --set model="$folder/warm-up/latest" --set data.path=$rows --set train.seed="$seed"
  after=$(accuracy "$folder/grpo/latest")
  echo "accuracy $after (after)"
  echo "$seed $before $warm $after" >>"$output/seeds.txt"
}

mkdir -p "$output"
: >"$output/seeds.txt"
if ((seeds == 1)); then
  one_seed 0 "$output"
  [[ $stage == one_process ]] || echo "weights: bit-identical to the same grid in one process"
  echo "plot: $output/grpo/plot.svg"
  echo "checkpoint: $(readlink -f "$output/grpo/latest")"
  exit 0
fi
for ((seed = 0; seed < seeds; seed++)); do
  echo "seed $seed"
  one_seed "$seed" "$output/seed-$seed"
done
awk '{ n++; for (i = 2; i <= 4; i++) { sum[i] += $i; square[i] += $i * $i } rises += $4 > $3 && $3 > $2 }
  END { split("- before warm-up after", name, " ")
    for (i = 2; i <= 4; i++) { mean = sum[i] / n; v = square[i] / n - mean * mean
      printf "%s: mean %.3f, standard deviation %.3f over %d seeds\n", name[i], mean, sqrt(v > 0 ? v : 0), n }
    printf "%d of %d seeds rise\n", rises, n; exit rises < n }' "$output/seeds.txt"
