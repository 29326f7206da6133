#!/bin/bash
# The weights of pinned runs: tests/system/pinned.sh SEEDS KILLS [PROGRAM]
# GRPO on the digit task with async.eta 0, 1 and 4: in one process with one lane and with two, and in clusters with 1, 2 and 7 rollouts, whose
# processes are stopped at random times for up to 0.2 s (SEEDS runs of each, so that messages wait at every hand-over). Then, with eta 1, KILLS
# kills of the whole run at random times, each followed by the same command, and a run that is extended. Prints one SHA-256 of the final
# weights per eta; exits with 1 if there is another, or if that of eta 0 is not that of a synchronous run.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/../.."
seeds=${1:?SEEDS is missing} kills=${2:?KILLS is missing} program=${3:-build/release/troupe}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mark=TROUPE_PINNED=$$
steps=16
settings=(train --algorithm grpo --set model=launch/quickstart/model --set data.path=launch/quickstart/train.jsonl
  --set train.save_every=4 --set train.batch_size=8 --set train.max_length=64 --set train.learning_rate=1e-3 --set train.threads=1
  --set train.schedule=constant --set train.log_every=0 --set grpo.beta=0.1 --set grpo.group_size=4 --set grpo.minibatches=2
  --set rollout.max_new_tokens=12 --set 'reward=[{rule: exact_match}, {rule: length, max: 6, weight: 0.5}]')

alive() { grep -lzxs -- "$mark" /proc/[0-9]*/environ | cut -d/ -f3 || true; }
weights() { sha256sum <"$1/latest/model.safetensors" | cut -d' ' -f1; }
run() { # run OUTPUT STEPS [SETTING...]: in one process
  local output=$1 count=$2
  shift 2
  "$program" "${settings[@]}" --set output="$work/$output" --set train.steps="$count" "$@" 2>"$work/said"
}
disturb() { # disturb PID: until it ends, stops one process of the run after the other
  local there
  while kill -0 "$1" 2>/dev/null; do
    mapfile -t there < <(alive)
    ((${#there[@]})) || continue
    victim=${there[RANDOM % ${#there[@]}]}
    kill -STOP "$victim" 2>/dev/null || continue
    sleep "0.$(printf %03d $((RANDOM % 200)))"
    kill -CONT "$victim" 2>/dev/null || true
    sleep "0.$(printf %03d $((RANDOM % 50)))"
  done
}
launch() { # launch OUTPUT ROLLOUTS SETTING...: in a cluster that is disturbed
  local output=$1
  echo "groups: [{role: policy}, {role: reference}, {role: rollout, count: $2}, {role: verifier}]" >"$work/cluster.yaml"
  shift 2
  env "$mark" "$program" launch --cluster "$work/cluster.yaml" -- "${settings[@]}" --set output="$work/$output" --set train.steps=$steps "$@" \
    2>"$work/said" &
  local pid=$!
  disturb "$pid"
  wait "$pid"
}

bad=0 runs=0
expect() { # expect WHAT OUTPUT SUM: compares the weights and removes the run
  local found
  found=$(weights "$work/$2")
  runs=$((runs + 1))
  [[ $found == "$3" ]] || { bad=$((bad + 1)); echo "$1: the weights are $found, expected $3" >&2; }
  rm -rf "${work:?}/$2"
}

run off $steps
for eta in 0 1 4; do
  pinned=(--set async.mode=pinned --set async.eta="$eta")
  run whole $steps "${pinned[@]}"
  sum=$(weights "$work/whole")
  echo "eta $eta: $sum"
  [[ $eta != 0 ]] || expect "eta 0 and the synchronous run" off "$sum"
  rm -rf "$work/whole"
  for threads in 1 2; do
    run lanes $steps "${pinned[@]}" --set rollout.threads=$threads
    expect "eta $eta, rollout.threads $threads" lanes "$sum"
  done
  for rollouts in 1 2 7; do
    for ((RANDOM = 1, seed = 1; seed <= seeds; ++seed)); do
      RANDOM=$seed
      launch cluster $rollouts "${pinned[@]}"
      expect "eta $eta, $rollouts rollouts in a cluster, seed $seed" cluster "$sum"
    done
  done
  run extended 8 "${pinned[@]}" --set rollout.threads=1
  run extended $steps "${pinned[@]}" --set rollout.threads=1
  expect "eta $eta, extended from 8 to $steps steps" extended "$sum"
done

pinned=(--set async.mode=pinned --set async.eta=1 --set rollout.threads=1)
run whole $steps "${pinned[@]}"
sum=$(weights "$work/whole")
RANDOM=7
for ((done_kills = 0; done_kills < kills;)); do
  env "$mark" "$program" "${settings[@]}" --set output="$work/killed" --set train.steps=$steps "${pinned[@]}" 2>"$work/said" &
  pid=$!
  sleep "0.$(printf %03d $((100 + RANDOM % 900)))"
  if kill -9 "$pid" 2>/dev/null; then done_kills=$((done_kills + 1)); fi
  code=0
  wait "$pid" 2>/dev/null || code=$?
  if ((code == 0)); then
    expect "a killed run" killed "$sum"
  elif ((code != 137)); then
    bad=$((bad + 1))
    echo "the run exited with $code: $(tail -1 "$work/said")" >&2
  fi
done
run killed $steps "${pinned[@]}"
expect "a killed run" killed "$sum"
echo "$runs runs, $kills kills: $bad faults"
((bad == 0))
