# lab mask, as a user runs it: what it prints, what it writes, and that a spoilt lab says so.
maskgrad=$1
. "$(dirname "$0")/../tools/lab.bash"

"$maskgrad" lab >list.txt || fail "lab without a name: status $?"
grep -q '^  mask  *Why does a mask put' list.txt || fail "the list does not show the question of lab mask"
"$maskgrad" lab nosuch >out.txt 2>err.txt
[ $? -eq 2 ] || fail "an unknown lab is not wrong usage"
grep -q "there is no lab 'nosuch'" err.txt && grep -q '^  mask ' err.txt || fail "an unknown lab does not list the labs"
"$maskgrad" lab mask --data x >out.txt 2>&1
[ $? -eq 2 ] || fail "an option that the lab does not take is accepted"

LC_ALL=C "$maskgrad" lab mask >out.txt 2>err.txt || fail "lab mask: status $?: $(cat err.txt)"
grep -q 'Question' out.txt && grep -q 'Hypotheses' out.txt && grep -q ' checks pass' out.txt || fail "parts are missing"
LC_ALL=C grep -n '[^ -~]' out.txt && fail "bytes beyond ASCII in a locale without UTF-8"
awk 'length > 80 {print; long = 1} END {exit long}' out.txt || fail "lines beyond 80 columns"
grep -q '^  1 0 0 0 0 0' out.txt || fail "the triangle is not printed"
LC_ALL=C.UTF-8 "$maskgrad" lab mask >out.txt || fail "in a UTF-8 locale"
grep -q '░' out.txt || fail "no shading in a UTF-8 locale"
[ "$(LC_ALL=C.UTF-8 grep -c '…' out.txt)" -eq 2 ] || fail "more is abbreviated than the two texts of a check"
LC_ALL=C.UTF-8 COLUMNS=40 "$maskgrad" lab mask >out.txt || fail "in 40 columns"
LC_ALL=C.UTF-8 grep -E '^.{41,}' out.txt && fail "lines beyond 40 columns"
grep -q '^    empty row  1$' out.txt || fail "a table that does not fit is not printed cell by cell"
[ -s err.txt ] && command -v gnuplot >/dev/null && fail "something on stderr: $(cat err.txt)"

run=runs/lab-mask
[ "$(head -1 $run/summary.csv)" = check,expected,observed,verdict ] || fail "the header of summary.csv"
all_pass $run
for name in scores row weights leak sums extremes; do [ -s $run/$name.csv ] || fail "$name.csv is missing"; done
if command -v gnuplot >/dev/null; then
    for name in scores row weights leak sums; do
        [ -s $run/$name.png ] && [ -s $run/$name.svg ] || fail "the picture $name is missing"
    done
fi

# All pictures show one set of scores: the bars are the row of query 2 in the maps.
awk -F, 'NR > 1 && $1 ~ /^−∞/ {print $3}' $run/row.csv >bars.txt
awk -F, 'NR > 1 && $1 ~ /^−∞/ && $2 == 2 {print $7}' $run/weights.csv >cells.txt
[ "$(wc -l <bars.txt)" -eq 6 ] && cmp -s bars.txt cells.txt || fail "two pictures, two sets of scores: $(paste bars.txt cells.txt)"

# The command in the report reproduces it byte for byte.
command=$(sed -n 's/^<pre class="command">\(.*\)<\/pre>$/\1/p' $run/report.html)
cp -r $run before
eval "$command" >/dev/null || fail "the command of the report fails: $command"
diff -r before $run >/dev/null || fail "another run of the same command differs"
"$maskgrad" lab mask --out-dir "it's a folder" --seed 7 >/dev/null || fail "another folder and seed"
grep -q "lab mask --out-dir &#39;it&#39;\\\\&#39;&#39;s a folder&#39; --seed 7" "it's a folder/report.html" ||
    fail "the command is not quoted"

