#!/usr/bin/env bash
# Installs what maskgrad is built and tested with, on Debian and its relatives. Elsewhere it lists what is needed. Uses
# the network only if something is missing, and sudo only where it is needed.
#
#     scripts/install-deps.sh            what is needed to build and run
#     scripts/install-deps.sh --mpi      also MPI, for training with several processes (docs/scale.md)
#     scripts/install-deps.sh --tests    also what the tests compare with: Chromium, clang, h5py, PyTorch, …
set -euo pipefail

packages=(gcc libc6-dev cmake ninja-build pkg-config
    libopenblas-openmp-dev libhdf5-dev zlib1g-dev libcsv-dev libcmocka-dev libjansson-dev libpcre2-dev librandom123-dev
    gettext gnuplot-nox fonts-dejavu-core)
mpi=(libopenmpi-dev openmpi-bin)
[ "${1:-}" != --mpi ] || packages+=("${mpi[@]}")
[ "${1:-}" != --tests ] ||
    packages+=(chromium clang lld wasi-libc libclang-rt-14-dev-wasm32 nodejs hdf5-tools python3 python3-h5py python3-numpy python3-torch valgrind "${mpi[@]}")

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    printf 'This system has no apt. maskgrad needs, under the names of your own packages:\n'
    printf '  %s\n' "${packages[@]}"
    printf 'Install them, then build with: cmake --preset release && cmake --build --preset release\n'
    [ "${MASKGRAD_DEPS_READY:-}" = 1 ] && exit 0
    printf 'Set MASKGRAD_DEPS_READY=1 once they are there.\n' >&2
    exit 1
fi

missing=()
for package in "${packages[@]}"; do
    status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$status" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

echo "Installing: ${missing[*]}"
sudo=()
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "Run as root, or install sudo: apt-get install ${missing[*]}" >&2; exit 1; }
    sudo=(sudo)
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -y -qq "$@" >"$log" 2>&1 && return
    tail -n 20 "$log" >&2
    echo "apt-get $1 failed; its last lines are above." >&2
    exit 1
}
apt update
apt install --no-install-recommends "${missing[@]}"
