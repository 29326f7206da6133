#!/bin/bash
# A run as groups of processes on this machine: launch/cluster.sh CLUSTER_FILE RUN_FILE [--set key=value ...]
# Example: launch/cluster.sh launch/quickstart/cluster.yaml launch/quickstart/grpo.yaml --set model=DIR --set data.path=ROWS
#   --set output=runs/cluster --set grpo.beta=1e-3
set -euo pipefail
if (($# < 2)); then sed -n '2,4s/^# //p' "$0" >&2; exit 2; fi
cluster=$1 run=$2
shift 2
exec "$(dirname "$0")/../build/release/troupe" launch --cluster "$cluster" -- train --config "$run" "$@"
