# lab alarm: honest runs are not accused, leaky ones are, with their cause; a narrow model learns fast enough for a test.
maskgrad=$1
. "$(dirname "$0")/../tools/lab.bash"
small="--quick --n-layer 1 --n-embd 32 --block-size 16 --lr 1e-2 --max-iters 250 --grammar-size 50000"
# shellcheck disable=SC2086
"$maskgrad" lab alarm $small >out.txt 2>err.txt || fail "lab alarm: status $?: $(cat err.txt) $(grep -A2 fail out.txt)"
run=runs/lab-alarm
all_pass $run
for name in first evidence runs; do [ -s $run/$name.csv ] || fail "$name.csv is missing"; done
[ "$(wc -l <$run/runs.csv)" -eq 9 ] || fail "the table has no row for each of eight runs"
grep -q 'mean loss at the alarm' $run/summary.csv || fail "the alarm is not compared with the floor"

for place in honest leak shift; do
    # shellcheck disable=SC2086
    MASKGRAD_BREAK=alarm.$place "$maskgrad" lab alarm $small --out-dir broken-$place >out.txt 2>&1
    [ $? -eq 1 ] || fail "alarm.$place: a failed check does not end in status 1"
done
# Only the verdict on the changed run differs.
failures() { grep ',fail$' "broken-$1/summary.csv" | cut -d, -f1 | tr '\n' ';'; }
[ "$(failures honest)" = "honest: alarms;" ] || fail "alarm.honest: $(failures honest)"
[ "$(failures leak)" = "one head: alarms;" ] || fail "alarm.leak: $(failures leak)"
[ "$(failures shift)" = "not shifted: alarms;" ] || fail "alarm.shift: $(failures shift)"

# A text whose next token is nearly certain has next to nothing to read: undecided, not passed and not failed.
for _ in {1..400}; do printf abcdefghij; done >certain.txt
# shellcheck disable=SC2086
"$maskgrad" lab alarm $small --data certain.txt --max-iters 60 --out-dir certain >out.txt 2>&1
status=$?
[ $status -ne 1 ] || fail "a text without surprises: $(grep ',fail$' certain/summary.csv)"
[ "$(grep -c ',undecided$' certain/summary.csv)" -eq 5 ] || fail "undecided: $(cat certain/summary.csv)"

"$maskgrad" lab alarm --quick --block-size 1 --out-dir short >out.txt 2>err.txt
[ $? -eq 2 ] && grep -q -e "--block-size 1 is too short for this lab" err.txt || fail "--block-size 1: $(cat err.txt)"
echo ok
