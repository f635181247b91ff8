#!/usr/bin/env bash
# Every mask that --mask takes: train, resume, generate with a cache and without, evaluate; and what is refused.
set -u
maskgrad=$1 source=$2
. "$source/tests/tools/lab.bash"

tiny=(--data "$source/datasets/data/frases.csv" --grammar-size 5000 --n-layer 2 --n-head 2 --n-embd 16 --block-size 12
    --batch-size 4 --eval-interval 6 --eval-iters 2 --warmup-iters 3 --lr 1e-2 --threads 2)

refuses() { # PART COMMAND...
    local part=$1
    shift
    "$maskgrad" "$@" >log 2>&1 && fail "$* is not refused"
    tr '\n' ' ' <log | tr -s ' ' | grep -qF -- "$part" || fail "$*: $(cat log) does not say '$part'"
}

for mask in causal none window:1 window:5 window:99 prefix:0 prefix:4 block:5 documents documents:run-on; do
    run=("${tiny[@]}" --mask $mask --lr-decay-iters 12)
    "$maskgrad" train "${run[@]}" --max-iters 12 --out-dir whole >log 2>&1 || fail "$mask: $(tail -n 1 log)"
    "$maskgrad" train "${run[@]}" --max-iters 6 --out-dir parts >log 2>&1 || fail "$mask: $(tail -n 1 log)"
    for threads in 1 3; do # and the bits do not depend on how many
        "$maskgrad" train "${run[@]}" --max-iters 6 --threads $threads --out-dir threads >log 2>&1 ||
            fail "$mask: $(tail -n 1 log)"
        [ "$("$maskgrad" logits threads --ids 1,2,3,4,5,6)" = "$("$maskgrad" logits parts --ids 1,2,3,4,5,6)" ] &&
            cmp -s threads/samples.txt parts/samples.txt || fail "$mask: $threads threads give another model than 2"
        rm -rf threads
    done
    refuses "--mask is 'block:7', but" train --resume --out-dir parts --mask block:7
    "$maskgrad" train --resume --out-dir parts --max-iters 12 >log 2>&1 || fail "$mask: $(tail -n 1 log)"
    cmp -s whole/checkpoint.h5 parts/checkpoint.h5 || fail "$mask: the resumed run is another one"
    "$maskgrad" evaluate whole --data "$source/datasets/data/frases.csv" --grammar-size 5000 --eval-iters 1 --threads 2 \
        --mask $mask >asked 2>log || fail "$mask: $(cat log)"
    "$maskgrad" evaluate whole --data "$source/datasets/data/frases.csv" --grammar-size 5000 --eval-iters 1 --threads 2 \
        >own 2>log || fail "$mask: $(cat log)"
    cmp -s asked own || fail "$mask: evaluated with its own mask, and with the same one asked for"
    case $mask in
    none | prefix:4 | block:5)
        refuses "--kv-cache cannot be used" generate whole --kv-cache --max-new-tokens 1
        ;;
    *)
        "$maskgrad" generate whole --kv-cache --max-new-tokens 40 --temperature 0 >cached 2>log || fail "$mask: $(cat log)"
        "$maskgrad" generate whole --no-kv-cache --max-new-tokens 40 --temperature 0 >uncached 2>log ||
            fail "$mask: $(cat log)"
        cmp -s cached uncached || fail "$mask: cached $(cat cached), uncached $(cat uncached)"
        ;;
    esac
    rm -rf whole parts
done

# What a document is, is said where it matters.
printf 'a cat\nsat\non it\na mat\na cat\nsat\non it\na mat\na cat\nsat\non it\na mat\n' >lines.txt
{ echo t && cat lines.txt; } >rows.csv
says() { # TEXT COMMAND...
    local text=$1
    shift
    "$maskgrad" "$@" >out 2>log || fail "$*: $(tail -n 1 log)"
    [ "$(grep -c "a document is" log)" -eq $((${#text} > 0)) ] || fail "$*: $(cat log)"
    [ -z "$text" ] || grep -q "$text" log || fail "$*: $(cat log)"
}
short=(--n-layer 1 --n-head 1 --n-embd 8 --block-size 4 --batch-size 2 --max-iters 1 --eval-iters 1 --validation 0.3)
says "a document is a line of the text" train "${short[@]}" --data lines.txt --mask documents --out-dir lines
says "a document is a row of the CSV" train "${short[@]}" --data rows.csv --column t --mask documents:run-on --out-dir rows
says "a document is a sentence of the grammar" train "${short[@]}" --data "$source/datasets/data/frases.csv" \
    --grammar-size 2000 --mask documents --out-dir sentences
says "" train "${short[@]}" --data lines.txt --mask window:2 --out-dir window
says "a document is a line of the text" evaluate lines --data lines.txt --validation 0.3 --eval-iters 1
says "a document is a line of the text" evaluate window --mask documents --data lines.txt --validation 0.3 --eval-iters 1
says "" evaluate lines --mask both --data lines.txt --validation 0.3 --eval-iters 1

# A mask that is another one within the context is called so, in one sentence; one that is not, is not.
notice() { # NOTICE FLAG...
    local text=$1
    shift
    "$maskgrad" train "${short[@]}" --data lines.txt --force --out-dir same "$@" >out 2>log || fail "$*: $(tail -n 1 log)"
    [ "$(grep -o 'mask .* is the same as .*' log)" = "$text" ] || fail "$*: '$(cat log)' does not say '$text'"
}
for mask in prefix:4 prefix:99 block:4 block:64; do
    notice "mask $mask is the same as none here: --block-size is 4" --mask $mask
done
for mask in window:4 window:40 prefix:1 block:1; do
    notice "mask $mask is the same as causal here: --block-size is 4" --mask $mask
done
notice "mask lookahead 3 is the same as none here: --block-size is 4" --lookahead 3
for mask in causal none documents window:3 prefix:3 block:3; do notice "" --mask $mask; done
notice "" --lookahead 2

refuses "contradict each other" train "${tiny[@]}" --lookahead 1 --mask window:4
refuses "--mask takes window:N with N from 1" train "${tiny[@]}" --mask window:0
printf 'one line of text, and no other' >one.txt
refuses "is one document" train --data one.txt "${tiny[@]:2}" --block-size 2 --mask documents
printf 't\n"a\nb"\nccc\nddddddddddddddd\n' >inside.csv
refuses "newline inside its texts" train --data inside.csv "${tiny[@]:2}" --column t --block-size 2 --mask documents
"$maskgrad" bench --n-layer 1 --n-embd 16 --n-head 2 --steps 2 --mask documents --threads 2 >log || fail "bench: $(cat log)"
