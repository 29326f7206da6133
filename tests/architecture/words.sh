#!/bin/bash
# The terms of the field, one word per meaning (docs/glossary.md): words that have stood for something else are not used again, in code,
# messages, help texts and documentation.
cd "$1" || exit 2
bad=0
files=$(
  find engine transports actors algorithms launch tests benchmarks docs cmake 2>/dev/null \( -name data -o -name corpus -o -name architecture -o -path docs/development \) -prune \
    -o -type f \( -name '*.h' -o -name '*.cpp' -o -name '*.md' -o -name '*.sh' -o -name '*.yaml' -o -name '*.txt' -o -name '*.cmake' \) -print
  find . -maxdepth 1 -name '*.md'
)
# deny PATTERN INSTEAD [ALLOWED]: extended regular expressions; ALLOWED matches "PATH:LINE:TEXT" where the word has its usual sense.
deny() {
  local found
  found=$(xargs grep -nHE -e "$1" <<<"$files" | sed 's,^\./,,')
  [ -n "${3:-}" ] && found=$(grep -vE -e "$3" <<<"$found")
  [ -z "$found" ] && return
  bad=1
  echo "write \"$2\" instead of $1:"
  cut -c1-160 <<<"$found"
}
deny '\b[Cc]rew\b' 'supervisor'
deny '\b[Ff]allen\b' 'exited process'
deny '\b(bury|buries|buried)\b' 'reap, mark dead'
deny '\b[Hh]oused\b|\bHouse\b' 'rank resources, role on a rank'
deny '\bCast\b' 'actor provider'
deny '\bconducts?\b' 'run' 'CODE_OF_CONDUCT'
deny 'last_words|last words' 'last output'
deny '\b[Gg]oodbye\b' 'bye'
deny '\b[Ss]tation\b' 'endpoint'
deny '\b[Ww]itness(es)?\b' 'observer'
deny '\bconverse\b' 'run_async'
deny 'quiet.thread' 'thread with blocked signals'
deny 'lost.pages' 'faults of mapped files'
deny 'not-a-number' 'NaN'
deny 'as_they_are' 'full'
deny '\bask_what|keep_busy' 'request rewards'
deny '\bgoes on from\b' 'resumes from, continues with'
deny '\b[Ll]et go\b' 'dropped'
exit $bad
