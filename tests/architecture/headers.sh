#!/bin/bash
# Every header compiles alone: headers.sh ROOT BUILD COMPILER INCLUDE_FLAGS... A cache (ccache) makes the second run short.
cd "$1" || exit 2
build=$2/headers compiler=$3
shift 3
mkdir -p "$build"
cache=$(command -v ccache)
one() {
  unit=$build/$(tr / _ <<<"$1").cpp
  line="#include \"$1\""
  [ -f "$unit" ] && [ "$(cat "$unit")" = "$line" ] || echo "$line" >"$unit"
  extra=
  case $1 in
    engine/ops/cpu/*avx512*) extra="-mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512bf16" ;;
    engine/ops/cpu/*avx2* | engine/ops/cpu/*x86*) extra="-mavx2 -mfma -mf16c" ;;
  esac
  $cache "$compiler" -std=c++20 -O0 -Wall -Wextra -Wno-missing-field-initializers -Werror -I. $flags $extra -c "$unit" -o "$unit.o" 2>"$unit.log" && return 0
  echo "$1 does not compile alone:"
  head -5 "$unit.log"
  return 1
}
export -f one
export build compiler cache flags="$*"
# Left out: what needs Arrow or MPI, which are optional, and vector headers on another kind of processor.
left_out='engine/data/readers/parquet/|transports/mpi/mpi_session'
[ "$(uname -m)" = x86_64 ] || left_out+='|engine/ops/cpu/.*(avx|x86)'
find engine transports actors algorithms launch tests -name '*.h' | grep -vE "^($left_out)" | sort | xargs -P 2 -I{} bash -c 'one {}'
