#!/bin/bash
# maskgrad export: the way to Hugging Face's files and back, what is refused, and what happens to a folder.
set -u
program=$1 source=$2
python=/usr/bin/python3
models=$source/tests/data/gpt2-like
grammar=$source/datasets/data/frases.csv
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT

failures=0
fail() { echo "FAILED: $*" >&2; failures=$((failures + 1)); }
complains() { grep -qF -- "$1" "$folder/err" || fail "stderr does not say: $1 but $(cat "$folder/err")"; }
run() { # run STATUS ARGUMENTS...
    local expected=$1; shift
    "$program" "$@" > "$folder/out" 2> "$folder/err"
    local status=$?
    [ "$status" -eq "$expected" ] || fail "$* returns $status, not $expected: $(cat "$folder/err")"
}
train() { # train NAME FLAGS...: a checkpoint of two steps
    local name=$1; shift
    run 0 train --out-dir "$folder/$name" --max-iters 2 --eval-iters 1 "$@"
}
logits() { # logits CHECKPOINT TO
    run 0 logits "$1" --ids 1,0,3,2,5
    cp "$folder/out" "$2"
}
returns() { # returns CHECKPOINT [FLAG]: exported and imported, it has the same bits of logits
    local checkpoint=$1; shift
    rm -rf "$folder/hf"
    run 0 export "$checkpoint" --out "$folder/hf" "$@"
    run 0 import "$folder/hf" --out "$folder/back.h5"
    logits "$checkpoint" "$folder/before"
    logits "$folder/back.h5" "$folder/after"
    cmp -s "$folder/before" "$folder/after" || fail "$checkpoint has other logits after its return"
}

# Models of all sizes and vocabularies return; those with GPT-2's tokens whole, as the same file.
seq 1 400 | sed 's/.*/the cat & the dog/' > "$folder/text.txt"
train toy --data "$grammar"
train char --data "$folder/text.txt" --n-layer 1 --n-head 3 --n-embd 15 --block-size 7
train word --data "$folder/text.txt" --tokens word --n-head 1 --no-scale --dropout 0.1
train bpe --data "$folder/text.txt" --tokens gpt2 --merges "$source/tests/data/merges.txt" --n-head 2 --n-embd 14
for name in toy char word; do
    returns "$folder/$name" --allow-loss
    run 0 export "$folder/back.h5" --out "$folder/again" --force
    cmp "$folder/hf/model.safetensors" "$folder/again/model.safetensors" || fail "$name returns with other weights"
    [ -e "$folder/hf/merges.txt" ] && fail "$name has merges"
done
grep -q '"scale_attn_weights": false' "$folder/hf/config.json" || fail 'a model without scale does not say so'
returns "$folder/bpe"
cmp -s "$folder/hf/merges.txt" "$source/tests/data/merges.txt" || fail 'the merges changed'
[ -e "$folder/hf/maskgrad.json" ] && fail 'a model that GPT-2 can say has a rest'
for form in plain prefixed unscaled text; do
    run 0 import "$models/$form" --out "$folder/first.h5"
    rm -rf "$folder/hf"
    run 0 export "$folder/first.h5" --out "$folder/hf"
    run 0 import "$folder/hf" --out "$folder/second.h5"
    cmp -s "$folder/first.h5" "$folder/second.h5" || fail "$form: imported, exported, imported is another checkpoint"
    [ -e "$folder/hf/vocab.json" ] || [ "$form" != text ] || fail 'no vocab.json'
done
cmp -s <("$python" -c 'import json,sys; print(json.load(open(sys.argv[1])))' "$models/text/vocab.json") \
    <("$python" -c 'import json,sys; print(json.load(open(sys.argv[1])))' "$folder/hf/vocab.json") ||
    fail 'vocab.json says something else'

# What GPT-2's files cannot say is refused, and named; a mask that is causal in this context is said.
run 2 export "$folder/toy" --out "$folder/refused"
complains 'its vocabulary (grammar, '
complains '--allow-loss'
[ -e "$folder/refused" ] && fail 'a refusal leaves a folder'
for flag in '--mask none' '--mask window:3' '--mask prefix:4' '--mask block:2' '--mask documents' '--lookahead 1' \
    '--leak 0.1:1' --no-output-projection --no-positions; do
    # shellcheck disable=SC2086
    train odd --force --data "$folder/text.txt" --tokens gpt2 --merges "$source/tests/data/merges.txt" $flag
    run 2 export "$folder/odd" --out "$folder/refused"
    case $flag in
    --no-output*) complains 'no output projection' ;;
    --no-pos*) complains 'no position embeddings' ;;
    *) complains 'its mask is ' ;;
    esac
    case $flag in --no-*) returns "$folder/odd" --allow-loss ;; esac
    rm -rf "$folder/hf"
    run 0 export "$folder/odd" --out "$folder/hf" --allow-loss
    [ -s "$folder/err" ] || fail "$flag is lost without a word"
    "$python" -m json.tool "$folder/hf/maskgrad.json" > /dev/null || fail "$flag: maskgrad.json is not JSON"
    run 0 import "$folder/hf" --dry-run
    complains 'maskgrad.json'
done
for flag in '--mask window:32' '--mask prefix:1' '--mask block:1'; do
    # shellcheck disable=SC2086
    train wide --force --data "$folder/text.txt" --tokens gpt2 --merges "$source/tests/data/merges.txt" $flag
    run 0 export "$folder/wide" --out "$folder/wide-hf" --force
done

# Folders: nothing is replaced unasked, an earlier export's merges never stay beside another model, and a failure leaves
# what was there.
run 2 export "$folder/bpe" --out "$folder/wide-hf"
complains 'already there; --force'
run 0 export "$folder/char" --out "$folder/wide-hf" --force --allow-loss
[ -e "$folder/wide-hf/merges.txt" ] && fail 'the merges of an earlier export are left'
complains 'did not belong'
run 2 export "$folder/bpe"
complains '--out DIR is missing'
run 2 export "$folder/bpe" --out ''
run 1 export "$folder/bpe" --out "$folder/text.txt"
complains 'Not a directory'
run 1 export "$folder/bpe" --out "$folder/no/such"
run 1 export "$folder/nothing" --out "$folder/hf2"
before=$(cat "$folder"/wide-hf/* | cksum)
(ulimit -f 8; "$program" export "$folder/bpe" --out "$folder/wide-hf" --force > /dev/null 2> "$folder/err") &&
    fail 'a file too large for the limit is a success'
complains 'cannot be written: File too large'
[ "$before" = "$(cat "$folder"/wide-hf/* | cksum)" ] || fail 'a failed export changed the folder'
(ulimit -f 8; "$program" export "$folder/bpe" --out "$folder/fresh" > /dev/null 2> "$folder/err")
[ -e "$folder/fresh" ] && fail 'a failed export left its folder'
chmod a-w "$folder/wide-hf"
if [ ! -w "$folder/wide-hf" ]; then
    run 1 export "$folder/bpe" --out "$folder/wide-hf" --force
    complains 'Permission denied'
fi
[ -z "$(find "$folder" -name '.maskgrad-tmp*')" ] || fail 'temporary files are left'

exit $((failures > 0))
