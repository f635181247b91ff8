# lab proof: causal models, bands of lookahead, a planted leak, and checkpoints.
maskgrad=$1
. "$(dirname "$0")/../tools/lab.bash"
for seed in 1337 1 2; do
    "$maskgrad" lab proof --quick --seed $seed >out.txt 2>err.txt || fail "seed $seed: status $?: $(cat err.txt)"
    all_pass runs/lab-proof
done
for name in late perturbation gradient bands band; do [ -s runs/lab-proof/$name.csv ] || fail "$name.csv is missing"; done
awk -F, 'NR > 1 && ($3 != $4 || $3 != $5 || $3 != $6) {exit 1}' runs/lab-proof/bands.csv || fail "the bands' table"

for place in mask band leak; do
    MASKGRAD_BREAK=proof.$place "$maskgrad" lab proof --quick --out-dir broken >out.txt 2>&1
    [ $? -eq 1 ] || fail "proof.$place: a failed check does not end in status 1"
    grep -q ',fail$' broken/summary.csv || fail "proof.$place: no verdict turned to fail"
done

for mask in "--mask causal" "--mask documents --block-size 12" "--lookahead 2" "--leak 1.2:1" "--mask none"; do
    # shellcheck disable=SC2086
    "$maskgrad" train --data "$2/datasets/data/sentences.csv" --grammar-size 2000 --max-iters 3 --eval-iters 1 \
        --n-embd 24 $mask --out-dir model --force >out.txt 2>&1 || fail "train $mask: $(cat out.txt)"
    "$maskgrad" lab proof --quick --checkpoint model --out-dir looked >out.txt 2>&1 || fail "$mask: $(cat out.txt)"
    all_pass looked
    [ -s looked/checkpoint.csv ] || fail "$mask: no matrix of the checkpoint"
done
# A leak that begins where no picture looks any more.
"$maskgrad" train --data "$2/datasets/data/sentences.csv" --grammar-size 2000 --max-iters 1 --eval-iters 1 --n-layer 1 \
    --n-embd 8 --block-size 100 --out-dir long >out.txt 2>&1 || fail "train: $(cat out.txt)"
MASKGRAD_BREAK=proof.context "$maskgrad" lab proof --quick --checkpoint long --out-dir late >out.txt 2>&1
[ $? -eq 1 ] || fail "proof.context: not status 1: $(cat out.txt)"
[ "$(grep -c ',fail$' late/summary.csv)" -eq 1 ] || fail "proof.context: $(grep ',fail$' late/summary.csv)"
grep -q '^"checkpoint: influence of the future, .* of the 4950 pairs of its context of 100 tokens".*,fail$' late/summary.csv ||
    fail "proof.context: no verdict on the context turned to fail: $(cat late/summary.csv)"
tr -s ' \n' ' ' <out.txt | grep -q 'position 80 moves with token 81, .* every prediction from position 80 on sees 1 token ahead' ||
    fail "proof.context: no pair and no pattern: $(cat out.txt)"

grep -q 'checkpoint: how far ahead' looked/summary.csv || fail "an unmasked checkpoint is taken for a causal one"
"$maskgrad" lab proof --quick --checkpoint nowhere.h5 --out-dir looked >out.txt 2>&1 && fail "a checkpoint that is not there"
grep -q nowhere.h5 out.txt || fail "the error does not name the file"

