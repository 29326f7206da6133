#!/bin/bash
# One group of several ranks, without a cluster: launch/mpirun.sh RANKS RUN_FILE [--set key=value ...]
# Example: launch/mpirun.sh 4 sft.yaml --set parallel.tp=2 --set parallel.dp=2
set -euo pipefail
if (($# < 2)); then sed -n '2,3s/^# //p' "$0" >&2; exit 2; fi
ranks=$1 run=$2
shift 2
# Allows root and more ranks than cores. After Ctrl-C, allows one minute for the step and its checkpoint.
exec mpirun --allow-run-as-root --oversubscribe --bind-to none --mca odls_base_sigkill_timeout 60 -n "$ranks" \
  "$(dirname "$0")/../build/release/troupe" train --config "$run" "$@"
