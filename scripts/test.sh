#!/usr/bin/env bash
# Installs what is needed, builds, and runs the tests: with warnings as errors and fresh memory full of NaN, and then
# under the address and undefined-behavior sanitizers. This is what CI runs.
#
#     scripts/test.sh           everything
#     scripts/test.sh --fast    without the sanitizers
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install-deps.sh --tests

run() { # PRESET [CTEST OPTION...]
    local preset=$1
    shift
    cmake --preset "$preset" >/dev/null
    cmake --build --preset "$preset" | tail -n 1
    ctest --preset "$preset" -j"$(nproc)" "$@"
}

echo "== dev: warnings are errors, fresh memory is poisoned"
run dev
echo "== mpi: several ranks train what one process trains"
run mpi
[ "${1:-}" = --fast ] || { echo "== tsan: the threads" && run tsan; }
[ "${1:-}" = --fast ] || { echo "== asan: the sanitizers" && run asan -LE trains; }
