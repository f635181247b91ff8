#!/usr/bin/env bash
# A PyTorch GPT built from our checkpoint, by a script that only knows its documentation, gives our logits within 1e-4:
# under every kind of mask, with one leaky head, without scale, without W^O, without positions.
set -euo pipefail
program=$1
source=$2
python=/usr/bin/python3
if ! "$python" -c 'import h5py, torch' 2>/dev/null; then
    echo "SKIPPED: this needs h5py and PyTorch for $python (Debian: python3-h5py python3-torch)"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ids=3,1,4,1,31,9,2,31,31,3,5,8 # 31 is "."

for options in "--mask causal" "--mask none" "--leak 1.0:2" "--no-scale" "--no-output-projection --lookahead 1" \
    "--no-positions" \
    "--mask window:3" "--mask prefix:5" "--mask block:5" "--mask documents" "--mask documents:run-on"; do
    # A learning rate high enough for the logits to be large.
    "$program" train --data "$source/datasets/data/frases.csv" --grammar-size 5000 --n-embd 48 --max-iters 60 --lr 1e-2 \
        --eval-iters 1 $options --force --out-dir "$work/run" >"$work/out" 2>&1 || { cat "$work/out"; exit 1; }
    "$program" logits "$work/run/checkpoint.h5" --ids $ids >"$work/ours"
    "$python" "$source/tests/reference/logits_of_checkpoint.py" "$work/run/checkpoint.h5" $ids >"$work/theirs"
    "$python" - "$work" "$options" <<'END'
import sys
import numpy

ours, theirs = (numpy.loadtxt(f"{sys.argv[1]}/{name}", delimiter=",") for name in ("ours", "theirs"))
assert ours.shape == theirs.shape == (12, 33), (ours.shape, theirs.shape)
worst, largest = numpy.abs(ours - theirs).max(), numpy.abs(theirs).max()
print(f"{sys.argv[2]}: largest logit {largest:.2f}, largest difference {worst:.1e}")
assert largest > 1 and worst < 1e-4
END
done
