#!/bin/bash
# The one arrow: launch -> algorithms -> actors -> transports -> engine. A file includes its own folder and what is to the right.
# Within launch, the server stands beside algorithms: launch/serve includes of launch only launch/model, which includes nothing else of it.
cd "$1" || exit 2
order=(engine transports actors algorithms launch)
bad=0
for i in "${!order[@]}"; do
  for above in "${order[@]:i+1}" tests benchmarks; do
    found=$(grep -rnE "^[[:space:]]*#[[:space:]]*include[[:space:]]*[<\"]$above/" "${order[i]}" 2>/dev/null) || continue
    bad=1
    echo "${order[i]}/ may not include $above/ (the arrow is launch -> algorithms -> actors -> transports -> engine):"
    echo "$found"
  done
done
beside() {  # beside FOLDER ALLOWED: FOLDER includes of launch and algorithms only ALLOWED, a pattern
  found=$(grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"](launch|algorithms)/' "$1" 2>/dev/null | grep -vE "[<\"]($2)/") || return 0
  bad=1
  echo "$1 may include of launch and algorithms only $2:"
  echo "$found"
}
beside launch/serve 'launch/serve|launch/model'
beside launch/model 'launch/model'
# The audit is a second implementation: it shares nothing with what writes the ledger, and nothing uses it but the command.
found=$(grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"](engine/ledger|engine/generate|transports|actors|algorithms|launch)/' launch/audit 2>/dev/null |
  grep -vE '"launch/(audit/|run/exit_code\.h")')
found+=$(grep -rn '#include "launch/audit/' engine transports actors algorithms launch --include='*.h' --include='*.cpp' | grep -vE '^launch/(audit/|main\.cpp)')
if [ -n "$found" ]; then
  bad=1
  echo "launch/audit shares no code with the writer of the ledger, and is included by launch/main.cpp only:"
  echo "$found"
fi
exit $bad
