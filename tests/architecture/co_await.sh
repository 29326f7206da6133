#!/bin/bash
# g++ 12.2 double-frees temporaries (aggregates with members that own, lambdas that capture) inside a co_await expression, and
# miscompiles structured bindings from one. So co_await stands alone: `x = co_await name.get();`, one statement, one line.
cd "$1" || exit 2
found=$(grep -rn --include='*.h' --include='*.cpp' 'co_await' engine transports actors algorithms launch tests benchmarks 2>/dev/null |
  grep -vE '^[^:]*:[0-9]+:[[:space:]]*//|operator co_await' |
  sed -E 's,[[:space:]]//.*$,,' | grep 'co_await' |
  grep -vE '^[^:]*:[0-9]+:(.*[{};])?[[:space:]]*(for \([^{};]*\) )?([^={};]*[^]=!<>[:space:]][[:space:]]*=[[:space:]]*|co_return[[:space:]]+)?co_await[[:space:]][^{}]*;')
[ -z "$found" ] && exit 0
echo "co_await stands alone right of '=' (build the message, the lambda, the reply on lines before it; no auto [a, b] =):"
echo "$found"
exit 1
