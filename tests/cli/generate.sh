#!/usr/bin/env bash
# `maskgrad generate`, `logits` and `evaluate`: the same text with and without the cache, and clear refusals.
set -euo pipefail
program=$1 source=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

data=$source/datasets/data/frases.csv
sizes=(--n-layer 2 --n-head 2 --n-embd 16 --block-size 8 --batch-size 4 --eval-iters 4 --max-iters 40 --lr 1e-2
    --warmup-iters 5 --threads 1)

fail() {
    echo "FAILED: $*" >&2
    exit 1
}
status() {
    local wanted=$1 got=0
    shift
    "$@" >out 2>said </dev/null || got=$?
    [ "$got" = "$wanted" ] || fail "status $got, not $wanted: $* $(cat said)"
}
says() { grep -qF -e "$1" said || fail "'$(cat said)' does not say '$1'"; }
train() { "$program" train "$@"; }
generate() { "$program" generate "$@"; }

printf 'ação é não; o céu é azul\n%.0s' {1..60} >text.txt
for run in causal none; do
    "$program" train --data "$data" --grammar-size 20000 "${sizes[@]}" --mask $run --out-dir $run >/dev/null 2>&1
done
"$program" train --data text.txt "${sizes[@]}" --out-dir text >/dev/null 2>&1

# ---- Cached = uncached, within the context and past it ----
for n in 1 7 8 9 40; do
    for how in "--temp 0" "--seed 1" "--seed 2 --temperature 1.5 --top-k 5" "--seed 3 --top_p 0.9 --num-samples 3"; do
        # shellcheck disable=SC2086
        cmp <(generate causal -n $n $how -p "o cachorro") \
            <(generate causal --max-new-tokens $n $how --prompt "o cachorro" --no-kv-cache) || fail "-n $n $how"
    done
done
cmp <(generate causal --seed 1) <(generate causal/checkpoint.h5 --seed 1) || fail "a folder and its checkpoint"
cmp -s <(generate causal --seed 1) <(generate causal --seed 2) && fail "two seeds, one text"
[ "$(generate causal -p 'o cachorro' -n 5 | wc -w)" = 7 ] || fail "a prompt and five words"
[ "$(generate causal -n 5 --num-samples 2 | grep -c -e ---------------)" = 1 ] || fail "a line between samples"
[ "$(generate causal --ids 1,2,3 -n 4 | tr ',' '\n' | wc -l)" = 7 ] || fail "ids in, ids out"
generate text -n 300 --temp 2 | iconv -f UTF-8 -t UTF-8 >/dev/null || fail "text that is not UTF-8"
generate causal -n 1000000 2>/dev/null | head -c 10 >/dev/null || true # a reader that goes away

# ---- A smaller model drafts ----
"$program" train --data "$data" --grammar-size 20000 "${sizes[@]}" --n-layer 1 --n-embd 8 --out-dir small >/dev/null 2>&1
"$program" train --data "$data" --grammar-size 20000 "${sizes[@]}" --n-layer 1 --block-size 5 --out-dir short >/dev/null 2>&1
for n in 1 5 8 40; do
    cmp <(generate causal -n $n --temp 0 -p "o cachorro") \
        <(generate causal -n $n --temp 0 -p "o cachorro" --draft small --draft-tokens $((n % 4 + 1)) 2>/dev/null) ||
        fail "-n $n: greedy text changes with --draft"
done
cmp <(generate causal -n 20 --temp 0) <(generate causal -n 20 --temp 0 --draft short --draft-tokens 9 2>/dev/null) ||
    fail "a draft model with a shorter context"
