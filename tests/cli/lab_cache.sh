# lab cache: it passes, writes what it promises, works on masked and unmasked checkpoints, and a spoilt lab says so.
maskgrad=$1
. "$(dirname "$0")/../tools/lab.bash"

"$maskgrad" lab cache --quick --out-dir run >out.txt 2>err.txt || fail "status $?: $(tail -1 err.txt) $(grep -A2 FAIL out.txt)"
all_pass run
for name in difference chunkings bytes scores attention time cost keys; do
    [ -s run/$name.csv ] || fail "$name.csv is missing"
done
[ -s run/report.html ] || fail "no report"
tr -s ' \n' ' ' <out.txt | grep -q 'a KV cache would be wrong' || fail "the refusal of an unmasked model is not shown"

for part in stale nocache; do
    MASKGRAD_BREAK=cache.$part "$maskgrad" lab cache --quick --out-dir broken >out.txt 2>err.txt
    [ $? -eq 1 ] || fail "MASKGRAD_BREAK=cache.$part goes unnoticed"
    grep -q ',fail$' broken/summary.csv || fail "cache.$part: no verdict turned to fail"
done

printf 'the cat sat on the mat.\nthe dog sat on the log.\n%.0s' $(seq 40) >text.txt
train() { # OUT and more flags
    out=$1 && shift
    "$maskgrad" train --data text.txt --max-iters 60 --lr 1e-2 --n-head 2 --n-embd 16 --out-dir "$out" "$@" >out.txt 2>&1 ||
        fail "train $out: $(tail -1 out.txt)"
}
train masked --n-layer 1 --block-size 16
train open --n-layer 2 --block-size 32 --mask none
train short --n-layer 1 --block-size 8
train window --mask window:5 --n-layer 2 --block-size 64
train documents --mask documents --n-layer 2 --block-size 32
train prefix --mask prefix:8 --n-layer 2 --block-size 32
train last --leak 1.0:all --n-layer 2 --block-size 32
# A checkpoint is judged under its own mask: each has a check that names it.
while read -r run check; do
    "$maskgrad" lab cache --quick --checkpoint $run/checkpoint.h5 --out-dir c >out.txt 2>err.txt ||
        fail "checkpoint $run: $(tail -1 err.txt) $(grep -A2 FAIL out.txt)"
    all_pass c
    grep -q "$check.*,pass\$" c/summary.csv || fail "checkpoint $run: no '$check': $(cat c/summary.csv)"
done <<'END'
masked masked: how far a key moves, any layer
open asking for a cache without the mask gives the error
window window:5: texts of 8 that the cache changes
window 2·L·R·C",2368,2368
documents documents: how far a key moves, any layer
prefix asking for a cache with the mask prefix:8 gives the error
prefix prefix:8: how far a key of the last layer moves
last leak 1.0:all, whose keys do not move: texts that the cache changes
END
MASKGRAD_BREAK=cache.stale "$maskgrad" lab cache --quick --checkpoint window/checkpoint.h5 --out-dir w >out.txt 2>&1
[ $? -eq 1 ] || fail "a stale key of a window goes unnoticed"
"$maskgrad" lab cache --checkpoint short/checkpoint.h5 --out-dir s >out.txt 2>err.txt && fail "a context of 8"
grep -q 'context of 8 tokens; this lab needs at least 16' err.txt || fail "a context of 8: $(cat err.txt)"
echo ok
