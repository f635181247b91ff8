#!/usr/bin/env bash
# A whole training run gives the same bits on 1, 2 and 3 threads, twice over, and however often it evaluates: the log's
# training rows (but for the time they took), the parameters, the optimizer's state, and the logits.
set -euo pipefail
program=$1
source=$2
python=/usr/bin/python3
if ! "$python" -c 'import h5py, numpy' 2>/dev/null; then
    echo "SKIPPED: determinism needs h5py for $python (Debian: python3-h5py)"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "$1" >&2
    exit 1
}

# Wide and long enough for every loop to have more tiles than threads; dropout and accumulation, which draw and add.
train() { # NAME THREADS EVAL-INTERVAL [OPTION...]
    local name=$1 threads=$2 interval=$3
    shift 3
    "$program" train --data "$source/datasets/data/sentences.csv" --grammar-size 5000 --tokens char --n-embd 96 \
        --block-size 48 --batch-size 8 --grad-accum 2 --dropout 0.1 --max-iters 30 --warmup-iters 5 --eval-iters 2 \
        --threads "$threads" --eval-interval "$interval" --log-interval 1000 --out-dir "$work/$name" "$@" \
        >"$work/$name.txt" 2>&1 || { cat "$work/$name.txt"; fail "training with $threads threads failed"; }
    # step,split,loss,lr,grad_norm,tokens: what is left without the seconds
    grep ',train,' "$work/$name/log.csv" | cut -d, -f1-6 >"$work/$name.log"
    [ "$(wc -l <"$work/$name.log")" -eq 30 ] || fail "$name has not 30 rows of training"
}

same_parameters() { # NAME NAME
    "$python" - "$work/$1/checkpoint.h5" "$work/$2/checkpoint.h5" <<'END' || fail "the parameters of $1 and $2 differ"
import sys
import h5py

def arrays(path):
    found = {}
    with h5py.File(path, "r") as file:
        for group in ("model", "optimizer"):
            file[group].visititems(lambda name, x, group=group: found.update({f"{group}/{name}": x[()].tobytes()})
                                   if isinstance(x, h5py.Dataset) else None)
    return found

ours, theirs = (arrays(path) for path in sys.argv[1:])
assert len(ours) > 80 and ours.keys() == theirs.keys(), len(ours)
differ = [name for name in ours if ours[name] != theirs[name]]
sys.exit(f"differ: {', '.join(differ)}" if differ else 0)
END
}

same() { # NAME NAME
    cmp "$work/$1.log" "$work/$2.log" || fail "the logs of $1 and $2 differ"
    same_parameters "$1" "$2"
    for name in "$1" "$2"; do
        "$program" logits "$work/$name/checkpoint.h5" --ids 1,2,3,4,5,6,7,8,9,1,2,3 >"$work/$name.logits" ||
            fail "no logits of $name"
    done
    cmp "$work/$1.logits" "$work/$2.logits" || fail "the logits of $1 and $2 differ"
}

train one 1 100
train again 1 100
train two 2 100
train three 3 100
train often 2 10
for other in again two three often; do same one "$other"; done

# The comparison can fail: another seed gives other bits.
train other 1 100 --seed 7
cmp -s "$work/one.log" "$work/other.log" && fail "another seed gives the same log"
echo "1, 2 and 3 threads, twice, evaluated rarely and often: the same bits"
