#!/bin/bash
# Every file is as clang-format leaves it. 77: skipped.
cd "$1" || exit 2
if ! command -v clang-format >/dev/null; then
  echo "SKIP: clang-format is not installed (apt-get install clang-format)"
  exit 77
fi
version=$(clang-format --version | grep -oE '[0-9]+' | head -1)
if [ "$version" != 14 ]; then
  echo "SKIP: the format is that of clang-format 14 (Debian 12); this is $version"
  exit 77
fi
find engine transports actors algorithms launch tests benchmarks -name '*.h' -o -name '*.cpp' |
  xargs -r clang-format --dry-run -Werror 2>&1 | grep -E 'error:' | cut -d: -f1 | sort | uniq -c >"${TMPDIR:-/tmp}/format.$$"
bad=$(cat "${TMPDIR:-/tmp}/format.$$")
rm -f "${TMPDIR:-/tmp}/format.$$"
[ -z "$bad" ] && exit 0
echo "run clang-format -i on these files (left: places that differ):"
echo "$bad"
exit 1
