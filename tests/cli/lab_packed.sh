# lab packed: documents in one window, and a prefix whose labels are readable.
maskgrad=$1
. "$(dirname "$0")/../tools/lab.bash"
small="--quick --n-layer 1 --n-head 2 --n-embd 32 --lr 1e-2 --max-iters 500 --eval-interval 250 --eval-iters 2"
# shellcheck disable=SC2086
"$maskgrad" lab packed $small >out.txt 2>err.txt || fail "lab packed: status $?: $(cat err.txt) $(grep -A2 FAIL out.txt)"
run=runs/lab-packed
all_pass $run
for name in losses positions influence alone; do [ -s $run/$name.csv ] || fail "$name.csv is missing"; done

# What each check looks at, spoilt: that check fails, and the honest model's do not.
broken() { # PLACE, the check that must fail
    # shellcheck disable=SC2086
    MASKGRAD_BREAK=packed.$1 "$maskgrad" lab packed $small --out-dir "$1" >out.txt 2>&1
    [ $? -eq 1 ] || fail "packed.$1: a failed check does not end in status 1"
    grep -q "$2.*,fail$" "$1/summary.csv" || fail "packed.$1: the verdict did not turn: $(cat "$1/summary.csv")"
    grep -q "causal: gap.*,fail$" "$1/summary.csv" && fail "packed.$1: the causal model fails without cause"
}
broken documents "documents: predictions that a token of another document moves"
broken positions "documents: tokens whose loss is more than"
broken prefix "prefix: loss at positions whose label is readable"

# A model that was still learning has not shown how low it comes, wherever that is measured.
"$maskgrad" lab packed --quick --n-layer 1 --n-head 2 --n-embd 32 --max-iters 60 --eval-interval 30 --eval-iters 2 \
    --out-dir early >out.txt 2>err.txt
[ $? -eq 3 ] && [ "$(grep -c '^"\?prefix: loss .*still falling.*,undecided$' early/summary.csv)" -eq 2 ] ||
    fail "60 steps: $(cat early/summary.csv err.txt)"

# Lines of a text are documents. Longer ones than any window leave nothing to decide; a text without lines has none.
awk 'BEGIN { srand(5); for (i = 0; i < 900; i++) { for (j = 0; j < 6; j++) printf "%c", 97 + int(26 * rand()); print "" } }' >lines.txt
tr -d '\n' <lines.txt | fold -w 500 >long.txt
tr -d '\n' <lines.txt >none.txt
few="--quick --n-layer 1 --n-head 1 --n-embd 8 --max-iters 3 --eval-iters 1 --block-size 16"
# shellcheck disable=SC2086
"$maskgrad" lab packed $few --data lines.txt --out-dir lines >out.txt 2>&1
grep -q 'documents: predictions that a token of another document moves.*,pass$' lines/summary.csv ||
    fail "lines of a text are no documents: $(cat lines/summary.csv)"
# shellcheck disable=SC2086
"$maskgrad" lab packed $few --data long.txt --seed 4 --out-dir long >out.txt 2>&1
grep -q 'moves.*no validation window of 16 tokens holds a border.*,undecided$' long/summary.csv ||
    grep -q 'documents: predictions that a token of another document moves.*,pass$' long/summary.csv ||
    fail "long documents: $(cat long/summary.csv)"
# shellcheck disable=SC2086
"$maskgrad" lab packed $few --data none.txt --out-dir none >out.txt 2>err.txt
[ $? -eq 2 ] && grep -q "none.txt has no newline" err.txt || fail "one document: $(cat err.txt)"
"$maskgrad" lab packed --quick --block-size 3 --out-dir short >out.txt 2>err.txt
[ $? -eq 2 ] && grep -q -e "--block-size 3 is too short for this lab" err.txt || fail "--block-size 3: $(cat err.txt)"
echo ok
