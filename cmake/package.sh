#!/bin/bash
# Builds the Debian package and the relocatable archive in build/package and prints their paths.
# Usage: cmake/package.sh. The package is for this release of Debian; the archive runs on any Linux with this glibc or a newer one.
set -euo pipefail
cd "$(dirname "$0")/.."
build=build/package
cmake/install_packages.sh with-dpkg-dev
cmake/fetch_arrow.sh $build
cmake --preset package >&2
cmake --build --preset package -j "$(nproc)" >&2
rm -rf $build/packages
cpack --config $build/CPackConfig.cmake -B $build/packages >&2
find $build/packages -maxdepth 1 -name 'troupe*' -type f
