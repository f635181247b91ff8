# lab ablation: it passes, writes what it promises, works on a checkpoint, and a spoilt lab says so.
maskgrad=$1
. "$(dirname "$0")/../tools/lab.bash"

"$maskgrad" lab ablation --quick --out-dir run >out.txt 2>err.txt || fail "status $?: $(tail -1 err.txt)"
all_pass run
for name in loss maps removals; do [ -s run/$name.csv ] || fail "$name.csv is missing"; done
[ -s run/report.html ] || fail "no report"
# Three layers: a block, all its heads and each of its four heads.
[ "$(wc -l <run/removals.csv)" -eq 19 ] || fail "$(wc -l <run/removals.csv) lines of removals"

MASKGRAD_BREAK=ablation.layer "$maskgrad" lab ablation --quick --out-dir broken >out.txt 2>err.txt
[ $? -eq 1 ] || fail "a head removed in the wrong layer goes unnoticed"
grep -q '^weight moved in maps before.*,fail$' broken/summary.csv || fail "another verdict than expected"

# Where context does not help, a model that has learned all there is misses nothing.
awk 'BEGIN { srand(1); for (i = 0; i < 20000; i++) printf "%s", substr("acgt", 1 + int(4 * rand()), 1) }' >random.txt
"$maskgrad" lab ablation --quick --data random.txt --out-dir random >out.txt 2>err.txt
[ $? -eq 3 ] && [ "$(grep -c '^"\?costliest.*next to no use of context.*,undecided$' random/summary.csv)" -eq 2 ] ||
    fail "random letters: $(cat random/summary.csv err.txt)"

printf 'the cat sat on the mat. the dog sat on the log. %.0s' $(seq 40) >text.txt
"$maskgrad" train --data text.txt --max-iters 20 --n-layer 1 --n-head 1 --n-embd 8 --block-size 8 --out-dir t >out.txt 2>&1 ||
    fail "train: $(tail -1 out.txt)"
"$maskgrad" lab ablation --quick --checkpoint t/checkpoint.h5 --data text.txt --out-dir c >out.txt 2>err.txt ||
    fail "on a checkpoint: $(tail -1 err.txt)"
all_pass c
"$maskgrad" lab ablation --quick --checkpoint t/checkpoint.h5 --out-dir own >out.txt 2>err.txt ||
    fail "on a checkpoint's own texts: $(tail -1 err.txt)"
printf 'the' >short.txt
"$maskgrad" lab ablation --checkpoint t/checkpoint.h5 --data short.txt --out-dir s >out.txt 2>err.txt && fail "short data"
grep -q 'short.txt' err.txt || fail "short data is not named: $(cat err.txt)"
"$maskgrad" lab ablation --checkpoint nosuch.h5 --out-dir n >out.txt 2>err.txt && fail "a missing checkpoint"
grep -q 'nosuch.h5' err.txt || fail "a missing checkpoint is not named: $(cat err.txt)"
echo ok
