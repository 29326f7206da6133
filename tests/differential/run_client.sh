#!/bin/bash
# Runs a script of a client with $TROUPE_PYTHON or python3: tests/differential/run_client.sh SCRIPT PROGRAM SOURCE. Exit code 77: the client is not installed.
set -euo pipefail
script=$1
shift
exec "${TROUPE_PYTHON:-python3}" -B "$(dirname "$0")/$script.py" "$@"
