#!/bin/bash
# Installs the Debian package in a bare Debian 12 and unpacks the archive in a bare Debian 13 (debootstrap; as root), trains the first
# example in each, reads parquet, runs two ranks under mpirun, and checks that removal leaves nothing behind, and all ELF files (tests/install). tests/long.sh calls it.
# Usage: tests/package.sh
set -euo pipefail
cd "$(dirname "$0")/.."
((EUID == 0)) || { echo "tests/package.sh: needs root, for chroot" >&2; exit 2; }
cmake/install_packages.sh with-debootstrap
made=$(cmake/package.sh)
mapfile -t packages <<<"$made"
((${#packages[@]} == 2)) || { echo "expected a .deb and a .tar.gz, found: $made" >&2; exit 1; }

work=$(mktemp -d)
clean() {
  for root in "$work"/*/; do
    mountpoint -q "$root/proc" && umount "$root/proc"
    mountpoint -q "$root/dev" && umount "$root/dev"
  done
  rm -rf --one-file-system "$work"
}
trap clean EXIT

bare() { # bare RELEASE: a minimal system in $work/RELEASE
  debootstrap --variant=minbase "$1" "$work/$1" >&2
  cp /etc/resolv.conf "$work/$1/etc/resolv.conf"
  mount --bind /proc "$work/$1/proc"
  mount --bind /dev "$work/$1/dev"
}
inside() { # inside RELEASE SCRIPT: runs the script in the system
  chroot "$work/$1" env DEBIAN_FRONTEND=noninteractive HOME=/tmp PATH=/usr/sbin:/usr/bin:/sbin:/bin bash -euc "$2"
}

# The warm-up of the demo from parquet rows in one process, then twenty steps on two ranks.
first_example='
  cd "$(mktemp -d)"
  cp -r $examples .
  run=(train --config quickstart/sft.yaml --set model=quickstart/model --set data.path=quickstart/train.parquet)
  $troupe "${run[@]}" --set output=one 2>/dev/null
  test -e one/latest/model.safetensors
  mpirun --allow-run-as-root --oversubscribe -n 2 $troupe "${run[@]}" --set output=two --set parallel.tp=2 --set train.steps=20 2>/dev/null
  test -e two/latest/model.safetensors
  $troupe --version'

elf=$PWD/tests/install/elf_file.py
for package in "${packages[@]}"; do
  case $package in
    *.deb)
      dpkg-deb -x "$package" "$work/contents"
      python3 -B "$elf" --hardened "$work/contents" >&2
      rm -r "$work/contents"
      bare bookworm
      cp "$package" "$work/bookworm/opt/troupe.deb"
      inside bookworm 'apt-get -q update; apt-get -q install -y /opt/troupe.deb; rm /opt/troupe.deb' >&2
      inside bookworm "examples=/usr/share/troupe/quickstart troupe=troupe; $first_example"
      inside bookworm 'apt-get -q purge -y troupe' >&2
      left=$(find "$work/bookworm"/{etc,usr,var,opt,srv} -iname '*troupe*' -not -path '*/var/log/*' -not -path '*/var/lib/apt/*')
      [[ -z $left ]] || { echo "left after removal: $left" >&2; exit 1; }
      ;;
    *.tar.gz)
      bare trixie
      inside trixie 'apt-get -q update; apt-get -q install -y --no-install-recommends openmpi-bin' >&2
      mkdir "$work/trixie/opt/troupe"
      tar -xzf "$package" -C "$work/trixie/opt/troupe" --strip-components 1
      python3 -B "$elf" --hardened "$work/trixie/opt/troupe" >&2
      inside trixie "examples=/opt/troupe/share/troupe/quickstart troupe=/opt/troupe/bin/troupe; $first_example"
      ;;
  esac
done
echo "packages: the first example trains from both"
