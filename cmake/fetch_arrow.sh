#!/bin/sh
# Puts Arrow's C++ library (for parquet files) into BUILD/arrow-venv: a pinned pyarrow wheel, which carries headers and shared libraries.
# Usage: cmake/fetch_arrow.sh BUILD_FOLDER. Does nothing when it is there already. Needs python3 with venv, and PyPI or a mirror.
# Without it everything else builds and works; opening a parquet file then fails with an error that names the library.
set -eu
version=17.0.0  # built for manylinux_2_28 with the new C++ ABI, compiles as C++17 and links with g++ 12
build=${1:?usage: cmake/fetch_arrow.sh BUILD_FOLDER}
venv=$build/arrow-venv
stamp=$venv/pyarrow-$version

if [ -e "$stamp" ]; then exit 0; fi
mkdir -p "$build"
requirements=$(mktemp)
trap 'rm -f "$requirements"' EXIT
# The hashes are of PyPI's files: the wheels for Python 3.11 (Debian 12) on x86_64 and aarch64; another wheel is not installed.
cat > "$requirements" <<LIST
pyarrow==$version \\
  --hash=sha256:e3343cb1e88bc2ea605986d4b94948716edc7a8d14afd4e2c097232f729758b4 \\
  --hash=sha256:dc5c31c37409dfbc5d014047817cb4ccd8c1ea25d19576acf1a001fe07f5b420
LIST
rm -rf "$venv"
if python3 -m venv "$venv" >&2 &&
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: --require-hashes -r "$requirements" >&2; then
  touch "$stamp"
else
  rm -rf "$venv"
  echo "parquet files will not be readable: pyarrow $version could not be installed (needs python3-venv and PyPI); run cmake/fetch_arrow.sh $build again, then cmake and the build" >&2
  exit 1
fi
