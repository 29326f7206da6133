#!/bin/bash
# From a fresh clone to a trained policy: installs missing packages, builds the program and trains the bundled digit-completion model.
# Usage: launch/quickstart.sh [--seeds N] [--output FOLDER] [--cluster]
# --cluster: runs GRPO as groups of processes (launch/quickstart/cluster.yaml) and in one process with the same grid; compares weights.
# Prints to stdout: the test accuracy before training, after the warm-up and after GRPO; the paths of plot and checkpoint. Logs: stderr.
set -euo pipefail
cd "$(dirname "$0")/.."

seeds=1 output= stage=one_process
while (($# > 0)); do
  case $1 in
    --seeds) seeds=${2:?--seeds needs a number}; shift 2 ;;
    --output) output=${2:?--output needs a folder}; shift 2 ;;
    --cluster) stage=cluster; shift ;;
    -h | --help) sed -n '2,5s/^# //p' "$0"; exit 0 ;;
    *) echo "quickstart: unknown option $1 (known: --seeds N, --output FOLDER, --cluster)" >&2; exit 2 ;;
  esac
done
if [[ -z $output ]]; then output=runs/quickstart; [[ $stage == cluster ]] && output+=-cluster; fi
if ! [[ $seeds =~ ^[1-9][0-9]*$ ]]; then echo "quickstart: --seeds $seeds: expected a number, 1 or more" >&2; exit 2; fi

cmake/install_packages.sh
cmake/fetch_arrow.sh build/release || true # it has printed what is missing
cmake --preset release >&2
cmake --build --preset release -j "$(nproc)" --target troupe >&2

exec launch/quickstart/run.sh "$seeds" "$output" "$stage"
