#!/bin/bash
# Models made on the spot in other sizes, against PyTorch; with MASKGRAD_FULL_SIZE=1 also one as large as GPT-2 small.
set -u
program=$1 source=$2
python=/usr/bin/python3
if ! "$python" -c 'import numpy, h5py, torch' 2> /dev/null; then
    echo "skipped: $python has no numpy, h5py or torch (apt-get install python3-torch python3-h5py)"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

failures=0
fail() { echo "FAILED: $*" >&2; failures=$((failures + 1)); }
agrees() { # agrees MODEL: its logits are those in its logits.csv
    local status=0
    "$program" import "$1" --out "$folder/model.h5" > "$folder/out" 2> "$folder/err" || status=$?
    [ "$status" -eq 0 ] || { fail "import $1 returns $status: $(cat "$folder/err")"; return; }
    "$program" logits "$folder/model.h5" --ids "$(head -1 "$1/logits.csv")" > "$folder/logits.csv"
    "$python" - "$1/logits.csv" "$folder/logits.csv" << 'END' || fail "$1 does not agree with PyTorch"
import sys
import numpy as np
expected, found = np.loadtxt(sys.argv[1], delimiter=",", skiprows=1), np.loadtxt(sys.argv[2], delimiter=",")
difference = abs(expected - found).max()
print("largest difference from PyTorch: %.2g, of logits up to %.3g" % (difference, abs(expected).max()))
sys.exit(expected.shape != found.shape or not difference < 1e-4)
END
}

for size in odd wide; do
    "$python" "$source/tests/reference/make_gpt2_like.py" "$folder/$size" --size "$size" || fail "cannot make $size"
    for form in plain prefixed f16 bf16 unscaled keras keras-embeddings; do agrees "$folder/$size/$form"; done
done

if [ "${MASKGRAD_FULL_SIZE:-}" = 1 ]; then
    "$python" "$source/tests/reference/make_gpt2_like.py" "$folder/gpt2" --size gpt2 || fail 'cannot make gpt2'
    agrees "$folder/gpt2"
else
    echo 'not run: the model of full size; MASKGRAD_FULL_SIZE=1 runs it (1 GB of disk, half a minute)'
fi
exit $((failures > 0))
