#!/bin/bash
# Checks the rules of the tree (tests/architecture/lints.txt) without a build. Prints what breaks a rule, and the seconds of each rule.
# Usage: tests/lint.sh [NAME]     NAME runs one rule and exits with its status; 77: what it needs is not installed. Without NAME all
# rules run, as many at a time as there are processors, and one that could not run is a failure.
set -euo pipefail
cd "$(dirname "$0")/.."
here=tests/architecture

command_of() { # the command of one line of lints.txt
  case $2 in
    *.py) echo "python3 -B $here/$2 $3 ." ;;
    *) echo "bash $here/$2 ." ;;
  esac
}

run_one() { # run_one NAME SCRIPT [RULE]: prints the output of a failed lint as one block
  local start=$SECONDS status=0 output
  output=$($(command_of "$@") 2>&1) || status=$?
  echo "$1: $( ((status)) && echo "FAILED ($status)" || echo ok), $((SECONDS - start)) s${output:+$'\n'$output}"
  return $((status != 0))
}

if (($# == 1)); then
  line=$(grep -E "^$1 " $here/lints.txt) || { echo "$1 is not in $here/lints.txt" >&2; exit 2; }
  # shellcheck disable=SC2086 # words of the list
  exec $(command_of $line)
fi
export -f run_one command_of
export here
# The slowest start first.
grep -E '^[A-Z]' $here/lints.txt | sort -k2,2 -t' ' -s |
  awk '{ slow = /doc_names|selftest|functions|commas|format/ ? 0 : 1; print slow, $0 }' | sort -s -n -k1,1 | cut -d' ' -f2- |
  xargs -P "$(nproc)" -d '\n' -I{} bash -c 'run_one $1' lint {}
