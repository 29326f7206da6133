#!/bin/bash
# Names in backticks in the documentation exist: paths in the tree, identifiers in the sources, keys in the reference page.
# Left out: pages about other tools (coming-from-*, compatibility.md), fenced blocks, and placeholders in capitals (NAME, DIR).
# A page also knows what its worked examples add (tests/docs/extract.py).
# Names of headers, sources, scripts and pages in comments of the sources exist, too: a path from the root, or its end.
extract=$(realpath "$(dirname "$0")")/../docs/extract.py
cd "$1" || exit 2
words=$(mktemp)
added=$(mktemp)
trap 'rm -f "$words" "$added"' EXIT
# All words of the sources, scripts and build files.
find engine transports actors algorithms launch tests benchmarks cmake -type f \
  \( -name '*.h' -o -name '*.cpp' -o -name '*.sh' -o -name '*.txt' -o -name '*.cmake' -o -name '*.yaml' -o -name '*.py' \) -size -400k -print0 |
  xargs -0 -r cat ./*.json 2>/dev/null | grep -oE '[A-Za-z_][A-Za-z0-9_]*' | sort -u >"$words"

# Names of other programs and files that runs write.
foreign='(cblas_sgemm|dnnl_sgemm|config\.yaml|clean_up_tokenization_spaces|target_parameters|use_adaptive_entropy|[A-Za-z0-9_]+For(CausalLM|SequenceClassification|TokenClassification))'

bad=0
while IFS= read -r page; do
  python3 -B "$extract" words . "$page" >"$added"
  # LINE:TOKEN of each token in backticks outside fenced blocks.
  while IFS=: read -r line token; do
    case $token in
      *[[:space:]\<\>\*\{\}\$\\\'\"=,\|]* | http* | -* | /*) continue ;;  # commands, sets, flags, values
    esac
    [[ $token =~ (^|[^A-Za-z])[A-Z][A-Z_]+([^a-z]|$) ]] && continue  # placeholders
    [[ $token =~ ^$foreign$ ]] && continue
    found=1
    grep -qxF "${token##*/}" "$added" && continue
    if [[ $token =~ ^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)+/?$ && $token =~ ^(engine|transports|actors|algorithms|launch|tests|benchmarks|docs|cmake)/ ]]; then
      [[ -e ${token%/} || -e $token.cpp || -e $token.h ]] || compgen -G "$token*" >/dev/null || found=0
    elif [[ $token =~ ^[A-Za-z0-9_.-]+\.(h|cpp|sh|md|yaml)$ ]]; then
      [[ -n $(find . -path ./build -prune -o -path ./.git -prune -o -name "$token" -print -quit) ]] || found=0
    elif [[ $token =~ ^[a-z]+(\.[a-z0-9_]+)+$ ]]; then
      continue  # keys of the run file: tests/launch/coming_from_test.cpp checks them
    elif [[ $token =~ ^~?[A-Za-z_][A-Za-z0-9_]*((::|\.|->)[A-Za-z_][A-Za-z0-9_]*)*(\(\))?$ ]]; then
      name=${token%%(*}
      name=${name##*::}
      name=${name##*.}
      name=${name##*->}
      if [[ $name == *_* || $name =~ [a-z][A-Z] || $token == *::* || $token == *\(\) ]]; then
        grep -qxF "$name" "$words" "$added" || found=0
      fi
    fi
    if ((!found)); then
      bad=1
      echo "$page:$line: \`$token\` does not exist in the tree"
    fi
  done < <(awk '/^ *```/ { fenced = !fenced; next } !fenced { n = split($0, part, "`"); for (i = 2; i <= n; i += 2) print FNR ":" part[i] }' "$page")
done < <(find README.md CONTRIBUTING.md SECURITY.md docs benchmarks -name '*.md' 2>/dev/null | grep -vE 'docs/(coming-from-|compatibility|development/)' | sort)

# Files of other projects, and placeholders in capitals.
others='^(tensorflow/|linux/|docs/(pytorch/)?models/dense_model\.md)'
files=$(find . \( -path ./build -o -path ./.git \) -prune -o -type f -print | sed 's,^\./,,')
missing=$(find engine transports actors algorithms launch tests benchmarks -type f \( -name '*.h' -o -name '*.cpp' \) -print0 |
  xargs -0 -r grep -nHoE '(^|[^:"])//.*' |
  awk -v others="$others" '
    FNR == NR { for (path = $0; !(path in known); path = substr(path, index(path, "/") + 1)) known[path]; next }
    {
      match($0, /^[^:]*:[0-9]+:/)
      where = substr($0, 1, RLENGTH); text = substr($0, RLENGTH + 1)
      while (match(text, /[][*{},A-Za-z0-9_.\/-]*[A-Za-z0-9_]\.(h|cpp|md|sh|cmake)([^A-Za-z0-9_]|$)/)) {
        name = substr(text, RSTART, RLENGTH); text = substr(text, RSTART + RLENGTH)
        sub(/[^A-Za-z0-9_]$/, "", name)
        if (name ~ /^\/\/|[][*{},]|[A-Z][A-Z]/) continue  # addresses, sets, placeholders
        gsub(/^[.\/]+/, "", name)
        if (name !~ others && !(name in known)) print where " " name " does not exist in the tree"
      }
    }' <(echo "$files") -)
[ -z "$missing" ] && exit $bad
echo "$missing"
exit 1
