#!/bin/bash
# Inside the engine: base < {tensor, jinja} < ops < parallel < collectives < nn < models < {loss, optim, data, tokenizer, constraints, checkpoint} < {adapter, generate, ledger, train} < serving.
# A folder includes its own level and lower ones.
cd "$1" || exit 2
declare -A level=([base]=0 [jinja]=1 [tensor]=1 [ops]=2 [parallel]=3 [collectives]=4 [nn]=5 [models]=6 [loss]=7 [optim]=7 [data]=7 [tokenizer]=7
  [constraints]=7 [checkpoint]=7 [adapter]=8 [generate]=8 [ledger]=8 [train]=8 [serving]=9)
bad=0
for path in engine/*/; do
  folder=$(basename "$path")
  if [ -z "${level[$folder]}" ]; then
    echo "engine/$folder has no place in the order: give it one in tests/architecture/engine_order.sh"
    bad=1
    continue
  fi
  for other in "${!level[@]}"; do
    [ "${level[$other]}" -le "${level[$folder]}" ] && continue
    found=$(grep -rn "#include \"engine/$other/" "engine/$folder") || continue
    bad=1
    echo "engine/$folder may not include engine/$other, which stands above it:"
    echo "$found"
  done
done
if found=$(grep -rnE '#include "engine/(tensor|ops)/' engine/parallel 2>/dev/null); then
  bad=1
  echo "engine/parallel moves bytes and numbers: of the engine it includes engine/base only:"
  echo "$found"
fi
exit $bad
