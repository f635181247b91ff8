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
echo ok
