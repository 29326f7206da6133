#!/bin/bash
# Runs openai_client.py with $TROUPE_PYTHON or python3: tests/differential/run_client.sh PROGRAM SOURCE.
set -euo pipefail
exec "${TROUPE_PYTHON:-python3}" -B "$(dirname "$0")/openai_client.py" "$@"
