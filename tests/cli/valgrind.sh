#!/usr/bin/env bash
# A short run under valgrind: training, a KV cache, a checkpoint read back. No invalid access, no decision on
# uninitialized memory, nothing lost. (A build that poisons fresh memory hides the second kind: the poison initializes it,
# and shows in the results instead.)
set -euo pipefail
program=$1
source=$2
build=$(dirname "$program")
if ! command -v valgrind >/dev/null; then
    echo "SKIPPED: valgrind is not installed"
    exit 77
fi
if grep -q '^MASKGRAD_SANITIZE:.*=ON' "$build/CMakeCache.txt"; then
    echo "SKIPPED: valgrind and the address sanitizer do not go together; the sanitizer checks the same"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

watched() { # COMMAND...
    valgrind --quiet --error-exitcode=9 --leak-check=full --show-leak-kinds=definite,indirect \
        --errors-for-leak-kinds=definite,indirect "$program" "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; echo "maskgrad $1 under valgrind: status $?" >&2; exit 1; }
}

watched train --data "$source/datasets/data/frases.csv" --grammar-size 400 --n-layer 1 --n-head 2 --n-embd 16 \
    --block-size 8 --batch-size 2 --max-iters 3 --eval-interval 2 --eval-iters 1 --dropout 0.1 --threads 2 \
    --out-dir "$work/run"
watched generate "$work/run/checkpoint.h5" --prompt "o cachorro" --max-new-tokens 12 --seed 1
watched logits "$work/run/checkpoint.h5" --ids 1,2,3
watched inspect --verify "$work/run/checkpoint.h5"
echo "train, generate, logits and inspect: nothing invalid, nothing lost"
