# lab hidden: it passes; a gap that is none, a mask too many and a label left out turn a verdict; too few steps and text.
maskgrad=$1
. "$(dirname "$0")/../tools/lab.bash"
small="--quick"
lab() { # OUT and more flags
    out=$1 && shift
    # shellcheck disable=SC2086
    "$maskgrad" lab hidden $small --out-dir "$out" "$@" >out.txt 2>err.txt
}
lab run || fail "status $?: $(tail -1 err.txt) $(grep -A3 FAIL out.txt) $(grep undecided run/summary.csv)"
all_pass run
for name in loss position reach losses; do [ -s run/$name.csv ] || fail "$name.csv is missing"; done
dashes=$(grep -o "stroke-dasharray='[^']*'" run/loss.svg | sort -u | wc -l)
[ "$dashes" -ge 4 ] || fail "two floors and their legends have $dashes kinds of dashes"

turns() { # PLACE CHECK
    MASKGRAD_BREAK=hidden.$1 lab broken --max-iters 800
    [ $? -eq 1 ] || fail "hidden.$1 goes unnoticed: $(cat broken/summary.csv)"
    grep -q "^\"\?$2.*,fail$" broken/summary.csv || fail "hidden.$1: $2 does not fail: $(cat broken/summary.csv)"
}
turns shown "both sides: the same, at least minus 3"
turns mask "both sides: gap to the entropy"
turns gap "not hidden: loss"

lab young --max-iters 2
[ $? -eq 3 ] || fail "two steps: not status 3: $(cat young/summary.csv)"
grep -q 'too few steps' young/summary.csv || fail "two steps: no reason"
lab text --tokens char --max-iters 60
[ $? -eq 3 ] || fail "a text: not status 3: $(cat text/summary.csv)"
[ "$(grep -c 'nobody knows its entropy.*,undecided$' text/summary.csv)" -eq 2 ] || fail "a text has a floor"
lab refused --block-size 3
[ $? -eq 2 ] && [ ! -s out.txt ] || fail "--block-size 3 is not refused"
echo ok
