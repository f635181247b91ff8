#!/usr/bin/env bash
# The lesson, small: both models, every file, and verdicts that turn when the mask is spoiled.
set -euo pipefail
program=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
    echo "FAIL: $*" >&2
    exit 1
}

settings=(--data "$source/datasets/data/frases.csv" --max-iters 300 --lr 3e-3 --quick)
"$program" lab leak "${settings[@]}" --max-iters 900 --out-dir whole >out.txt 2>err.txt ||
    { cat out.txt err.txt; fail "the lab does not pass"; }
for file in summary.csv report.html loss.csv loss.png loss.svg position.csv position.png influence.csv influence.png; do
    [ -s "whole/$file" ] || fail "no $file"
done
head -1 whole/summary.csv | grep -qx 'check,expected,observed,verdict' || fail "summary.csv has another header"
[ "$(grep -c ',pass$' whole/summary.csv)" -ge 10 ] || fail "fewer checks than there were: $(cat whole/summary.csv)"
! grep -q ',fail$' whole/summary.csv || fail "a check failed, and the exit status is 0"
[ "$(awk 'length > 400' out.txt | wc -l)" -eq 0 ] || fail "lines that no terminal shows"
! grep -n ' $' out.txt || fail "blanks at the end of a line"

# A masked model that sees one token ahead, and an unmasked one that is masked: the lab must notice both.
for broken in leak.mask leak.open; do
    status=0
    MASKGRAD_BREAK=$broken "$program" lab leak "${settings[@]}" --out-dir "$broken" >out.txt 2>&1 || status=$?
    [ "$status" -eq 1 ] || fail "$broken: exit status $status, expected 1"
    grep -q ',fail$' "$broken/summary.csv" || fail "$broken: no verdict turned to fail"
done
grep 'influence of later tokens on earlier predictions' leak.mask/summary.csv | head -1 | grep -q ',fail$' ||
    fail "the influence check did not see a mask that leaks one token"

# Several seeds: verdicts are on means and on the worst of the seeds, and say so; one seed says nothing of it.
tiny=(--data "$source/datasets/data/frases.csv" --quick --n-layer 1 --n-head 2 --n-embd 16 --block-size 8 --max-iters 20)
status=0
"$program" lab leak "${tiny[@]}" --seeds 3 --out-dir seeds >out.txt 2>err.txt || status=$?
[ "$status" -eq 1 ] || fail "--seeds 3: exit status $status, expected 1 after twenty steps: $(cat err.txt)"
grep -q '^"masked: gap to the honest floor (upper end of the mean.s 95 % interval, 3 seeds)",.*,fail$' seeds/summary.csv &&
    grep -q '^"unmasked: loss, against H(last)/T (farther end of .*, 3 seeds)",.*,fail$' seeds/summary.csv &&
    grep -q '^"masked: influence .*, largest of 3 seeds",exactly 0,0,pass$' seeds/summary.csv ||
    fail "--seeds 3: the verdicts: $(cat seeds/summary.csv)"
[ "$(cut -d, -f1 seeds/by-seed.csv | sort -u | paste -sd ' ')" = "1337 1338 1339 seed" ] ||
    fail "--seeds 3: the seeds: $(cat seeds/by-seed.csv)"
mean=$(awk -F, '$2 == "unmasked" { sum += $3; n++ } END { printf "%.3f", sum / n }' seeds/by-seed.csv)
grep -q "^loss,.*,$mean[0-9] ± [0-9.]* (n = 3)$" seeds/seeds.csv && ! grep '(n.*…' out.txt ||
    fail "--seeds 3: the mean is not $mean: $(cat seeds/seeds.csv)"
for name in loss position; do
    awk -F, 'NR > 1 && !/floor/ && $4 > 0 { n++ } END { exit n < 10 }' seeds/$name.csv || fail "$name: no band: $(cat seeds/$name.csv)"
done
[ ! -e whole/by-seed.csv ] && ! grep -q 'seeds' whole/summary.csv || fail "one seed has no interval"
# A seed that sees the future is not lost in a mean.
MASKGRAD_BREAK=leak.mask "$program" lab leak "${tiny[@]}" --seeds 2 --out-dir seen >out.txt 2>&1 || true
grep -q '^"masked: influence .*, largest of 2 seeds",.*,fail$' seen/summary.csv || fail "--seeds 2: $(cat seen/summary.csv)"

# A run of one step measures no lesson, so it states none.
status=0
"$program" lab leak --quick --max-iters 1 --out-dir one >out.txt 2>&1 || status=$?
[ "$status" -eq 1 ] || fail "one step: exit status $status, expected 1"
for text in one/report.html out.txt; do
    ! tr -s '\n ' ' ' <"$text" | grep -oE 'stops there|goes through that floor|position is free|rubbish|falls with it|never learned' ||
        fail "$text: an outcome that was not measured"
done

# What the models write is wider than a column: where a line continues, it is indented below its star.
LC_ALL=C.UTF-8 sed -n '/^First windows/,/^Sentences/p' out.txt | sed '1,2d' | grep -v '^$\|^Sentences' >windows.txt
grep -q '^      [a-z]' windows.txt || fail "continued lines are not indented"
! grep -v '^  \(\*\|    [a-z]\|  [a-z]\|   *\)' windows.txt || fail "a line without indentation"

