#!/usr/bin/env bash
# Data as people have it, from the command line: what is read, what run.json keeps of it, and what a resumed run refuses.
maskgrad=$1 source=$2
. "$source/tests/tools/lab.bash"
tiny=(--n-layer 1 --n-head 1 --n-embd 8 --block-size 8 --batch-size 2 --eval-interval 4 --eval-iters 2 --threads 1)
train() { "$maskgrad" train "${tiny[@]}" "$@" >out 2>err; }
says() { grep -qF -e "$1" err || fail "'$(cat err)' does not say '$1'"; }
refused() { # STATUS WORDS ARGUMENT...
    local wanted=$1 words=$2 got=0
    shift 2
    train "$@" </dev/null || got=$?
    [ "$got" = "$wanted" ] || fail "status $got, not $wanted: $* $(cat err)"
    says "$words"
}
setting() { # RUN NAME
    python3 -c 'import json, sys; print(json.dumps(json.load(open(sys.argv[1] + "/run.json"))["settings"][sys.argv[2]]))' "$@"
}
for i in $(seq 60); do echo "o gato $i viu a casa"; done >a.txt
for i in $(seq 60); do echo "a casa $i viu o gato"; done >b.txt
mkdir texts && cp a.txt b.txt texts

# Several files, and a folder with the same: the same ids, so the same losses. Each file is a document.
train --data a.txt --data b.txt --max-iters 4 --mask documents --out-dir two || fail "two files: $(cat err)"
train --data texts --max-iters 4 --mask documents --out-dir folder || fail "a folder: $(cat err)"
cmp <(cut -d, -f1-6 two/log.csv) <(cut -d, -f1-6 folder/log.csv) || fail "two files and their folder differ"
[ "$(setting two data)" = '["a.txt", "b.txt"]' ] || fail "run.json: $(setting two data)"
[ "$(setting folder data)" = '"texts"' ] || fail "run.json: $(setting folder data)"
train --data a.txt --data b.txt --max-iters 2 || fail "no folder named: $(cat err)"
[ -d "runs/a.txt-and-1-more-causal" ] || fail "the run folder: $(ls runs)"

# A resumed run finds them, and refuses others, in another order too.
train --resume --out-dir two --max-iters 6 || fail "resume: $(cat err)"
refused 2 'is not what the run in two was started with' --resume --out-dir two --max-iters 8 --data a.txt
refused 2 'is not what the run in two was started with' --resume --out-dir two --max-iters 8 --data b.txt --data a.txt
echo "o gato viu" >>b.txt
refused 2 'is not what the run in two was started with' --resume --out-dir two --max-iters 8
refused 1 'give --data FILE' --resume --out-dir folder --max-iters 8 --data nowhere

# evaluate finds them too, from the folder and from the file, and refuses what has changed.
cmp <("$maskgrad" evaluate folder --eval-iters 2 2>/dev/null) <("$maskgrad" evaluate folder --data texts --eval-iters 2 2>/dev/null) ||
    fail "evaluate without --data"
"$maskgrad" evaluate folder/checkpoint.h5 --eval-iters 2 >out 2>err || fail "evaluate a file: $(cat err)"
"$maskgrad" evaluate two --eval-iters 2 >out 2>err && fail "changed data was evaluated"
says 'the data a.txt and 1 more is not what the run in two was trained on'
cp folder/checkpoint.h5 alone.h5
"$maskgrad" evaluate alone.h5 >out 2>err && fail "no data"
says 'there is no run.json beside alone.h5'

# Standard input is data, and has to be given again.
train --data - --max-iters 4 --out-dir piped <a.txt || fail "standard input: $(cat err)"
refused 2 'came from standard input: give --data FILE' --resume --out-dir piped --max-iters 6
train --resume --out-dir piped --max-iters 6 --data - <a.txt || fail "piped again: $(cat err)"
train --resume --out-dir piped --max-iters 8 --data a.txt || fail "from the file: $(cat err)"

# Excel in Portuguese on Windows: semicolons, carriage returns, Windows-1252, newlines inside quotes, nameless columns.
printf 'sep=;\r\nid;texto;;\r\n' >excel.csv
for i in $(seq 40); do printf '%s;"a a\xe7\xe3o ""%s"";\nfim";;\r\n' "$i" "$i"; done >>excel.csv
refused 1 'is read with --encoding WINDOWS-1252' --data excel.csv --column texto
refused 2 "has no column 'text'; it has 'id', 'texto', ''" --data excel.csv --column text --encoding WINDOWS-1252
train --data excel.csv --column texto --encoding WINDOWS-1252 --max-iters 4 --out-dir excel || fail "Excel: $(cat err)"
[ "$(setting excel encoding)" = '"WINDOWS-1252"' ] || fail "run.json keeps no encoding"
train --resume --out-dir excel --max-iters 6 || fail "Excel, resumed: $(cat err)"
"$maskgrad" inspect excel/checkpoint.h5 >out || fail "inspect"
iconv -f WINDOWS-1252 -t UTF-8 excel.csv >utf8.csv
train --resume --out-dir excel --max-iters 8 --data utf8.csv --encoding UTF-8 || fail "the same text as UTF-8: $(cat err)"
refused 2 '--delimiter' --resume --out-dir excel --max-iters 9 --delimiter tab
refused 2 'end documents with a token of their own, by --special' --data utf8.csv --column texto --mask documents --max-iters 1 --out-dir x
train --data utf8.csv --column texto --mask documents --special --max-iters 4 --out-dir special || fail "--special: $(cat err)"
refused 2 '--delimiter is one punctuation mark' --data utf8.csv --column texto --delimiter ab
refused 2 '--delimiter is one punctuation mark' --data utf8.csv --column texto --delimiter '"'

# A grammar takes neither of these, which is said.
train --data "$source/datasets/data/frases.csv" --grammar-size 2000 --max-iters 1 --delimiter ';' --special --out-dir idle ||
    fail "a grammar: $(cat err)"
says '--delimiter changes nothing: frases.csv is a grammar'
says '--special changes nothing: frases.csv is a grammar'

# One flag given again is one list, but other flags keep their last value.
refused 2 '--data needs a path' --data ''
train --data a.txt --max-iters 9 --max-iters 2 --out-dir last || fail "a repeated flag: $(cat err)"
[ "$(setting last max_iters)" = 2 ] || fail "the last value counts"
echo "data is read as people have it"
