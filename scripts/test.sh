#!/usr/bin/env bash
# Installs what is needed, builds, and runs the tests: with warnings as errors and fresh memory full of NaN, and then
# under the address and undefined-behaviour sanitizers. This is what CI runs.
#
#     scripts/test.sh           everything
#     scripts/test.sh --fast    without the sanitizers
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install-deps.sh --tests

run() {
    cmake --preset "$1" >/dev/null
    cmake --build --preset "$1" | tail -n 1
    ctest --preset "$1" -j"$(nproc)"
}

echo "== dev: warnings are errors, fresh memory is poisoned"
run dev
[ "${1:-}" = --fast ] || { echo "== asan: the sanitizers" && run asan; }