# A model in which nothing flows cannot be seen to leak: nothing about it passes. One that is not a number is refused.
python=/usr/bin/python3
if $python -c 'import h5py' 2>/dev/null; then
    edit() { # edit MODEL PARAMETER EXPRESSION OF x: a copy of `causal` in which matching parameters are changed
        mkdir -p "$1" && cp causal/checkpoint.h5 "$1"
        $python - "$1/checkpoint.h5" "$2" "$3" <<'PYTHON' || fail "h5py cannot edit $1"
import sys, h5py, numpy as np
with h5py.File(sys.argv[1], "r+") as file:
    def change(name, data):
        if isinstance(data, h5py.Dataset) and sys.argv[2] in name:
            data[...] = eval(sys.argv[3], {"x": data[...], "np": np})
    file["/model"].visititems(change)
with open(sys.argv[1], "r+b") as file:
    file.write(bytes(512))  # the seal no longer matches
PYTHON
    }
    "$maskgrad" train --data "$2/datasets/data/sentences.csv" --grammar-size 2000 --max-iters 3 --eval-iters 1 \
        --n-embd 24 --block-size 48 --out-dir causal >out.txt 2>&1 || fail "train: $(cat out.txt)"
    edit silent c_proj 'x * 0'
    "$maskgrad" lab proof --quick --checkpoint silent --out-dir looked >out.txt 2>err.txt
    [ $? -eq 3 ] || fail "a silent model: not status 3: $(cat err.txt)"
    [ "$(grep -c '^"\?checkpoint.*,undecided$' looked/summary.csv)" -eq 3 ] || fail "a silent model: $(cat looked/summary.csv)"
    grep '^"\?checkpoint.*,pass$' looked/summary.csv && fail "a silent model passes"
    "$maskgrad" lab cache --quick --checkpoint silent --out-dir kept >out.txt 2>err.txt
    [ $? -eq 3 ] && [ "$(grep -c 'moves later logits by 0 at most.*,undecided$' kept/summary.csv)" -eq 2 ] ||
        fail "a cache of keys that do not count: $(cat kept/summary.csv err.txt)"
    "$maskgrad" lab heads --quick --checkpoint silent --out-dir silent-heads >out.txt 2>err.txt
    [ $? -eq 3 ] && grep -q '^layers whose heads move no logit,.* 2 of 2 layers .*,2,undecided$' silent-heads/summary.csv ||
        fail "heads that write nothing: $(cat silent-heads/summary.csv err.txt)"
    "$maskgrad" lab ablation --quick --checkpoint silent --out-dir silent-ablation >out.txt 2>err.txt
    [ $? -eq 3 ] && [ "$(grep -c 'no removal moves a loss or a map.*,undecided$' silent-ablation/summary.csv)" -eq 3 ] ||
        fail "removals of nothing: $(cat silent-ablation/summary.csv err.txt)"
    edit zero '' 'x * 0'
    "$maskgrad" lab attention --checkpoint zero --out-dir zeros >out.txt 2>err.txt
    [ $? -eq 3 ] && grep -q 'every output of every head is 0.*,undecided$' zeros/summary.csv ||
        fail "a model of zeros: $(cat zeros/summary.csv err.txt)"
    edit half h.1.attn.c_proj 'x * 0' # one silent layer is no silent model
    "$maskgrad" lab proof --quick --checkpoint half --out-dir looked >out.txt 2>err.txt || fail "one silent layer"
    "$maskgrad" lab heads --quick --checkpoint half --out-dir half-heads >out.txt 2>err.txt
    [ $? -eq 3 ] && grep -q ' 1 of 2 layers ' half-heads/summary.csv || fail "one silent layer: $(cat half-heads/summary.csv err.txt)"
    grep -q '1128 of the 1128 pairs of its context of 48 tokens' looked/summary.csv || fail "$(cat looked/summary.csv)"
    for number in nan inf -inf; do
        edit bad h.0.mlp.c_fc.weight "np.where(np.arange(x.size).reshape(x.shape) == 7, np.float32('$number'), x)"
        labs=proof
        [ $number = nan ] && labs='attention mask proof cache heads ablation' # they load it by the same function
        for lab in $labs; do
            "$maskgrad" lab $lab --quick --checkpoint bad --out-dir looked-bad >out.txt 2>err.txt
            [ $? -eq 1 ] && grep -q 'h.0.mlp.c_fc.weight holds 1 number that is NaN or infinite' err.txt ||
                fail "lab $lab on $number: $(cat out.txt err.txt)"
        done
    done
fi

# A context of one token shows nothing to any lab: a usage error, and no question is asked.
"$maskgrad" train --data "$2/datasets/data/sentences.csv" --grammar-size 2000 --max-iters 1 --eval-iters 1 --n-embd 8 \
    --block-size 1 --out-dir one >out.txt 2>&1 || fail "train: $(cat out.txt)"
for lab in attention mask proof cache heads ablation; do
    "$maskgrad" lab $lab --quick --checkpoint one --out-dir looked-$lab >out.txt 2>err.txt
    [ $? -eq 2 ] || fail "lab $lab on a context of 1: not status 2: $(cat out.txt err.txt)"
    grep -q 'one has a context of 1 token; this lab needs at least' err.txt || fail "lab $lab: $(cat err.txt)"
    [ ! -s out.txt ] && [ ! -e looked-$lab ] || fail "lab $lab asks its question and then refuses: $(cat out.txt)"
done
# Nor does a width of one: its layer norms leave a constant, and the audit's control would fail.
"$maskgrad" train --data "$2/datasets/data/sentences.csv" --grammar-size 2000 --max-iters 1 --eval-iters 1 --n-embd 1 \
    --n-head 1 --out-dir thin >out.txt 2>&1 || fail "train: $(cat out.txt)"
"$maskgrad" lab proof --quick --checkpoint thin --out-dir looked-thin >out.txt 2>err.txt
[ $? -eq 2 ] || fail "a width of 1: not status 2: $(cat out.txt err.txt)"
grep -q 'thin has a width of 1' err.txt || fail "a width of 1: $(cat err.txt)"
echo ok
