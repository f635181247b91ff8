# lab attention: the sum by hand, the maps of two models one mask apart, of a checkpoint, and the entropies.
maskgrad=$1
. "$(dirname "$0")/../tools/lab.bash"
"$maskgrad" lab attention --quick >out.txt 2>err.txt || fail "lab attention: status $?: $(cat err.txt)"
run=runs/lab-attention
all_pass $run
for name in sum layer-0 layer-1 heads entropy entropies; do [ -s $run/$name.csv ] || fail "$name.csv is missing"; done
grep 'down' $run/sum.csv | grep -q -e '-inf' || fail "the future's score is not -inf"

broken() { # broken PLACE OPTIONS...
    MASKGRAD_BREAK=attention.$1 "$maskgrad" lab attention --quick --out-dir broken "${@:2}" >out.txt 2>&1
    [ $? -eq 1 ] || fail "attention.$1: a failed check does not end in status 1"
    grep -q ',fail$' broken/summary.csv || fail "attention.$1: no verdict turned to fail"
}
broken mask

# A checkpoint, masked and leaking, with a prompt and without.
"$maskgrad" train --data "$2/datasets/data/sentences.csv" --grammar-size 2000 --max-iters 3 --eval-iters 1 --n-head 3 \
    --n-embd 24 --leak 1.2:1 --out-dir leaky >out.txt 2>&1 || fail "train: $(cat out.txt)"
"$maskgrad" lab attention --quick --checkpoint leaky --out-dir looked >out.txt 2>&1 || fail "--checkpoint: $(cat out.txt)"
all_pass looked
[ -s looked/layer-1.csv ] || fail "no map of the checkpoint's second layer"
broken sum --checkpoint leaky
broken scale --checkpoint leaky
# A text of the user's: other tokens on the axes, and no verdict that only the shipped data can bear.
"$maskgrad" lab attention --quick --data "$2/docs/house.md" --prompt "the mask" --out-dir text >out.txt 2>err.txt
status=$?
[ $status -eq 0 ] || [ $status -eq 3 ] || fail "--data: status $status: $(cat err.txt)"
grep -q ',fail$' text/summary.csv && fail "--data: $(grep ',fail$' text/summary.csv)"
grep -q ',h,e,' text/layer-0.csv || fail "the map is not of the text's letters: $(head -3 text/layer-0.csv)"
for i in $(seq 90); do echo "$i,the mask hides $i of them"; done | sed '1i id,text' >table.csv
"$maskgrad" lab attention --quick --data table.csv --column text --tokens word --out-dir column >out.txt 2>err.txt
status=$?
[ $status -eq 0 ] || [ $status -eq 3 ] || fail "--column: status $status: $(cat err.txt)"
grep -q ',␣mask,␣hides,' column/layer-0.csv || fail "the map is not of the column's words: $(head -3 column/layer-0.csv)"
"$maskgrad" lab attention --checkpoint leaky --column text --out-dir both >out.txt 2>&1
[ $? -eq 2 ] && grep -q -e '--column is about the data' out.txt || fail "--column of a checkpoint: $(cat out.txt)"
"$maskgrad" lab attention --data "$2/docs/house.md" --checkpoint leaky --out-dir both >out.txt 2>&1
[ $? -eq 2 ] && grep -q 'give one' out.txt || fail "--data and --checkpoint together: $(cat out.txt)"
word=$(sed -n 's/^start,\([^,]*\),.*/\1/p' "$2/datasets/data/sentences.csv" | head -1)
"$maskgrad" lab attention --quick --checkpoint leaky --prompt "$word $word" --out-dir said >out.txt 2>&1 ||
    fail "--prompt: $(cat out.txt)"
all_pass said
grep -q "prompt" said/report.html || fail "the report does not show the prompt"
"$maskgrad" lab attention --quick --checkpoint leaky --prompt "xyzzy" --out-dir said >out.txt 2>&1 &&
    fail "a word that is not there"
grep -q xyzzy out.txt || fail "the error does not name the word: $(cat out.txt)"
echo ok
