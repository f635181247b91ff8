# lab channel: the loss measures the leak; each check fails when what it checks is spoilt, and what cannot decide says so.
maskgrad=$1
. "$(dirname "$0")/../tools/lab.bash"

small="--quick --n-layer 1 --n-head 2 --n-embd 32 --block-size 8 --lr 1e-2"
# shellcheck disable=SC2086
"$maskgrad" lab channel $small --out-dir run >out.txt 2>err.txt || fail "status $?: $(tail -1 err.txt) $(grep -A2 FAIL out.txt)"
all_pass run
for name in influence line positions curves leaks; do [ -s run/$name.csv ] || fail "$name.csv is missing"; done
[ "$(wc -l <run/leaks.csv)" -eq 4 ] || fail "not three probabilities: $(cat run/leaks.csv)"
# The theory is a straight line: its middle is the mean of its ends.
awk -F, 'NR > 1 {y[NR] = $2} END {d = y[3] - (y[2] + y[4]) / 2; exit !(d < 2e-4 && d > -2e-4)}' run/leaks.csv ||
    fail "the theory is no line: $(cat run/leaks.csv)"

broken() { # PLACE CHECK
    # shellcheck disable=SC2086
    MASKGRAD_BREAK=channel.$1 "$maskgrad" lab channel $small --out-dir broken >out.txt 2>err.txt
    [ $? -eq 1 ] || fail "MASKGRAD_BREAK=channel.$1: not status 1: $(cat broken/summary.csv)"
    grep -q "^\"\?$2.*,fail$" broken/summary.csv || fail "channel.$1: another verdict than expected: $(cat broken/summary.csv)"
}
broken leak 'ε = 0: ε read from the loss'
broken hidden 'predictions moved by one of'

undecided() { # REASON FLAG…
    local reason=$1
    shift
    # shellcheck disable=SC2086
    "$maskgrad" lab channel $small --out-dir open "$@" >out.txt 2>err.txt
    [ $? -eq 3 ] || fail "$*: not undecided: $(cat open/summary.csv out.txt err.txt)"
    grep -q "ε read from the loss.*$reason.*,undecided$" open/summary.csv || fail "$*: $(cat open/summary.csv)"
    grep -q 'ε read from the loss.*,pass$' open/summary.csv && [ "$reason" != 'still falling' ] &&
        fail "$*: passes: $(cat open/summary.csv)"
    true
}
undecided 'still falling' --max-iters 12
undecided 'not a number' --lr 1e30
printf 'a b c d\n%.0s' {1..400} >easy.txt
undecided 'nothing to leak' --data easy.txt --tokens word

"$maskgrad" lab channel --block-size 3 --out-dir refused >out.txt 2>err.txt
[ $? -eq 2 ] && [ ! -s out.txt ] || fail "--block-size 3: $(cat out.txt err.txt)"
echo ok
