# lab saturation: random rows against known numbers, and six models.
maskgrad=$1
. "$(dirname "$0")/../tools/lab.bash"
"$maskgrad" lab saturation --quick >out.txt 2>err.txt || fail "status $?: $(cat err.txt) $(grep -A2 FAIL out.txt)"
run=runs/lab-saturation
all_pass $run
for name in jacobian saturated rows loss loss-gpt2 entropy gradients training; do
    [ -s $run/$name.csv ] || fail "$name.csv is missing"
done
[ "$(wc -l <$run/training.csv)" -eq 25 ] || fail "the table has no row for each of six models, two layers, two times"

for place in scale training; do
    MASKGRAD_BREAK=saturation.$place "$maskgrad" lab saturation --quick --out-dir broken >out.txt 2>&1
    [ $? -eq 1 ] || fail "saturation.$place: a failed check does not end in status 1"
    grep ',fail$' broken/summary.csv >failed.txt
    case $place in
    scale) grep -q 'Jacobian, not divided' failed.txt && grep -q '0.99, not divided' failed.txt ;;
    training) grep -q 'loss unscaled' failed.txt && grep -q 'entropy unscaled' failed.txt ;;
    esac || fail "saturation.$place: other verdicts turned: $(cat failed.txt)"
done
# Other sizes, and a sweep: no verdict that only the lab's own settings can bear, and one more for the sweep.
"$maskgrad" lab saturation --quick --n-embd 32 --n-head 2 --max-iters 20 --lr 3e-3 --init-std 0.03 --d-k 4,16 \
    --out-dir sweep >out.txt 2>err.txt
[ $? -eq 3 ] || fail "other sizes: $(cat err.txt) $(grep -A2 FAIL out.txt)"
grep -q ',fail$' sweep/summary.csv && fail "other sizes: $(grep ',fail$' sweep/summary.csv)"
grep -q '^"2/√C: loss unscaled.*,undecided$' sweep/summary.csv || fail "a threshold of other settings"
grep -q '^"gradient of q .*,pass$' sweep/summary.csv || fail "two heads: $(grep 'gradient of q' sweep/summary.csv)"
grep -q '^"0.03, scaled",' sweep/loss-gpt2.csv || fail "--init-std: $(head -2 sweep/loss-gpt2.csv)"
[ "$(wc -l <sweep/sweep.csv)" -eq 5 ] && grep -q '^"not divided: saturated.*,pass$' sweep/summary.csv || fail "the sweep"
for list in 5 4,,8 x -4 0 128; do
    "$maskgrad" lab saturation --n-embd 64 "--d-k=$list" --out-dir bad >out.txt 2>err.txt
    [ $? -eq 2 ] && grep -q "not '$list'" err.txt || fail "--d-k $list: $(cat err.txt)"
done
"$maskgrad" lab saturation --n-head 3 --out-dir bad >out.txt 2>err.txt
[ $? -eq 2 ] && grep -q 'n-head 3 does not divide --n-embd 64' err.txt || fail "three heads of 64: $(cat err.txt)"
echo ok