status 0 generate causal -n 5 --num-samples 200 --draft small
says "tokens per pass of the model"
[ "$(grep -c -e --------------- out)" = 199 ] || fail "200 samples with --draft"
cp out drafted
status 0 generate causal -n 5 --num-samples 200 --draft small/checkpoint.h5
cmp drafted out || fail "the same seed with --draft"
status 0 generate causal -n 6 --draft causal # nothing to reject: 4 drafted and one more, then 2 drafted, of which one is used
says "3.00 tokens per pass of the model; 100% of 5 drafted tokens stayed"
status 0 generate causal -n 1 --draft causal
says "1.00 tokens per pass of the model; 100% of 1 drafted token stayed"
status 2 generate causal --draft small --no-kv-cache
says "--draft works with KV caches"
status 2 generate causal --draft text
says "--draft text has another vocabulary"
status 1 generate none --draft small
says "cannot judge them in one pass"
status 1 generate causal --draft none
says "the draft model looks ahead"
for value in nan inf; do # found before the prompt is printed, whichever of the two it is
    "$(dirname "$program")/tests/poison" small/checkpoint.h5 $value unfit.h5
    status 1 generate causal -p "o cachorro" --draft unfit.h5
    says "the draft model cannot be used: the model's logits are not finite, since its 'ln_f.bias' holds NaN or infinity"
    [ ! -s out ] || fail "text before the error: $(cat out)"
    "$(dirname "$program")/tests/poison" causal/checkpoint.h5 $value unfit.h5
    status 1 generate unfit.h5 -p "o cachorro" --draft small
    says "'ln_f.bias' holds NaN or infinity"
    [ ! -s out ] || fail "text before the error: $(cat out)"
done
status 1 generate causal --draft nofile.h5
says nofile.h5

# ---- The context ----
status 0 generate causal --temp 0 -n 3 --ids 1,2,3,4,5,6,7,8,9,10
says "10 tokens"; says "context is 8 tokens"
long=$(cut -d, -f11- out)
status 0 generate causal --temp 0 -n 3 --ids 3,4,5,6,7,8,9,10
[ "$(cut -d, -f9- out)" = "$long" ] || fail "a long prompt is not its last block"

# ---- A model that looks ahead ----
status 0 generate none -n 5
says "mask 'none'"
status 0 generate none -n 5 --no-kv-cache
says "mask 'none'"
status 2 generate none -n 5 --kv-cache
says "--kv-cache cannot be used: the mask is 'none'"

# ---- Another mask than the model's ----
status 0 generate causal --temp 0 -n 20 -p "o cachorro"
cp out own
status 0 generate causal --temp 0 -n 20 -p "o cachorro" --mask causal --kv-cache
cmp -s out own || fail "--mask causal is not the model's own mask"
status 0 generate none -n 5 --mask causal --kv-cache
[ ! -s err ] || fail "an unmasked model under the mask: $(cat err)"
status 0 generate causal -n 5 --mask prefix:4
says "writes under mask 'prefix:4'"
status 2 generate causal -n 5 --mask none --kv-cache
says "the mask is 'none'"
status 2 generate causal -n 5 --mask documents
says "needs a model that was trained with it"
status 2 generate causal --mask sideways
says "not 'sideways'"

# ---- Refusals ----
status 2 generate causal -p "o xyz"
says xyz; says "byte 2"
status 2 generate text -p "açaí"
says "í"; says "byte 4"
status 2 generate causal --temp -1
says --temperature
status 2 generate causal --temp nan
status 2 generate causal --top-k -1
status 2 generate causal --top-p -0.1
status 2 generate causal --top-p 1.1
cmp <(generate causal --top-p 0) <(generate causal --top-p 1) || fail "--top-p 0 is not off"
status 2 generate causal -n 0
status 2 generate
says CHECKPOINT
status 1 generate nofile.h5
says nofile.h5
status 1 generate "$data"
status 2 generate causal --ids 1,99
says "'99'"
status 2 generate causal --kv-cache --no-kv-cache
if [ -w /dev/full ]; then
    got=0
    generate causal -n 5 >/dev/full 2>said || got=$?
    [ $got = 1 ] || fail "a full disk: status $got"
    says "the output cannot be written: No space left on device"
    for command in "logits causal --ids 1" "inspect causal" "inspect causal --json" "compare causal none" \
        "evaluate causal --data $data --grammar-size 20000 --eval-iters 1" "lab mask --out-dir mask" \
        "train --data text.txt --max-iters 1 --eval-iters 1 --out-dir full"; do
        got=0
        # shellcheck disable=SC2086
        "$program" $command >/dev/full 2>said || got=$?
        [ $got = 1 ] || fail "a full disk: status $got of $command"
        says "the output cannot be written: No space left on device"
    done
fi

