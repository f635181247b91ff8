# lab heads: it passes, writes what it promises, works on checkpoints and prompts, and a spoilt lab says so.
maskgrad=$1 source=$2
. "$(dirname "$0")/../tools/lab.bash"

"$maskgrad" lab heads --quick --out-dir run >out.txt 2>err.txt || fail "status $?: $(tail -1 err.txt)"
all_pass run
for name in portraits layers character heads; do [ -s run/$name.csv ] || fail "$name.csv is missing"; done
[ -s run/report.html ] || fail "no report"
[ "$(wc -l <run/heads.csv)" -eq 5 ] || fail "2 layers of 2 heads give $(wc -l <run/heads.csv) lines"
cut -d, -f9 run/heads.csv | grep -qx previous-token || fail "no head has the habit that the text asks for"

for part in entropy slice mask; do
    MASKGRAD_BREAK=heads.$part "$maskgrad" lab heads --quick --out-dir broken >out.txt 2>err.txt
    [ $? -eq 1 ] || fail "MASKGRAD_BREAK=heads.$part goes unnoticed"
    grep -q ',fail$' broken/summary.csv || fail "heads.$part: no verdict turned to fail"
done

printf 'the cat sat on the mat. the dog sat on the log. %.0s' $(seq 40) >text.txt
for mask in causal none; do
    "$maskgrad" train --data text.txt --max-iters 20 --n-layer 1 --n-head 2 --n-embd 8 --block-size 8 --mask $mask \
        --out-dir $mask >out.txt 2>&1 || fail "train: $(tail -1 out.txt)"
    "$maskgrad" lab heads --checkpoint $mask/checkpoint.h5 --prompt 'the cat sat' --out-dir c >out.txt 2>err.txt ||
        fail "on a checkpoint, mask $mask: $(tail -1 err.txt)"
    all_pass c
done
"$maskgrad" lab heads --checkpoint causal/checkpoint.h5 --layer 1 --out-dir p >out.txt 2>err.txt && fail "--layer 1 of 1"
grep -q -e '--layer 1 is not there: the model has 1 layer,' err.txt || fail "a layer too far: $(cat err.txt)"
grep -q 'Guess' out.txt && fail "a layer too far is found after the questions: $(cat out.txt)"

# An import: a layer of its own choice, tokens that are parts of a character, and a table of all heads.
"$maskgrad" import "$source/tests/data/gpt2-like/text" --out text.h5 >out.txt 2>&1 || fail "import: $(cat out.txt)"
"$maskgrad" lab heads --checkpoint text.h5 --layer 1 --prompt 'the — t' --out-dir gpt2 >out.txt 2>err.txt ||
    fail "on an import: $(tail -1 err.txt)"
all_pass gpt2
grep -q '^"layer 1, head 0",1,0,␣,the,yes,' gpt2/portraits.csv || fail "a space has no label: $(sed -n 6,9p gpt2/portraits.csv)"
grep -q ',\\xE2,' gpt2/portraits.csv || fail "a byte of a character has no label"
iconv -f UTF-8 -t UTF-8 gpt2/portraits.csv gpt2/report.html out.txt >valid.txt || fail "not UTF-8"
[ "$(cut -d, -f9 gpt2/heads.csv | grep -c .)" -eq 5 ] || fail "2 layers of 2 heads: $(cat gpt2/heads.csv)"
grep -q 'one text of 6' out.txt || fail "one text has no mean: $(grep 'text of' out.txt)"

"$maskgrad" lab heads --checkpoint causal/checkpoint.h5 --out-dir own >out.txt 2>err.txt ||
    fail "on a checkpoint's own texts: $(tail -1 err.txt)"
"$maskgrad" lab heads --checkpoint causal/checkpoint.h5 --prompt 'the Cat' --out-dir p >out.txt 2>err.txt && fail "'C'"
grep -q "C" err.txt || fail "a character outside the vocabulary is not named: $(cat err.txt)"
"$maskgrad" lab heads --checkpoint causal/checkpoint.h5 --prompt t --out-dir p >out.txt 2>err.txt && fail "one token"
grep -q 'at least 2' err.txt || fail "a prompt of one token: $(cat err.txt)"
"$maskgrad" lab heads --prompt the --out-dir p >out.txt 2>err.txt && fail "--prompt without a model"
grep -q -e '--checkpoint' err.txt || fail "--prompt without a model: $(cat err.txt)"
# One word: whatever a head looks at is a copy.
printf 'a%.0s' $(seq 400) >one.txt
"$maskgrad" train --data one.txt --max-iters 2 --n-layer 1 --n-head 2 --n-embd 8 --block-size 8 --eval-iters 1 \
    --out-dir word >out.txt 2>&1 || fail "train on one word: $(tail -1 out.txt)"
"$maskgrad" lab heads --checkpoint word --out-dir w >out.txt 2>err.txt || fail "one word: $(tail -1 err.txt)"
! cut -d, -f9 w/heads.csv | grep duplicate || fail "copies have a name where there is nothing else"
echo ok
