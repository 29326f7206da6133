#!/bin/bash
# One group of several ranks, without a cluster: launch/mpirun.sh RANKS RUN_FILE [--set key=value ...]
# Example: launch/mpirun.sh 4 sft.yaml --set parallel.tp=2 --set parallel.dp=2
set -euo pipefail
if (($# < 2)); then sed -n '2,3s/^# //p' "$0" >&2; exit 2; fi
ranks=$1 run=$2 troupe="$(dirname "$0")/../build/release/troupe"
shift 2
# Runs mpirun in a network namespace, because its ports accept connections from every interface; ranks open no ports.
# Allows root and more ranks than cores. After Ctrl-C, allows one minute for the step and its checkpoint.
exec "$troupe" loopback -- mpirun --allow-run-as-root --oversubscribe --bind-to none --mca btl self,vader --mca oob_tcp_if_include lo \
  --mca odls_base_sigkill_timeout 60 -n "$ranks" "$troupe" train --config "$run" "$@"