# ---- logits ----
status 0 "$program" logits causal --ids 1,2,3
[ "$(wc -l <out)" = 3 ] && [ "$(head -n 1 out | tr ',' '\n' | wc -l)" = 33 ] || fail "a row per position"
head -n 2 out >prefix
status 0 "$program" logits causal --ids 1,2,9
cmp prefix <(head -n 2 out) || fail "a later token changed earlier logits"
status 0 "$program" logits none --ids 1,2,9
cp out seen
status 0 "$program" logits none --ids 1,2,3
cmp -s <(head -n 2 seen) <(head -n 2 out) && fail "without a mask, a later token changes earlier logits"
for ids in 1,,2 1,x "" 1,2, -1 33 1.5 " 1"; do
    status 2 "$program" logits causal --ids "$ids"
    says "token id"
done
status 2 "$program" logits causal --ids 1,1,1,1,1,1,1,1,1
says "context of 8"

# ---- evaluate ----
status 0 "$program" evaluate causal none --data "$data" --grammar-size 20000 --mask both --eval-iters 4
[ "$(tail -n +2 out | cut -d, -f2,3 | tr '\n' ' ')" = \
    'causal,causal causal,none none,causal none,none ' ] || fail "training mask by evaluation mask: $(cat out)"
status 0 "$program" evaluate causal --data "$data" --grammar-size 20000 --eval-iters 4
[ "$(grep -c '^[0-7],' out)" = 8 ] || fail "a row per position"
for batch in 1 8 32; do # the same 32 windows however they are cut, up to the order of sums
    "$program" evaluate causal --data "$data" --grammar-size 20000 --batch-size $batch --eval-iters $((32 / batch)) |
        sed -n 2p | cut -d, -f4,5 | tr , ' ' | awk '{printf "%.4f %.4f\n", $1, $2}'
done | sort -u >losses
[ "$(wc -l <losses)" = 1 ] || fail "the windows depend on the batch: $(cat losses)"
for value in nan inf; do
    "$(dirname "$program")/tests/poison" causal/checkpoint.h5 $value $value.h5
    status 1 "$program" evaluate $value.h5 --data "$data" --grammar-size 20000
    says "'ln_f.bias' holds NaN or infinity"
    status 1 train --data "$data" --grammar-size 20000 --init-from $value.h5 --out-dir unfit
    says "'ln_f.bias' holds NaN or infinity"
    [ ! -e unfit ] || fail "a folder for a run that cannot begin"
    for command in "generate $value.h5" "generate $value.h5 --temperature 0 --no-kv-cache" "logits $value.h5 --ids 1"; do
        # shellcheck disable=SC2086
        status 1 "$program" $command
        says "'ln_f.bias' holds NaN or infinity"
    done
done
status 2 "$program" evaluate text --data "$data" --grammar-size 20000
says "not among"
status 2 train --data "$data" --init-from text --out-dir unfit
says "not among"
for command in "evaluate causal" "train --block-size 1000 --out-dir unfit"; do
    # shellcheck disable=SC2086
    status 2 "$program" $command --data "$data" --grammar-size 100 --validation 0.05
    says " split of frases.csv holds"
done
status 1 "$program" evaluate causal --data nofile.csv
status 0 "$program" evaluate text --data text.txt --eval-iters 2
grep -qE '^7,[0-9.]+,$' out || fail "no floor for a text"
cp causal/checkpoint.h5 alone.h5
status 2 "$program" evaluate alone.h5
says "there is no run.json beside alone.h5"
status 2 "$program" evaluate causal --data "$data" --mask some
says "own, both, or a mask"
status 2 "$program" evaluate causal --data "$data" --split test
says "train or val, not 'test'"
cp -r causal 'a "run", copied'
status 0 "$program" evaluate 'a "run", copied' --data "$data" --grammar-size 20000 --eval-iters 1
grep -qF '"a ""run"", copied",causal,causal,' out || fail "a name with a comma is not quoted: $(cat out)"
cp text.txt texts.csv
status 0 "$program" evaluate text --data texts.csv --eval-iters 2
says "texts.csv is read as plain text"; says "--column NAME"
status 0 train --data texts.csv "${sizes[@]}" --out-dir texts
says "texts.csv is read as plain text"; says "evaluating"
status 2 train --data text.txt --tokens gpt2 --out-dir unfit
says "--merges FILE"
