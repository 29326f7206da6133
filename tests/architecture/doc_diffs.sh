#!/bin/bash
# Files that the pages add are new, and diffs that they show apply to the tree (tests/docs/extract.py).
extract=$(realpath "$(dirname "$0")")/../docs/extract.py
cd "$1" || exit 2
find docs -name '*.md' | sort | xargs -r python3 -B "$extract" check . 2>&1
