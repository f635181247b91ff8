# lab dial: six masks, from causal to none, and one leaky head. A narrow model learns fast enough for a test.
maskgrad=$1
. "$(dirname "$0")/../tools/lab.bash"
small="--quick --n-layer 1 --n-head 2 --n-embd 32 --lr 1e-2 --eval-interval 100 --eval-iters 2"
# shellcheck disable=SC2086
"$maskgrad" lab dial $small >out.txt 2>err.txt || fail "lab dial: status $?: $(cat err.txt) $(grep -A2 FAIL out.txt)"
[ "$(LC_ALL=C.UTF-8 awk '{ if (length($0) > most) most = length($0) } END { print most }' err.txt)" -lt 80 ] ||
    fail "progress is wider than 80 columns: $(cat err.txt)"
grep -q "loss [0-9.]* (.*) to [0-9.]* (.*)" err.txt || fail "no losses in the progress: $(cat err.txt)"
run=runs/lab-dial
all_pass $run
for name in curves losses ends; do [ -s $run/$name.csv ] || fail "$name.csv is missing"; done
[ "$(wc -l <$run/losses.csv)" -eq 7 ] || fail "the table has no row for each of six masks"

for place in mask leak; do
    # shellcheck disable=SC2086
    MASKGRAD_BREAK=dial.$place "$maskgrad" lab dial $small --out-dir broken >out.txt 2>&1
    [ $? -eq 1 ] || fail "dial.$place: a failed check does not end in status 1"
done
# The honest model fails when it sees its label, the leaky one when it does not.
grep -q '"\?causal: gap to the honest floor, .*,fail$' broken/summary.csv && fail "the honest model fails without cause"
grep -q 'one head, 1 ahead: loss.*,fail$' broken/summary.csv || fail "dial.leak: the verdict did not turn"

for size in 1 2 5; do
    "$maskgrad" lab dial --quick --block-size $size --out-dir short >out.txt 2>err.txt
    [ $? -eq 2 ] && grep -q -e "--block-size $size is too short for this lab: .* give 6 or more" err.txt ||
        fail "--block-size $size: $(cat err.txt)"
    [ ! -s out.txt ] || fail "the question is asked before the block size is refused"
done
"$maskgrad" lab dial --block-size 6 --max-iters 1 --eval-iters 1 --quick --out-dir six >out.txt 2>&1
[ $? -eq 1 ] || fail "--block-size 6: not status 1 after one step: $(cat out.txt)"
grep -q 'nan\|not measured' out.txt six/*.csv && fail "--block-size 6 leaves something unmeasured"
# Several seeds: verdicts are on means, and say so; one seed says nothing of it.
"$maskgrad" lab dial --block-size 6 --max-iters 2 --eval-iters 1 --quick --seeds 2 --out-dir seeds >out.txt 2>err.txt
[ $? -eq 1 ] || fail "--seeds 2: not status 1 after two steps: $(cat out.txt err.txt)"
[ "$(grep -c '(n = 2)' seeds/seeds.csv)" -eq 6 ] || fail "--seeds 2: the means: $(cat seeds/seeds.csv)"
grep -q "^\"1 ahead: loss (upper end of the mean's 95 % interval, 2 seeds)\",.*,fail$" seeds/summary.csv ||
    fail "--seeds 2: the verdicts: $(cat seeds/summary.csv)"
[ ! -e $run/seeds.csv ] && ! grep -q interval $run/summary.csv || fail "one seed has no interval"
"$maskgrad" lab dial --seeds 0 >out.txt 2>err.txt
[ $? -eq 2 ] || fail "--seeds 0: $(cat out.txt err.txt)"
echo ok
