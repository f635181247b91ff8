#!/usr/bin/env bash
# The installed program without its sources: it is installed, the path of the source tree is taken out of it, and it does
# the main job from another folder. The grammar that it reads is the installed one.
set -u
build=$(dirname "$1") source=$2
. "$source/tests/tools/lab.bash"
command -v perl >/dev/null || { echo "perl is not installed: the source tree's path cannot be taken out of the program" >&2; exit 77; }

cmake --install "$build" --prefix "$folder/prefix" >/dev/null || fail "cmake --install"
maskgrad=$folder/prefix/bin/maskgrad
away=$(printf '%s' "$source" | tr -c / x) # a path of the same length that is nowhere
from=$source to=$away perl -0777 -pi -e 's/\Q$ENV{from}\E/$ENV{to}/g' "$maskgrad"
grep -qF "$source/datasets" "$maskgrad" && fail "the program still knows where its sources were"
mkdir work && cd work || exit 1

"$maskgrad" lab leak --quick --n-layer 1 --n-head 2 --n-embd 16 --block-size 8 --max-iters 20 --out-dir leak >out 2>&1
[ -e leak/summary.csv ] || fail "lab leak: $(tail -n 3 out)"
[ -e leak/report.html ] || fail "lab leak writes no report"
grep -q "frases.csv" leak/report.html || fail "lab leak does not say which grammar it read"

# Another grammar in the prefix gives another floor: the installed one is read.
grammar=$(find "$folder/prefix" -name frases.csv)
[ -n "$grammar" ] || fail "frases.csv is not installed"
printf 'state,word,next,weight\na,x,a,1\na,y,b,1\nb,z,a,1\n' >"$grammar"
"$maskgrad" lab leak --quick --n-layer 1 --n-head 2 --n-embd 16 --block-size 8 --max-iters 20 --out-dir other >out 2>&1
[ -e other/summary.csv ] || fail "lab leak on another grammar: $(tail -n 3 out)"
cmp -s <(cut -d, -f1,2 leak/summary.csv) <(cut -d, -f1,2 other/summary.csv) && fail "the installed grammar is not the one that is read"

"$maskgrad" train --data "$grammar" --grammar-size 2000 --n-layer 1 --n-head 2 --n-embd 16 --block-size 8 --max-iters 5 \
    --out-dir run >out 2>&1 || fail "train: $(tail -n 3 out)"
"$maskgrad" generate run --max-new-tokens 5 >out 2>&1 || fail "generate: $(cat out)"
"$maskgrad" inspect run --verify >out 2>&1 || fail "inspect: $(cat out)"
exit 0
