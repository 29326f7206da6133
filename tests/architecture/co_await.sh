#!/bin/bash
# g++ 12 destroys some temporaries of a co_await expression twice and miscompiles some of its contexts
# (docs/decisions/0013-co-await-forms.md). Forbidden in a statement with co_await: braces (aggregates,
# lambdas), an if or switch condition, a structured binding. Forbidden in a coroutine's declaration:
# a default argument `= {}`.
cd "$1" || exit 2
files=$(grep -rlE --include='*.h' --include='*.cpp' 'co_await|Task<' \
  engine transports actors algorithms launch tests benchmarks 2>/dev/null)
[ -z "$files" ] && exit 0
found=$(awk '
  # The statement before co_await: everything after the last ";", "{" or "}" of `head`.
  function check(head, tail,   before, delimiter, condition, opened) {
    delimiter = "";  before = head
    if (match(head, /[;{}][^;{}]*$/)) {
      delimiter = substr(head, RSTART, 1)
      before = substr(head, RSTART + 1)
    }
    if (before ~ /operator[ \n]*$/) return ""
    if (before ~ /auto[ \n]*&*[ \n]*\[[^]]*\][ \n]*=/) return "structured binding"
    condition = before
    if (match(condition, /(^|[^A-Za-z0-9_])(if|switch)[ \n]*\(/)) {
      condition = substr(condition, RSTART)
      opened = gsub(/\(/, "(", condition) - gsub(/\)/, ")", condition)
      if (opened > 0) return "condition"
    }
    if (delimiter == "}" && before ~ /^[ \n]*[],).:?+*\/<>=&|-]/) return "braces"
    match(tail, /[;{}]/)
    if (substr(tail, RSTART, 1) != ";") return "braces"
    return ""
  }
  function finish(   rest, at, why, head) {
    head = ""; rest = text
    while ((at = match(rest, /co_await/)) > 0) {
      head = head substr(rest, 1, at - 1)
      rest = substr(rest, at + 8)
      if (head !~ /[A-Za-z0-9_]$/ && rest !~ /^[A-Za-z0-9_]/) {
        why = check(head, rest)
        if (why != "") printf "%s:%d: %s: %s\n", name, lines(head), why, source[lines(head)]
      }
      head = head "co_await"
    }
    head = ""; rest = text
    while ((at = match(rest, /Task<[^;{}()]*\([^;{}]*=[ \n]*\{\}/)) > 0) {
      printf "%s:%d: default argument = {}: %s\n", name, lines(substr(text, 1, length(text) - length(rest) + at)),
        substr(rest, RSTART, RLENGTH)
      rest = substr(rest, at + RLENGTH)
    }
  }
  function lines(part) { return 1 + gsub(/\n/, "\n", part) }
  FNR == 1 { if (name != "") finish(); name = FILENAME; text = "" }
  {
    source[FNR] = $0
    gsub(/"([^"\\]|\\.)*"/, "\"\"")
    sub(/\/\/.*/, "")
    text = text $0 "\n"
  }
  END { finish() }
' $files)
[ -z "$found" ] && exit 0
echo "co_await: name the message, lambda or condition on a line before; found:"
echo "$found"
exit 1
