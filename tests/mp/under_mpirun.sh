#!/bin/bash
# under_mpirun.sh PROGRAM RANKS SCENARIO: starts the program under mpirun and checks how and when it ended, and which processes remain.
program=$1 ranks=$2 scenario=$3
if ! command -v mpirun >/dev/null; then
  echo "SKIP: mpirun is not installed (apt-get install openmpi-bin)"
  exit 77
fi
said=$(mktemp) || exit 2
trap 'rm -f "$said"' EXIT
wrong() {
  echo "WRONG: $*"
  cat "$said"
  exit 1
}
left_behind() { pgrep -f "^$program $scenario $said\$"; }

if [[ $scenario == alone ]]; then
  "$program" collectives >"$said" 2>&1 && wrong "it ran without mpirun"
  grep -q 'started by mpirun (mpirun -n 4 troupe ...); this process was not' "$said" || wrong "it did not say why"
  exit 0
fi
# The name of the file is a third argument that marks our processes.
mpirun --allow-run-as-root --oversubscribe -n "$ranks" "$program" "$scenario" "$said" </dev/null >"$said" 2>&1 &
launcher=$!
if [[ $scenario == orphaned ]]; then
  until grep -q ready "$said"; do
    kill -0 "$launcher" 2>/dev/null || wrong "it ended early"
    sleep 0.02
  done
  left_behind >/dev/null || wrong "the processes of this test cannot be found"
  kill -KILL "$launcher"
fi
wait "$launcher" 2>/dev/null
code=$?
ended=$(date +%s%N)

# The last rank to die may be some milliseconds behind its mpirun.
for ((i = 0; i < 100; ++i)); do left_behind >/dev/null || break; sleep 0.02; done
left_behind >/dev/null && wrong "processes were left behind"

case ${scenario#mpi_} in
  collectives | blocks | operations | messages | idle | actor | stages) ((code == 0)) || wrong "mpirun ended with $code" ;;
  killed) expected='signal 9' ;;
  aborted) expected='rank 1 ended: the disk is full' ;;
  mistaken) expected='rank 1 ended: .*two and two make five' ;;
  thrown) expected='rank 1 ended: the disk is gone' ;;
  late) expected="rank [0-9]* ended: 'gradients of step 7': waited 0.3 s for rank 1.* of $ranks, which neither arrived nor aborted" ;;
  behind) expected="rank 3 ended: 'activations': waited 2.5 s for rank 2 (process [0-9]*) of 4, which neither arrived nor aborted" ;;
  lost) expected="rank [0-9]* ended: 'weights of step 7': waited 0.3 s for rank [0-9].* of 3, which neither arrived nor aborted" ;;
  shortened) expected="'weights of step 7': expected 8 bytes from rank 1 of the group, received 7" ;;
  misnamed) expected="'weights of step 7': expected 8 bytes from rank 1 of the group, received 8 of 'weights of step 8'" ;;
  unwaited) expected="'weights of step 7' was started, but its handle was destroyed before it was waited for" ;;
  orphaned) ((code == 137)) || wrong "mpirun ended with $code" ;;
  *) wrong "no scenario $scenario" ;;
esac
if [[ -n ${expected:-} ]]; then
  ((code != 0)) || wrong "mpirun ended well"
  grep -q "$expected" "$said" || wrong "nobody said: $expected"
fi
if [[ $scenario =~ (late|lost|behind)$ ]]; then
  ((code == 8)) || wrong "mpirun ended with $code, not with that of a timeout"
fi
if [[ $scenario =~ ^(killed|aborted|thrown|mistaken)$ ]]; then
  began=$(grep -oE 'ends at [0-9]+' "$said" | head -1 | grep -oE '[0-9]+') || wrong "rank 1 did not say when it ends"
  took=$(((ended - began) / 1000000))
  ((took <= 3000)) || wrong "the others ended $took ms after rank 1"
  echo "the others ended $took ms after rank 1"
fi
grep -E 'as threads give|as plain loops|as one rank|% of a core' "$said"
exit 0
