#!/bin/bash
# Compares troupe with tokenizers, transformers, jinja2 and sentencepiece: tests/differential/run.sh PROGRAM [PART] [COUNT] [SEED].
# compare.py describes the arguments. The interpreter is $TROUPE_PYTHON or python3; exit code 77: it lacks a library.
set -euo pipefail
here=$(dirname "$0")
exec "${TROUPE_PYTHON:-python3}" -B "$here/compare.py" "$@"
