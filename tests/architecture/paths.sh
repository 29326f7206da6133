#!/bin/bash
# The repository stands by itself: no path of somebody's machine, and nothing beside the repository but in .ci/.
cd "$1" || exit 2
bad=0
files() { find . -path ./.git -prune -o -path ./build -prune -o -path ./.ci -prune -o -path ./tests/architecture -prune -o -type f -size -1000k -print0; }
found=$(files | xargs -0 grep -InE '\.\./shared|/wor[k]/' 2>/dev/null)
if [ -n "$found" ]; then
  bad=1
  echo "only .ci/ may look beside the repository:"
  cut -c1-200 <<<"$found" | head -50
fi
found=$(files | xargs -0 grep -InE '(^|[^A-Za-z0-9._/-])/(home|root|Users)/[A-Za-z0-9._-]+' 2>/dev/null | grep -v '^\./tests/data/')
if [ -n "$found" ]; then
  bad=1
  echo "these name a path of somebody's machine:"
  cut -c1-200 <<<"$found" | head -50
fi
exit $bad
