#!/bin/bash
# The one arrow: launch -> algorithms -> actors -> transports -> engine. A file includes its own folder and what is to the right.
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
exit $bad
