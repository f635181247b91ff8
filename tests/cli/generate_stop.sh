#!/usr/bin/env bash
# Where generated text ends: --stop, <|endoftext|>, and prompts line by line.
maskgrad=$1 source=$2
. "$source/tests/tools/lab.bash"
for i in $(seq 200); do printf 'abcdef<|endoftext|>'; done >text.txt
"$maskgrad" train --data text.txt --special --n-layer 1 --n-head 1 --n-embd 16 --block-size 16 --batch-size 8 --max-iters 150 \
    --lr 1e-2 --warmup-iters 5 --eval-interval 150 --eval-iters 1 --threads 1 --out-dir run >out 2>err || fail "train: $(cat err)"
generate() { "$maskgrad" generate run --temperature 0 --threads 1 "$@" 2>err || fail "generate $*: $(cat err)"; }
is() { # WANTED ARGUMENT...
    local wanted=$1
    shift
    [ "$(generate "$@")" = "$wanted" ] || fail "generate $*: '$(generate "$@")', not '$wanted'"
}
is abcdef --prompt ab --max-new-tokens 100
is 'abcdef<|endoftext|>abcdef<|endoftext|>ab' --prompt ab --max-new-tokens 14 --ignore-eos
# Before the text, however it is cut into tokens; what only begins it is printed.
is ab --prompt ab --max-new-tokens 100 --stop c
is abc --prompt ab --max-new-tokens 100 --stop de
is abcdef --prompt ab --max-new-tokens 100 --stop deg
is abcdef --prompt ab --max-new-tokens 100 --stop efx
is abcde --prompt ab --max-new-tokens 100 --ignore-eos --stop 'f<|endoftext|>a'
# Side by side, each sample ends by itself.
"$maskgrad" generate run --prompt a --num-samples 5 --temperature 0.01 --max-new-tokens 50 >out 2>err || fail "$(cat err)"
[ "$(grep -c '^abcdef$' out)" = 5 ] || fail "five samples: $(cat out)"
# Line by line; a line that cannot be a prompt is named, and the next one is read.
printf 'ab\nxyz\nabcd\n' | "$maskgrad" generate run --interactive --temperature 0 >out 2>err || fail "--interactive: $(cat err)"
[ "$(tr '\n' ' ' <out)" = 'abcdef abcdef ' ] || fail "--interactive: $(cat out)"
tr '\n' ' ' <err | tr -s ' ' | grep -q "line 2: .*'x' at byte 0" || fail "--interactive: $(cat err)"
grep -q -e '--prompt' err && fail "--interactive speaks of --prompt: $(cat err)"
"$maskgrad" generate run --stop '' >/dev/null 2>err && fail "an empty --stop"
grep -q -e '--stop is empty' err || fail "$(cat err)"
"$maskgrad" generate run --interactive --prompt a >/dev/null 2>err && fail "two prompts"
grep -q 'leave out --prompt' err || fail "$(cat err)"
echo "text ends where it should"