MASKGRAD_BREAK=mask.polarity "$maskgrad" lab mask --out-dir broken >out.txt
[ $? -eq 1 ] || fail "a failed check does not end in status 1"
grep -q ',fail$' broken/summary.csv || fail "no verdict turned to fail"
grep -q '✗ fail' broken/report.html && grep -q 'MASKGRAD_BREAK=mask.polarity' broken/report.html ||
    fail "the report does not say that it is broken"

# Without gnuplot: one warning, numbers, terminal pictures, and a note in place of each picture.
PATH=/nonexistent "$maskgrad" lab mask --out-dir plain >out.txt 2>err.txt || fail "without gnuplot: status $?"
[ "$(wc -l <err.txt)" -eq 1 ] && grep -q 'gnuplot is not installed' err.txt || fail "the warning: $(cat err.txt)"
[ -s plain/leak.csv ] && [ ! -e plain/leak.png ] || fail "without gnuplot the numbers are missing"
[ "$(grep -c 'drawn by gnuplot' plain/report.html)" -eq 5 ] || fail "no note in place of each picture"
# A gnuplot that fails is noticed.
mkdir bin && printf '#!/bin/sh\nexit 3\n' >bin/gnuplot && chmod +x bin/gnuplot
PATH=$PWD/bin:$PATH "$maskgrad" lab mask --out-dir failed >out.txt 2>err.txt
[ $? -eq 1 ] || fail "a failing gnuplot does not end in status 1"
[ "$(wc -l <err.txt)" -eq 1 ] && grep -q 'gnuplot failed' err.txt || fail "the warning: $(cat err.txt)"
[ "$(grep -c 'drawn by gnuplot' failed/report.html)" -eq 5 ] || fail "pictures of a failing gnuplot"
# A disk that is full for the pictures only: the numbers stay, and the status says that something is missing.
printf '#!/bin/sh\nulimit -f 4\nexec %s "$@"\n' "$(command -v gnuplot)" >bin/gnuplot
PATH=$PWD/bin:$PATH "$maskgrad" lab mask --out-dir full >out.txt 2>err.txt
[ $? -eq 1 ] && grep -q 'gnuplot failed' err.txt || fail "a full disk: $(cat err.txt)"
[ -s full/report.html ] && [ -s full/leak.csv ] && [ ! -e full/leak.png ] || fail "a full disk: $(ls full)"

# A folder is one lab's: another lab does not replace its report, and no lab replaces other files.
"$maskgrad" lab proof --quick --out-dir plain >out.txt 2>err.txt
[ $? -eq 2 ] && grep -q "plain holds the files of 'maskgrad lab mask'" err.txt || fail "two labs in a folder: $(cat err.txt)"
mkdir mine && echo precious >mine/report.html
"$maskgrad" lab mask --out-dir mine >out.txt 2>err.txt
[ $? -eq 2 ] && grep -q "report.html" err.txt || fail "a lab among foreign files: $(cat err.txt)"
[ "$(ls -A mine) $(cat mine/report.html)" = "report.html precious" ] || fail "foreign files: $(ls -A mine)"
mkdir all && echo precious >all/index.html
"$maskgrad" lab all --quick --out-dir all >out.txt 2>err.txt
[ $? -eq 2 ] && grep -q "index.html" err.txt && [ "$(cat all/index.html)" = precious ] || fail "lab all: $(cat err.txt)"
# On a model: its own weights are what −∞ gives to its own scores.
"$maskgrad" train --data "$2/datasets/data/frases.csv" --grammar-size 3000 --max-iters 5 --eval-iters 1 --out-dir model \
    >out.txt 2>&1 || fail "no model to look into: $(cat out.txt)"
"$maskgrad" lab mask --checkpoint model --out-dir own >out.txt 2>&1 || fail "lab mask --checkpoint: status $?"
grep -q '^the model.s scores under −∞: weight on the future,exactly 0,0,pass$' own/summary.csv || fail "no verdict on the model"
[ -s own/model.csv ] || fail "no table of the model"
# The user's settings of gnuplot are not ours.
GNUTERM=x11 "$maskgrad" lab mask --quick --out-dir settings >out.txt 2>&1 || fail "with GNUTERM: $(tail -n 1 out.txt)"
echo ok
