#!/bin/bash
# Builds and runs test programs under sanitizers: tests/sanitize.sh asan|tsan [all]. Without `all`, those that read outside input or hold
# threads and processes (asan), and those that run on several threads (tsan); `all` runs every test (tests/long.sh).
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:?asan or tsan} scope=${2:-}

case $preset in
  asan)
    programs=(engine_base engine_parallel engine_tokenizer engine_constraints engine_data engine_checkpoint engine_adapter engine_generate engine_ledger transports
      transports_wire transports_zmq transports_hostile actors_runtime actors_cluster actors_group actors_roles actors_rules
      actors_sandbox hostile launch launch_http launch_http_hostile)
    ;;
  tsan)
    programs=(engine_parallel engine_nn engine_ledger actors_runtime actors_group transports transports_zmq transports_hostile actors_cluster launch_http launch_http_hostile)
    # ThreadSanitizer's memmem() reads all of the text for each match, which is quadratic.
    export TSAN_OPTIONS="suppressions=$PWD/tests/tsan.supp:intercept_memmem=0"
    ;;
  *)
    echo "tests/sanitize.sh asan|tsan [all], not $preset" >&2
    exit 2
    ;;
esac

# Arrow's library is the release build's where that is there.
mkdir -p "build/$preset"
if [[ -d build/release/arrow-venv && ! -e build/$preset/arrow-venv ]]; then
  ln -s ../release/arrow-venv "build/$preset/arrow-venv"
fi
cmake --preset "$preset" >&2
if [[ $scope == all ]]; then
  cmake --build --preset "$preset" -j "$(nproc)" >&2
  # Lints read sources, which no sanitizer changes; MPI's own library is not instrumented for ThreadSanitizer.
  without='architecture|benchmark'
  [[ $preset == tsan ]] && without+='|mpi'
  ctest --test-dir "build/$preset" -j 2 --output-on-failure -LE "$without"
  exit
fi
targets=("${programs[@]/%/_test}")
[[ $preset == asan ]] && targets+=(mp_program)
cmake --build --preset "$preset" -j "$(nproc)" --target "${targets[@]}" >&2
pattern=$(IFS='|' && echo "${programs[*]}")
[[ $preset == asan ]] && pattern+='|mp[.].*'
ctest --test-dir "build/$preset" -j 2 --output-on-failure --no-tests=error -R "^(${pattern})([.][0-9]+)?\$"
