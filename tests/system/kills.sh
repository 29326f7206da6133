#!/bin/bash
# Sends SIGKILL to random processes of a cluster run at random times: tests/system/kills.sh KILLS [PROGRAM [SEED]]
# Each run is GRPO on the digit task with a policy of two ranks under mpirun, a reference, two rollouts and a verifier. Each kill hits one
# process, including launch and mpirun. Nothing is replaced (faults.py has the runs with replacement). The run must stop within 3 s without leaving processes, the same command must resume, and a run
# that completes must have the weights of an undisturbed one. Prints each kill and the time until the run stopped; exits with 1 on failure.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/../.."
kills=${1:?KILLS is missing} program=${2:-build/release/troupe} seed=${3:-1}
RANDOM=$seed
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mark=TROUPE_KILLS=$$
cat >"$work/cluster.yaml" <<'END'
groups:
  - {role: policy, parallel: {tp: 2}}
  - {role: reference}
  - {role: rollout, count: 2}
  - {role: verifier}
END
settings=(train --algorithm grpo --set model=launch/quickstart/model --set data.path=launch/quickstart/train.jsonl --set train.steps=60
  --set train.save_every=4 --set train.batch_size=8 --set train.max_length=64 --set train.learning_rate=1e-3 --set train.threads=1
  --set train.log_every=0 --set grpo.beta=0.1 --set grpo.group_size=4 --set grpo.minibatches=2 --set rollout.max_new_tokens=12 --set recovery.restarts=0
  --set 'reward=[{rule: exact_match}, {rule: length, max: 6, weight: 0.5}]')

alive() { grep -lzxs -- "$mark" /proc/[0-9]*/environ | cut -d/ -f3 || true; }
now() { echo "${EPOCHREALTIME/[.,]/}"; }
name_of() { # of a process: its node, or what it is
  local words
  words=$(tr '\0' ' ' <"/proc/$1/cmdline" 2>/dev/null) || true
  case $words in
    *" launch "*) echo launch ;;
    *mpirun*) echo mpirun ;;
    *) grep -ohE "[a-z0-9-]+: process $1 is ready" "$work"/run/logs/*.log 2>/dev/null | tail -1 | cut -d: -f1 | grep . || echo "rank or beginner" ;;
  esac
}
same() { cmp -s "$1/latest/model.safetensors" "$2/latest/model.safetensors" && cmp -s "$1/metrics.jsonl" "$2/metrics.jsonl"; }

"$program" "${settings[@]}" --set parallel.tp=2 --set output="$work/whole" 2>"$work/whole.log"
bad=0 done_kills=0 finished=0
: >"$work/kills.txt"
while ((done_kills < kills)); do
  env "$mark" "$program" launch --cluster "$work/cluster.yaml" -- "${settings[@]}" --set output="$work/run" >"$work/said" 2>&1 &
  run=$!
  sleep "$(printf '%d.%03d' $((RANDOM % 3)) $((RANDOM % 1000)))"
  mapfile -t there < <(alive)
  if ((${#there[@]} > 0)); then
    victim=${there[RANDOM % ${#there[@]}]}
    kind=$(name_of "$victim")
    begin=$(now)
    kill -9 "$victim" 2>/dev/null || victim=
  else
    victim=
  fi
  code=0
  wait "$run" 2>/dev/null || code=$?
  if [[ -n $victim && $code != 0 ]]; then
    while [[ -n $(alive) ]] && (($(now) - begin < 20000000)); do :; done
    took=$((($(now) - begin) / 1000))
    done_kills=$((done_kills + 1))
    echo "$kind $took $code" | sed 's/ or beginner/-or-beginner/' >>"$work/kills.txt"
    expected=11
    [[ $kind == launch ]] && expected=137
    if ((code != expected || took > 3000)) || [[ -n $(alive) ]]; then
      bad=$((bad + 1))
      echo "kill $done_kills of $kind: exit code $code (expected $expected), $took ms, left: $(alive | tr '\n' ' ')" >&2
      tail -3 "$work/said" >&2
    fi
  elif ((code == 0)); then
    finished=$((finished + 1))
    same "$work/whole" "$work/run" || { bad=$((bad + 1)); echo "a finished run differs from the one that nobody disturbed" >&2; }
    rm -rf "$work/run"
  else
    bad=$((bad + 1))
    echo "the run exited with $code without a kill: $(tail -1 "$work/said")" >&2
  fi
done
"$program" launch --cluster "$work/cluster.yaml" -- "${settings[@]}" --set output="$work/run" 2>"$work/said"
same "$work/whole" "$work/run" || { bad=$((bad + 1)); echo "the last run differs from the one that nobody disturbed" >&2; }
awk '{ n[$1]++; sum[$1] += $2; if ($2 > most[$1]) most[$1] = $2; all++; total += $2; if ($2 > worst) worst = $2 }
  END { for (kind in n) printf "%-16s %3d kills, ended after %4d ms on average, %4d ms at most\n", kind, n[kind], sum[kind] / n[kind], most[kind]
    printf "%-16s %3d kills, ended after %4d ms on average, %4d ms at most\n", "all", all, total / all, worst }' "$work/kills.txt" | sort
echo "$((finished + 1)) runs came to their end with the bytes of an undisturbed one; $bad faults"
((bad == 0))