# Text: no floor, the masked model judges.
for _ in $(seq 400); do echo "the quick brown fox jumps over the lazy dog and runs away from it"; done >text.txt
status=0
"$program" lab leak --data text.txt --max-iters 30 --quick --out-dir text >out.txt 2>&1 || status=$?
[ "$status" -le 1 ] || fail "a text: exit status $status"
grep -q 'surprises the masked model' text/summary.csv || fail "a text is not judged"
grep -q '>30 steps of' text/report.html || fail "--quick changed the steps that were given"

# What a text cannot show is undecided, not passed and not failed: here no token says anything about the next.
awk 'BEGIN { srand(1); for (i = 0; i < 20000; i++) printf "%s", substr("acgt", 1 + int(4 * rand()), 1) }' >random.txt
small=(--quick --n-layer 1 --n-head 2 --n-embd 32 --block-size 8 --lr 1e-2)
status=0
"$program" lab leak "${small[@]}" --data random.txt --max-iters 300 --out-dir random >out.txt 2>&1 || status=$?
[ "$status" -eq 3 ] || fail "random letters: exit status $status: $(grep ',fail$' random/summary.csv)"
grep -q '^"masked: loss, against a table of what follows each token".*,undecided$' random/summary.csv ||
    fail "random letters: $(cat random/summary.csv)"
grep -q '^unmasked: loss,.*,pass$' random/summary.csv || fail "random letters: the leak is not seen: $(cat random/summary.csv)"
# On a text, too, a "masked" model that reads its labels is recognized by what no honest one can do.
MASKGRAD_BREAK=leak.mask "$program" lab leak "${small[@]}" --data random.txt --max-iters 300 --out-dir told >out.txt 2>&1 || true
grep -q '^masked: evidence that position 0 reads its label,.*,fail$' told/summary.csv || fail "labels at position 0: $(cat told/summary.csv)"
# A text that an honest model knows by rule leaves no room for a leak to show.
printf 'abcdefgh%.0s' $(seq 500) >rule.txt
status=0
"$program" lab leak "${small[@]}" --data rule.txt --max-iters 100 --out-dir rule >out.txt 2>&1 || status=$?
[ "$status" -eq 3 ] || fail "a text by rule: exit status $status: $(grep ',fail$' rule/summary.csv)"
[ "$(grep -c '^unmasked: loss.*,undecided$' rule/summary.csv)" -eq 2 ] || fail "a text by rule: $(cat rule/summary.csv)"
# Nor does a grammar without memory, whose words make sentences in any order.
printf 'state,word,next,weight\nS,a,S,1\nS,b,S,2\nS,c,S,3\n' >loops.csv
status=0
"$program" lab leak "${small[@]}" --data loops.csv --max-iters 300 --out-dir loops >out.txt 2>&1 || status=$?
[ "$status" -eq 3 ] || fail "a grammar without memory: exit status $status: $(grep ',fail$' loops/summary.csv)"
[ "$(grep -c 'of scattered words are sentences.*,undecided$' loops/summary.csv)" -eq 2 ] || fail "$(cat loops/summary.csv)"

# Nor one that leaves its writer almost no choice: only the last position teaches it.
printf 'state,word,next,weight\nA,red,B,1\nA,blue,C,1\nB,x,D,1\nC,x,E,1\nD,big,F,1\nE,small,F,1\nF,.,A,1\n' >choice.csv
"$program" lab leak "${small[@]}" --data choice.csv --max-iters 100 --out-dir choice >out.txt 2>&1 || true
grep -q '^"unmasked: grammatical sentences, first window".*leaves 0.173 nats per word open.*,undecided$' choice/summary.csv ||
    fail "a grammar without choices: $(cat choice/summary.csv)"

mkdir -p there/empty
"$program" lab leak --data /nonexistent --out-dir there/empty/new/bad 2>/dev/null >&2 || true
[ -d there/empty ] && [ ! -e there/empty/new ] || fail "what was there is gone, or what was made is left"

# A first window without room for a whole sentence (six words and the start), or a window without a label.
for short in "1 7" "6 7" "1 2 --data text.txt"; do
    read -r size least data <<<"$short"
    status=0
    "$program" lab leak --block-size "$size" $data --out-dir short >out.txt 2>err.txt || status=$?
    [ "$status" -eq 2 ] && grep -q -e "--block-size $size is too short for this lab: .* give $least or more" err.txt ||
        fail "--block-size $size: status $status: $(cat err.txt)"
    [ ! -s out.txt ] || fail "the question is asked before the block size is refused"
done

# Bad input: one sentence, nothing left over.
for bad in "--data /nonexistent" "--data text.txt --block-size 100000" "--n-embd 30" "--max-iters 0" "--batch-size x"; do
    status=0
    "$program" lab leak $bad --out-dir bad >out.txt 2>err.txt || status=$?
    [ "$status" -eq 1 ] || [ "$status" -eq 2 ] || fail "$bad: exit status $status"
    [ ! -e bad ] || fail "$bad: a folder is left over"
    [ "$(grep -c . err.txt)" -le 3 ] || fail "$bad: more than a sentence and a hint: $(cat err.txt)"
done
"$program" lab leak --save-interval 5 --out-dir bad >out.txt 2>err.txt && fail "a lab takes a flag that does nothing there"
[ ! -e bad ] || fail "--save-interval: a folder is left over"
