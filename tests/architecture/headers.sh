#!/bin/bash
# Every header compiles alone: headers.sh ROOT BUILD COMPILER INCLUDE_FLAGS... A header with a .cpp of its name is included there before
# anything else, which the build without unity (tests/long.sh) compiles; the others are compiled here, without code.
cd "$1" || exit 2
build=$2/headers compiler=$3
shift 3
mkdir -p "$build"
bad=0
one() {
  log=$build/$(tr / _ <<<"$1").log
  extra=
  case $1 in
    engine/ops/cpu/*avx512*) extra="-mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512bf16" ;;
    engine/ops/cpu/*avx2* | engine/ops/cpu/*x86*) extra="-mavx2 -mfma -mf16c" ;;
  esac
  "$compiler" -std=c++20 -Wall -Wextra -Wno-missing-field-initializers -Werror -I. $flags $extra \
    -fsyntax-only -x c++ - <<<"#include \"$1\"" 2>"$log" && return 0
  echo "$1 does not compile alone:"
  head -5 "$log"
  return 1
}
export -f one
export build compiler flags="$*"
# Left out: what needs Arrow or MPI, which are optional, and vector headers on another kind of processor.
left_out='engine/data/readers/(arrow_json|arrow_reader|parquet_reader)|transports/mpi/mpi_session'
[ "$(uname -m)" = x86_64 ] || left_out+='|engine/ops/cpu/.*(avx|x86)'
headers=$(find engine transports actors algorithms launch tests benchmarks -name '*.h' | grep -vE "^($left_out)" | sort)
alone=()
for header in $headers; do
  source=${header%.h}.cpp
  if [ ! -f "$source" ]; then
    alone+=("$header")
  elif ! grep -m1 '^#include' "$source" | grep -qF "#include \"$header\""; then
    echo "$source includes its own header $header first"
    bad=1
  fi
done
printf '%s\n' "${alone[@]}" | xargs -r -P 2 -I{} bash -c 'one {}' || bad=1
exit $bad
