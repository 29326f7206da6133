#!/bin/bash
# Inside the engine: base < {tensor, jinja} < ops < parallel < nn < models < {loss, optim, data, tokenizer, constraints, checkpoint} < {adapter, generate, train} < serving.
# A folder includes its own level and lower ones.
cd "$1" || exit 2
declare -A level=([base]=0 [jinja]=1 [tensor]=1 [ops]=2 [parallel]=3 [nn]=4 [models]=5 [loss]=6 [optim]=6 [data]=6 [tokenizer]=6
  [constraints]=6 [checkpoint]=6 [adapter]=7 [generate]=7 [train]=7 [serving]=8)
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
