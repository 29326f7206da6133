#!/bin/bash
# The terms of the field, one word per meaning (docs/glossary.md): words that have stood for something else are not used again, in code,
# messages, help texts and documentation.
cd "$1" || exit 2
bad=0
files=$(
  find engine transports actors algorithms launch tests benchmarks docs cmake 2>/dev/null \( -path tests/data -o -name corpus -o -name architecture -o -path docs/development \) -prune \
    -o -type f \( -name '*.h' -o -name '*.cpp' -o -name '*.md' -o -name '*.sh' -o -name '*.yaml' -o -name '*.txt' -o -name '*.cmake' \) -print
  find . -maxdepth 1 -name '*.md'
)
# Identifiers in CamelCase and their words: "PATH:LINE:lost pages (LostPages)".
split_names() {
  sed -E 's/^([^:]*:[0-9]+:)(.*)$/\1\2 (\2)/; :split; s/^(.*[a-z0-9])([A-Z][^(]*) \(/\1 \l\2 (/; t split' |
    sed -E ':split; s/^([^(]*\b[A-Z])([A-Z][a-z][^(]*) \(/\1 \2 (/; t split; s/^([^:]*:[0-9]+:)([^(]*)\(/\1\L\2\E(/'
}
sources=$(grep -E '\.(h|cpp)$' <<<"$files")
names=$(xargs grep -nHoE '\b[A-Z][A-Za-z0-9]*[A-Z][A-Za-z0-9]*\b' <<<"$sources" | sort -u -t: -k3,3 | split_names)
# Suites of tests and types.
declared=$(xargs grep -nHoE '^ *(TEST(_F|_P)?\(|(struct|class|using) )[A-Za-z0-9]+' <<<"$sources" |
  sed -E 's/^([^:]*:[0-9]+:).*[( ]/\1/' | split_names)
report() { # report FOUND PATTERN INSTEAD
  [ -z "$1" ] && return
  bad=1
  echo "write \"$3\" instead of $2:"
  cut -c1-160 <<<"$1"
}
# deny PATTERN INSTEAD [ALLOWED]: extended regular expressions; ALLOWED matches "PATH:LINE:TEXT" where the word has its usual sense.
deny() {
  local found
  found=$(xargs grep -nHE -e "$1" <<<"$files"; grep -E -e "$1" <<<"$names")
  found=$(sed 's,^\./,,' <<<"$found")
  [ -n "${3:-}" ] && found=$(grep -vE -e "$3" <<<"$found")
  report "$found" "$1" "$2"
}
# deny_name PATTERN INSTEAD: the whole name of a suite of tests or of a type of the tests, as words.
deny_name() {
  report "$(grep -E -e "^(\./)?tests/[^:]*:[0-9]+:($1) \(" <<<"$declared")" "$1" "$2"
}

# Processes and actors
deny '\b[Cc]rew\b' 'supervisor'
deny '\b[Ff]allen\b' 'exited process'
deny '\b(bury|buries|buried)\b' 'reap, mark dead'
deny '\b[Hh]oused\b|\bHouse\b' 'rank resources, role on a rank'
deny '\bCast\b' 'actor provider'
deny '\bStage\b' 'run context, phase, test fixture' 'struct ModelSpec|tests/algorithms/|decoder\.cpp:.*\bStage\b'
deny '\bconducts?\b' 'run' 'CODE_OF_CONDUCT'
deny 'last_words|last words' 'last output'
deny '\b[Gg]oodbye\b' 'bye'
deny '\b[Ss]tation\b' 'endpoint'
deny '\b[Ww]itness(es)?\b' 'observer'
deny '\bconverse\b' 'run_async'
deny '\btogether\(\)' 'when_all, gather'
deny '\bLane\b' 'executor, lane of a SIMD register'
deny 'quiet.thread' 'thread with blocked signals'
deny 'lost.pages' 'faults of mapped files'
deny '\b[Pp]atience\b' 'timeout' '^CHANGELOG\.md|early[ _]stopping|/(model_selection|evaluation)'
deny '\b[Dd]ialects?\b' 'compat, form' '^CHANGELOG\.md'

# Computation
deny '\bslopes?\b|\bslope_' 'gradient, derivative' '[Aa][Ll][Ii][Bb][Ii]|^engine/(ops|models)/|^tests/engine/ops/oracle\.cpp|slopes_of'
deny 'way back|way forward|there and back' 'backward, forward, round trip'
deny '\bapart\b' 'stride, leading dimension, difference' 'minutes apart|moment apart'
deny '[^a-z_](most|least)_[a-z]' 'max_, min_'
deny '\b[a-z_]*deviations?\b' 'std_dev, standard deviation' '[Ss]tandard deviations?|:[0-9]+:[/# ]*deviations?\b'
deny '[Nn]ot-a-number' 'NaN'
deny 'as_they_are' 'full'
deny 'by chance\b' 'at random, stochastically'

# Training
deny '\b[Jj]udg' 'reward, evaluate, validate, value' 'LLM judge|LLM-as-a-judge'
deny '\b[Ss]ettl(e|es|ed|ing)\b' 'compute, resolve, record'
deny '\bask_what|keep_busy' 'request rewards'
deny '\b[Ll]et go\b|lets? (its|the) [a-z]+ go\b' 'dropped, released'
deny '[Hh]eld (against|within)\b' 'compared with, clipped to'

# Sentences
deny '\bgo(es)? on from\b|\bwent on\b|\bgoes on\b|\bcannot go on\b' 'resumes from, continues'
deny '\ba person\b|\bfor people\b' 'user, display'
deny '\basked for\b|\basks? for in earnest\b' 'requested'
deny '\bat most of\b' 'at most'
deny '\b[Ll]ook(s|ed|ing)? at\b' 'evaluate, read, check'
deny '\bso many\b' 'a number, as many as'
deny '\b[Ww]hoever\b' 'any process that'
deny '\b(is|are|was|were) told\b|\btold\(\)|\btells (of|which|what|that)\b' 'recorded, notified, describes'
deny '\bsays? (which|what)\b' 'states, names, defines'

# Names of tests and of their types
deny_name '(.* )?(office|together|whole numbers)( .*)?' 'a term of the field'
deny_name 'said|world|marker' 'ProgramOutput, SimulatedNodes, verifier'
exit $bad
