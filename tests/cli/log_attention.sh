# train --log-attention: what attention.csv says, that it changes nothing, that it resumes, and what compare makes of it.
maskgrad=$1
. "$(dirname "$0")/../tools/lab.bash"
data=$2/datasets/data/frases.csv

train() { # DIR FLAGS...
    local out=$1
    shift
    "$maskgrad" train --data "$data" --grammar-size 3000 --block-size 8 --batch-size 4 --n-embd 16 --n-head 2 --eval-iters 1 \
        --eval-interval 10 --out-dir "$out" "$@" >out.txt 2>err.txt || fail "train $*: $(cat err.txt)"
}
without_seconds() { cut -d, -f1-6 "$1/log.csv"; }

# Training is the same, bit by bit.
train plain --max-iters 20
train logged --max-iters 20 --log-attention
[ ! -e plain/attention.csv ] || fail "attention.csv without --log-attention"
[ "$(without_seconds plain)" = "$(without_seconds logged)" ] || fail "--log-attention changes the training"
cmp plain/checkpoint.h5 logged/checkpoint.h5 || fail "--log-attention changes the checkpoint"
[ "$(head -1 logged/attention.csv)" = step,layer,entropy,relative,saturated ] || fail "the header: $(cat logged/attention.csv)"
[ "$(sed 1d logged/attention.csv | cut -d, -f1,2 | tr '\n' ' ')" = '0,0 0,1 10,0 10,1 20,0 20,1 ' ] ||
    fail "steps and layers: $(cat logged/attention.csv)"

# Known values: weights near 0 weigh all alike, so the entropy is ln(T!)/(T - 1) over the rows of two keys and more.
train flat --max-iters 1 --init-std 1e-6 --log-attention
awk -F, 'NR > 1 && $1 == 0 && ($3 - 1.514943 > 1e-4 || 1.514943 - $3 > 1e-4 || $4 < 0.9999 || $4 > 1.0001 || $5 != 0) {bad = 1}
    END {exit bad || NR < 3}' flat/attention.csv || fail "uniform rows: $(cat flat/attention.csv)"
# Without a mask all rows see all keys.
train open --max-iters 1 --init-std 1e-6 --log-attention --mask none
awk -F, 'NR > 1 && $1 == 0 && ($3 - 2.079442 > 1e-4 || 2.079442 - $3 > 1e-4) {bad = 1} END {exit bad || NR < 3}' \
    open/attention.csv || fail "uniform rows, unmasked: $(cat open/attention.csv)"
# Large weights without the division saturate.
train saturated --max-iters 1 --init-std 2 --no-scale --log-attention
awk -F, 'NR > 1 && $1 == 0 && ($5 < 0.8 || $4 > 0.2) {bad = 1} END {exit bad || NR < 3}' saturated/attention.csv ||
    fail "saturated rows: $(cat saturated/attention.csv)"

# A resumed run continues the file, as if it had not been interrupted.
train halves --max-iters 10 --lr-decay-iters 20 --log-attention
train whole --max-iters 20 --lr-decay-iters 20 --log-attention
"$maskgrad" train --resume --out-dir halves --max-iters 20 >out.txt 2>err.txt || fail "resume: $(cat err.txt)"
cmp halves/attention.csv whole/attention.csv || fail "resumed: $(cat halves/attention.csv)"

# compare: the last rows in a table, and a picture's numbers; without a log neither.
"$maskgrad" compare logged saturated --out-dir cmp >out.txt 2>err.txt || fail "compare: $(cat err.txt)"
grep -q '^Attention at the last evaluation:$' out.txt && grep -q '^logged  *20  *1 ' out.txt || fail "compare: $(cat out.txt)"
grep -q '^"saturated, layer 1",0,' cmp/saturation.csv || fail "saturation.csv: $(head cmp/saturation.csv)"
"$maskgrad" compare plain logged --out-dir half >out.txt 2>err.txt || fail "compare with a run that did not log"
"$maskgrad" compare plain plain --out-dir none >out.txt 2>err.txt || fail "compare without logs"
[ ! -e none/saturation.csv ] && ! grep -q Attention out.txt || fail "attention of runs that did not log it"

# The file is not trusted; a torn last row is left out.
cp logged/attention.csv good.csv
for line in 'x' '1,2,3' '20,0,1,1,1,1' '-1,0,1,1,1' '10,0,1,1,1' '20,0,0x1,1,1'; do
    { cat good.csv; echo "$line"; } >logged/attention.csv
    "$maskgrad" compare plain logged --out-dir bad >out.txt 2>err.txt
    [ $? -ne 0 ] && grep -q 'attention.csv, line 8 ' err.txt || fail "a row '$line': $(cat err.txt)"
done
{ cat good.csv; printf '30,0,1.2'; } >logged/attention.csv
"$maskgrad" compare plain logged --out-dir torn >out.txt 2>err.txt || fail "a torn row: $(cat err.txt)"
echo ok
