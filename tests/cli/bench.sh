# bench: it measures every kind of model, and takes no flag that it does not use.
maskgrad=$1
. "$(dirname "$0")/../tools/lab.bash"
small="--steps 2 --n-layer 1 --n-head 2 --n-embd 32 --block-size 16 --batch-size 2"

# shellcheck disable=SC2086
"$maskgrad" bench $small --csv causal.csv >out.txt 2>err.txt || fail "status $?: $(cat err.txt)"
[ "$(cut -d, -f3 causal.csv | xargs)" = "phase train generate_cached generate_64 generate_uncached" ] || fail "$(cat causal.csv)"

# A model that looks ahead has no cache, and is still measured.
# shellcheck disable=SC2086
"$maskgrad" bench $small --mask none --csv open.csv >out.txt 2>err.txt || fail "--mask none: status $?: $(cat err.txt)"
[ "$(cut -d, -f3 open.csv | xargs)" = "phase train generate_uncached" ] || fail "--mask none: $(cat open.csv)"
grep -q 'a cache would be wrong' out.txt || fail "--mask none: no word about the cache"

# A named size that other flags change goes by another name.
# shellcheck disable=SC2086
"$maskgrad" bench --config toy $small --csv changed.csv >out.txt 2>err.txt || fail "--config toy: $(cat err.txt)"
grep -q '^toy-changed: batch 2, 1 layer, 2 heads, width 32, context 16, vocabulary 28;' out.txt || fail "$(cat out.txt)"
grep -q '^toy-changed,' changed.csv || fail "$(cat changed.csv)"

for bad in "--max-iters 3" "--eval-iters 3" "--lr 1" "--config huge" "--checkpoint x --n-embd 128" "--n-embd 30"; do
    # shellcheck disable=SC2086
    "$maskgrad" bench $bad >out.txt 2>err.txt
    [ $? -eq 2 ] || fail "$bad: not refused with status 2"
    [ -s out.txt ] && fail "$bad: something was printed: $(cat out.txt)"
done
mkdir empty
"$maskgrad" bench --checkpoint empty >out.txt 2>err.txt
[ $? -eq 1 ] && grep -q 'empty holds no run' err.txt || fail "a run folder: $(cat err.txt)"
# shellcheck disable=SC2086
"$maskgrad" bench $small --csv missing/x.csv >out.txt 2>err.txt
[ $? -eq 1 ] && [ ! -s out.txt ] || fail "a CSV that cannot be written is found out too late"
echo ok
