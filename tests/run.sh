#!/bin/bash
# Installs what is missing, builds everything in build/release and runs all tests; ctest's summary ends the output.
# Usage: tests/run.sh [CTEST OPTIONS...]     TROUPE_GOLDEN=FOLDER runs the golden tests over another set of files.
set -euo pipefail
cd "$(dirname "$0")/.."

start=$SECONDS
cmake/install_packages.sh
cmake/fetch_arrow.sh build/release || true # it has said what is missing; everything else works without
cmake --preset release >&2
cmake --build --preset release -j "$(nproc)" >&2
echo "build: $((SECONDS - start)) s" >&2
ctest --test-dir build/release -j 2 --output-on-failure "$@"
