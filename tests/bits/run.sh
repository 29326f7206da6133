#!/bin/bash
# Bits of whole runs: SHA-256 of the weights that a run saves (policy, critic, reference, adapters) and of its metrics.jsonl, for each line of runs.txt.
# Usage: tests/bits/run.sh PROGRAM [NAME...]            compares with expected.txt; exit code 1 where a run differs
#        tests/bits/run.sh --record FILE PROGRAM        writes the bits of PROGRAM to FILE
# The bits are those of an x86-64 processor with AVX2 or more; they do not depend on the number of threads.
set -uo pipefail
cd "$(dirname "$0")/../.."

record=
if [[ ${1:-} == --record ]]; then record=${2:?--record needs a file}; shift 2; fi
program=$(realpath "${1:?usage: tests/bits/run.sh [--record FILE] PROGRAM [NAME...]}")
shift
wanted=" $* "
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

digits="data.path=launch/quickstart/train.jsonl model=tests/data/models/digit-completion train.max_length=64 train.learning_rate=1e-3 rollout.max_new_tokens=12"
rewards="reward=[{rule: exact_match}, {rule: length, max: 6, weight: 0.5}]"
pairs="data.path=tests/data/datasets/pairwise/hh_rlhf_harmless_base_test_head.jsonl"

# The base settings of an algorithm, one a line.
settings_of() {
  printf '%s\n' train.batch_size=4 train.threads=1 train.log_every=0 train.save_every=0
  case $1 in
    sft) printf '%s\n' model=tests/data/models/stories260k/hf data.path=tests/data/datasets/math/gsm8k_train_head.jsonl \
      train.max_length=192 train.learning_rate=1e-3 ;;
    dpo | simpo | cpo | orpo | kto) printf '%s\n' model=tests/data/models/stories260k/hf "$pairs" train.max_length=96 train.learning_rate=2e-4 ;;
    orm) printf '%s\n' model=tests/data/models/stories260k/hf "$pairs" train.max_length=300 train.learning_rate=2e-4 ;;
    prm) printf '%s\n' model=tests/data/models/stories260k/hf "data.path=$scratch/steps.jsonl" train.max_length=300 train.learning_rate=2e-4 ;;
    ppo) tr ' ' '\n' <<<"$digits critic.learning_rate=1e-3 ppo.epochs=2 ppo.minibatches=2 ppo.kl_schedule=adaptive ppo.truncated=value"
      echo "$rewards" ;;
    grpo) tr ' ' '\n' <<<"$digits grpo.group_size=4 grpo.beta=0.1 grpo.minibatches=2"
      echo "$rewards" ;;
    rloo | reinforce_pp*) tr ' ' '\n' <<<"$digits"; echo "$rewards" ;;
    *) tr ' ' '\n' <<<"$digits grpo.minibatches=2"; echo "$rewards" ;;
  esac
}

# run_one NAME WHERE ALGORITHM SETTINGS...: trains into $scratch/NAME.
run_one() {
  local name=$1 where=$2 algorithm=$3 steps=4 words=() each
  shift 3
  local arguments=(train --algorithm "$algorithm" --set "output=$scratch/$name")
  while read -r each; do arguments+=(--set "$each"); done < <(settings_of "$algorithm")
  for each in "$@"; do arguments+=(--set "$each"); done
  case $where in
    one) "$program" "${arguments[@]}" --set train.steps=$steps ;;
    resume:*) "$program" "${arguments[@]}" --set train.schedule=constant --set "train.steps=${where#resume:}" &&
      "$program" "${arguments[@]}" --set train.schedule=constant --set train.steps=$steps ;;
    mpi:*) mpirun --allow-run-as-root --oversubscribe -n "${where#mpi:}" "$program" "${arguments[@]}" --set train.steps=$steps ;;
    cluster:*)
      echo "groups: ${where#cluster:}" >"$scratch/cluster.yaml"
      "$program" launch --cluster "$scratch/cluster.yaml" -- "${arguments[@]}" --set train.steps=$steps ;;
  esac
}

# The bits of what NAME wrote: one hash of all saved weights, in the order of their names, and one of the metrics.
bits_of() {
  local folder=$scratch/$1 weights
  weights=$(cd "$folder" && find -L latest critic/latest reference/latest -name '*model*.safetensors' 2>/dev/null | sort | xargs sha256sum | sha256sum)
  echo "${weights%% *} $(sha256sum <"$folder/metrics.jsonl" | cut -d' ' -f1)"
}

for row in 1 2 3 4 5 6; do
  echo '{"prompt":"One day","completions":["he sat","he ran"],"labels":[true,false]}'
  echo '{"prompt":"One day","completions":["she ran","she sat"],"labels":[false,true]}'
done >"$scratch/steps.jsonl"

runs=0 bad=0
while IFS='|' read -r name where algorithm settings; do
  name=${name// /} where=$(sed 's/^ *//; s/ *$//' <<<"$where") algorithm=${algorithm// /}
  [[ $name == \#* || -z $name ]] && continue
  [[ $wanted != "  " && $wanted != *" $name "* ]] && continue
  # Settings are separated by blanks before "KEY="; values may hold blanks.
  mapfile -t each < <(sed -E 's/^ +//; s/ +$//; s/ +([a-z_]+(\.[a-z_]+)*=)/\n\1/g' <<<"$settings" | grep . || true)
  runs=$((runs + 1))
  if ! run_one "$name" "$where" "$algorithm" "${each[@]}" >"$scratch/$name.log" 2>&1 </dev/null; then
    echo "$name: the run failed:" >&2
    tail -3 "$scratch/$name.log" >&2
    bad=$((bad + 1))
    continue
  fi
  line="$name $(bits_of "$name")"
  if [[ -n $record ]]; then
    echo "$line" >>"$record"
  elif ! grep -qxF "$line" tests/bits/expected.txt; then
    echo "$name: other bits: expected $(grep "^$name " tests/bits/expected.txt), found $line" >&2
    bad=$((bad + 1))
  fi
  rm -rf "${scratch:?}/$name"
done <tests/bits/runs.txt
echo "$((runs - bad)) passed, $bad failed"
((bad == 0))
