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
exit $bad
