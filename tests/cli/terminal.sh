#!/usr/bin/env bash
# What a terminal shows: tables and sentences fit 80 columns, stay readable at any width, and a message on stderr is one
# line unless stderr is a terminal.
set -u
program=$1 source=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
export LC_ALL=C.UTF-8
unset COLUMNS
failures=0
fail() { echo "FAILED: $*" >&2; failures=$((failures + 1)); }
widest() { wc -L <"$1"; }

data=$source/datasets/data/frases.csv
for mask in causal none; do
    run=a-run-with-a-long-name-$mask
    "$program" train --data "$data" --grammar-size 2000 --n-layer 1 --n-embd 16 --max-iters 3 --eval-iters 1 \
        --mask "$mask" --out-dir "$run" >out 2>err || fail "train: $(cat err)"
    [ "$(widest out)" -le 80 ] || fail "train prints more than 80 columns: $(cat out)"
done
cp -r "$source/tests/data/gpt2-like/plain" gpt2

commands=(
    "compare a-run-with-a-long-name-causal a-run-with-a-long-name-none"
    "inspect a-run-with-a-long-name-causal"
    "import gpt2 --out gpt2.h5"
    "bench --n-layer 1 --n-embd 16 --n-head 2 --block-size 8 --batch-size 2 --steps 1"
    "lab"
    "lab mask --quick"
    "--help"
    "train --help"
)
for command in "${commands[@]}"; do
    # shellcheck disable=SC2086
    "$program" $command >out 2>err || fail "$command: $(cat err)"
    [ "$(widest out)" -le 80 ] || fail "$command prints more than 80 columns: $(cat out)"
done
# At any width no word is torn into letters.
for command in "inspect a-run-with-a-long-name-causal" "lab" "--help" "${commands[0]}"; do
    for columns in 1 21 33 79 400 x -3; do
        # shellcheck disable=SC2086
        COLUMNS=$columns "$program" $command >out || fail "$command in $columns columns"
        [ "$(widest out)" -le 80 ] || fail "$command: wider than 80 columns where COLUMNS is '$columns'"
        [ "$(grep -cE '^ *[A-Za-z] *$' out)" -lt 4 ] ||
            fail "$command: a letter per line where COLUMNS is '$columns'"
    done
done

# stderr: one line, or wrapped on a terminal.
"$program" train --data "$data" --validation 1e-9 --out-dir none 2>err
[ "$(wc -l <err)" -eq 1 ] && [ "$(widest err)" -gt 80 ] || fail "an error in a file is not one line: $(cat err)"
COLUMNS=30 "$program" train --data "$data" --validation 1e-9 --out-dir none 2>other
cmp -s err other || fail "COLUMNS changes an error in a file"
if command -v script >/dev/null; then
    COLUMNS=60 TERM=dumb script -qec "'$program' train --data '$data' --validation 1e-9 --out-dir none" /dev/null \
        </dev/null | tr -d '\r' >other
    [ "$(wc -l <other)" -ge 3 ] && [ "$(widest other)" -le 60 ] || fail "an error on a terminal is not wrapped: $(cat other)"
    [ "$(tr -s ' \n' ' ' <err)" = "$(tr -s ' \n' ' ' <other)" ] || fail "an error on a terminal reads otherwise: $(cat other)"
fi

# Colors: only on a terminal that has them, and never in a file.
escape=$(printf '\033')
printed() { # COMMAND...: what a terminal gets
    TERM=${term-xterm} script -qec "$*" /dev/null </dev/null | tr -d '\r'
}
if command -v script >/dev/null; then
    audit="'$program' audit a-run-with-a-long-name-none"
    printed "'$program' lab mask --quick --out-dir colored" | grep -qF "$escape[32mpass$escape[0m" || fail "pass is not green"
    printed "$audit" | grep -qF "$escape[1;31mFAIL" || fail "a failing probe is not red: $(printed "$audit")"
    printed "'$program' train --data nowhere" | grep -qF "$escape[1mmaskgrad train:$escape[0m" || fail "an error is not bold"
    printed "'$program' train --data nowhere 2>err | cat" >/dev/null
    for quiet in "NO_COLOR=1 $audit" "TERM=dumb $audit" "$audit | cat" "NO_COLOR=1 '$program' train --data nowhere"; do
        printed "$quiet" | grep -q "$escape\[[0-9;]*m" && fail "colors all the same: $quiet"
    done
    NO_COLOR='' printed "$audit" | grep -qF "$escape[1;31m" || fail "an empty NO_COLOR is set"
    grep -qrI "$escape\[[0-9;]*m" colored err && fail "colors in a file"
    # How long it takes is said on a terminal, once it is known, and of the part that is under way.
    printed "'$program' lab leak --max-iters 3000 --n-layer 1 --n-embd 32 --out-dir timed & sleep 6; kill -INT \$!; wait" \
        | tr '\033' '\n' >out
    grep -qE 'training [0-9]+/3000, about [0-9]+ (s|min) left  loss' out || fail "no time left: $(tail -n 5 out)"
    sed -n '/training/{p;q}' out | grep -q left && fail "the time left is said before it is known"
fi
exit $((failures > 0))
