#!/bin/bash
# Installs what troupe needs on Debian 12, and only what is missing; as root or through sudo. Everything it says goes to stderr.
# Usage: cmake/install_packages.sh [with-clang | with-lint | with-peers | with-valgrind | with-dpkg-dev | with-debootstrap | with-hosts]
# clang 19 is the compiler of the sanitizer builds, with its run-time libraries; peers are the programs that benchmarks are compared with;
# valgrind counts instructions; clang-format is what tests/lint.sh needs; dpkg-dev makes packages and debootstrap tests them; tests/hosts needs sshd and Slurm.
set -euo pipefail

packages=(g++ cmake ninja-build ccache git ca-certificates python3 python3-venv
  pkg-config libeigen3-dev nlohmann-json3-dev libsimdjson-dev libyaml-cpp-dev libspdlog-dev libicu-dev libpcre2-dev libsentencepiece-dev libasio-dev libcli11-dev libedit-dev
  libmsgpack-cxx-dev libzmq3-dev cppzmq-dev libsodium-dev libssl-dev libboost-dev libxxhash-dev libsqlite3-dev zlib1g-dev libexpected-dev libseccomp-dev libopenmpi-dev openmpi-bin libgtest-dev libgmock-dev libonig-dev)
if [[ ${1:-} == with-clang ]]; then packages+=(clang-19 libclang-rt-19-dev); fi
if [[ ${1:-} == with-peers ]]; then packages+=(libdnnl-dev python3-torch python3-numpy libopenblas0-openmp); fi
if [[ ${1:-} == with-valgrind ]]; then packages+=(valgrind); fi
if [[ ${1:-} == with-dpkg-dev ]]; then packages+=(dpkg-dev file); fi
if [[ ${1:-} == with-lint ]]; then packages+=(clang-format); fi
if [[ ${1:-} == with-hosts ]]; then packages+=(iproute2 procps openssh-client openssh-server slurmctld slurmd slurm-client); fi
if [[ ${1:-} == with-debootstrap ]]; then packages+=(debootstrap); fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  if [[ $status != installed ]]; then missing+=("$package"); fi
done
if ((${#missing[@]} == 0)); then exit 0; fi

as_root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "troupe needs these packages: ${missing[*]}; run this as root, or install sudo" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "installing: ${missing[*]}" >&2
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q update >&2
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends "${missing[@]}" >&2
