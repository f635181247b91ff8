# lab multihead: it passes, writes what it promises, and a spoilt lab says so.
maskgrad=$1
. "$(dirname "$0")/../tools/lab.bash"

"$maskgrad" lab multihead --quick --out-dir run >out.txt 2>err.txt || fail "status $?: $(tail -1 err.txt) $(grep -A2 FAIL out.txt)"
all_pass run
for name in wiring loss maps variants; do [ -s run/$name.csv ] || fail "$name.csv is missing"; done
[ -s run/report.html ] || fail "no report"

broken() { # PART CHECK: the check by this name turns to fail
    MASKGRAD_BREAK=multihead.$1 "$maskgrad" lab multihead --quick --out-dir broken >out.txt 2>err.txt
    [ $? -eq 1 ] || fail "MASKGRAD_BREAK=multihead.$1 goes unnoticed"
    grep -q "^$2.*,fail$" broken/summary.csv || fail "multihead.$1: another verdict than expected"
}
broken slice 'before W^O: largest gradient'
broken one 'two heads: answers'
"$maskgrad" lab multihead --data x >out.txt 2>&1
[ $? -eq 2 ] || fail "an option that the lab does not take is accepted"
echo ok
