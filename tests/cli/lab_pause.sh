# Every lab states its hypotheses and asks for guesses before it works; guesses are shown beside what was measured, and change
# no verdict.
maskgrad=$1
. "$(dirname "$0")/../tools/lab.bash"

# With stdin open and silent, a lab waits at its first question: nothing was measured, nothing written but its texts.
mkfifo silence
exec 3<>silence
for lab in $("$maskgrad" lab | awk '/^  [a-z]/ {print $1}'); do
    [ -s "$2/docs/lab-$lab.md" ] || fail "lab $lab has no page docs/lab-$lab.md"
    grep -q "^| [0-9]* | .maskgrad lab $lab. | \[lab-$lab\](lab-$lab.md) |" <(sed '/^<!--/,/^-->/d' "$2/docs/course.md") ||
        fail "lab $lab is not in docs/course.md"
    "$maskgrad" lab "$lab" --quick --pause --out-dir "$lab" >out.txt 2>err.txt <&3 &
    waiting=$!
    for _ in $(seq 300); do
        grep -q 'Your guess' out.txt && break
        sleep 0.1
    done
    grep -q 'Your guess' out.txt || fail "lab $lab asks nothing: $(cat out.txt err.txt)"
    grep -q '^Hypotheses' out.txt && grep -q '^  1\. ' out.txt || fail "lab $lab asks before its hypotheses: $(cat out.txt)"
    [ ! -s err.txt ] || fail "lab $lab works before it asks: $(cat err.txt)"
    ls "$lab" | grep -v '\.txt$' && fail "lab $lab writes before it asks"
    kill -INT $waiting
    wait $waiting
    [ $? -eq 130 ] || fail "lab $lab, interrupted at its question: $(cat err.txt)"
    [ ! -e "$lab/summary.csv" ] || fail "lab $lab goes on after an interruption"
done
exec 3>&-

# A guess is a number, with its unit or without, with a point or a comma; anything else is asked for again.
"$maskgrad" lab mask --out-dir silent >out.txt || fail "without --pause"
grep -q 'Your guess' out.txt && fail "somebody is asked without --pause"
grep -q '^     measured 37.32 %$' out.txt || fail "no answer without a guess: $(cat out.txt)"
printf 'a third\n33,5 %%\n' | "$maskgrad" lab mask --pause --out-dir guessed >out.txt || fail "with a guess: status $?"
grep -q "'a third' is not a number" out.txt || fail "a guess that is no number: $(cat out.txt)"
[ "$(tail -1 guessed/questions.csv | grep -o '%,.*' | cut -c 1-10)" = '%,33.5,37.' ] || fail "$(cat guessed/questions.csv)"
grep -q '<td data-label="your guess">33.5 %</td>' guessed/report.html || fail "the report does not show the guess"
grep -q '<td class="measured" data-label="measured">37.32 %</td>' guessed/report.html || fail "the report does not show the answer"
# No line, an empty one, and a wild guess: the same verdicts and pictures.
"$maskgrad" lab mask --pause --out-dir ended </dev/null >out.txt || fail "at the end of input: status $?"
grep -q 'Your guess' out.txt && grep -q 'guessed  ' out.txt && fail "a guess from nowhere"
echo | "$maskgrad" lab mask --pause --out-dir empty >/dev/null || fail "an empty line: status $?"
echo 1e30 | "$maskgrad" lab mask --pause --out-dir wild >/dev/null || fail "a wild guess: status $?"
for run in guessed ended empty wild; do
    diff -r -x questions.csv -x report.html -x .lock silent $run >/dev/null || fail "the guess changed something: $run"
    grep -c 'your guess' $run/report.html >/dev/null && [ $run != guessed ] && [ $run != wild ] &&
        fail "$run: a column for no guess"
done
echo ok
