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

printf 'the cat sat on the mat. the dog sat on the log. %.0s' $(seq 40) >text.txt
train() { # OUT and more flags
    out=$1 && shift
    "$maskgrad" train --data text.txt --max-iters 60 --lr 1e-2 --n-head 2 --n-embd 16 --out-dir "$out" "$@" >out.txt 2>&1 ||
        fail "train $out: $(tail -1 out.txt)"
}
train masked --n-layer 1 --block-size 16
train open --n-layer 2 --block-size 32 --mask none
train short --n-layer 1 --block-size 8
for run in masked open; do
    "$maskgrad" lab cache --quick --checkpoint $run/checkpoint.h5 --out-dir c >out.txt 2>err.txt ||
        fail "checkpoint $run: $(tail -1 err.txt) $(grep -A2 FAIL out.txt)"
    all_pass c
done
"$maskgrad" lab cache --checkpoint short/checkpoint.h5 --out-dir s >out.txt 2>err.txt && fail "a context of 8"
grep -q 'context of 8 tokens; this lab needs at least 16' err.txt || fail "a context of 8: $(cat err.txt)"
echo ok
