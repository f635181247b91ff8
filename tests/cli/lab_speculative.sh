# lab speculative: it passes, a spoilt mask or rule turns its verdict, and what cannot decide says so.
maskgrad=$1
. "$(dirname "$0")/../tools/lab.bash"
small="--quick --n-layer 1 --n-head 2 --n-embd 32 --draft-n-embd 8 --max-iters 350 --lr 1e-2 --eval-interval 350 --eval-iters 2"
lab() { # OUT and more flags
    out=$1 && shift
    # shellcheck disable=SC2086
    "$maskgrad" lab speculative $small --out-dir "$out" "$@" >out.txt 2>err.txt
}
lab run || fail "status $?: $(tail -1 err.txt) $(grep -A3 FAIL out.txt)"
all_pass run
for name in loss judgments judges share tokens time faster pass distribution; do
    [ -s run/$name.csv ] || fail "$name.csv is missing"
done
[ "$(wc -l <run/distribution.csv)" -eq 9 ] || fail "two judges and four rules: $(cat run/distribution.csv)"

# The right rule replaced by a wrong one, and the masked judge without its mask.
turns() { # PLACE CHECK
    MASKGRAD_BREAK=speculative.$1 lab broken
    [ $? -eq 1 ] || fail "speculative.$1 goes unnoticed"
    grep -q "^\"\?$2.*,fail$" broken/summary.csv || fail "speculative.$1: $2 does not fail: $(cat broken/summary.csv)"
    grep '^"\?γ = ' broken/summary.csv | grep -v ',pass$' && fail "speculative.$1: what is counted elsewhere fails too"
}
turns mask "masked: a token's probability to stay"
turns rule "the rule, judged by the target"
grep -q '^"\?the rule, judged by the grammar.*,fail$' broken/summary.csv || fail "the grammar does not see a wrong rule"
turns residual "the rule, judged by the target"

# After one step no text is likely, not every wrong rule can be seen, and no label is read.
lab young --max-iters 1
[ $? -eq 3 ] || fail "one step: not status 3: $(tail -1 err.txt) $(grep -A3 FAIL out.txt)"
[ "$(grep -c ',undecided$' young/summary.csv)" -eq 7 ] || fail "one step: $(cat young/summary.csv)"
grep -q 'do not show both wrong rules' young/summary.csv || fail "one step: no reason"

# The probabilities of a text are not known: the target is the only judge.
lab text --tokens char
[ $? -eq 0 ] || fail "a text: $(tail -1 err.txt) $(grep -A3 FAIL out.txt) $(grep undecided text/summary.csv)"
[ "$(wc -l <text/distribution.csv)" -eq 5 ] || fail "a text has one judge"

for flags in "--block-size 15" "--draft-n-embd 9"; do
    # shellcheck disable=SC2086
    lab refused $flags
    [ $? -eq 2 ] || fail "$flags is not refused"
    [ ! -s out.txt ] || fail "the question is asked before $flags is refused"
done
echo ok
