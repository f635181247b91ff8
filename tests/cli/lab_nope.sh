# lab nope: the mask gives position; each check fails when what it checks is spoilt, and a short training decides nothing.
maskgrad=$1
. "$(dirname "$0")/../tools/lab.bash"

small="--quick --n-layer 1 --n-head 2 --n-embd 32 --block-size 6 --lr 1e-2 --max-iters 400"
# shellcheck disable=SC2086
"$maskgrad" lab nope $small --out-dir run >out.txt 2>err.txt || fail "status $?: $(tail -1 err.txt) $(grep -A2 FAIL out.txt)"
all_pass run
for name in curves positions said steps; do [ -s run/$name.csv ] || fail "$name.csv is missing"; done
grep -q '(5/6) ln 5 = 1.3412' out.txt || fail "the cost of being blind: $(cat out.txt)"

broken() { # PLACE CHECK
    # shellcheck disable=SC2086
    MASKGRAD_BREAK=nope.$1 "$maskgrad" lab nope $small --out-dir broken >out.txt 2>err.txt
    [ $? -eq 1 ] || fail "MASKGRAD_BREAK=nope.$1: not status 1: $(cat broken/summary.csv)"
    grep -q "^\"\?$2.*,fail$" broken/summary.csv || fail "nope.$1: another verdict than expected: $(cat broken/summary.csv)"
}
broken mask 'no mask: change of a prediction'
grep -q '^"\?no mask, no positions: loss.*,fail$' broken/summary.csv || fail "a masked model passes for a blind one"
broken positions 'no mask, no positions: loss'
broken blind 'masked, no positions: loss'
broken first 'constant text, random weights'

# shellcheck disable=SC2086
"$maskgrad" lab nope $small --max-iters 10 --out-dir short >out.txt 2>err.txt
[ $? -eq 3 ] || fail "10 steps: not undecided: $(cat short/summary.csv)"
[ "$(grep -c 'still falling.*,undecided$' short/summary.csv)" = 3 ] || fail "10 steps: $(cat short/summary.csv)"
# shellcheck disable=SC2086
"$maskgrad" lab nope $small --lr 1e30 --out-dir far >out.txt 2>err.txt
[ $? -eq 3 ] || fail "a loss that is no number is decided: $(cat far/summary.csv out.txt)"
grep -q ',pass$' far/summary.csv && fail "models that diverged pass: $(cat far/summary.csv)"
grep -q 'not a number.*,undecided$' far/summary.csv || fail "$(cat far/summary.csv)"

for flags in "--block-size 3" "--n-embd 30 --n-head 4" "--data x"; do
    # shellcheck disable=SC2086
    "$maskgrad" lab nope $flags --out-dir refused >out.txt 2>err.txt
    [ $? -eq 2 ] && [ ! -s out.txt ] || fail "$flags: status or question: $(cat out.txt err.txt)"
done
echo ok
