#!/usr/bin/env bash
# How fast each kind of data is loaded, and how much memory that takes: the table in docs/performance.md. The texts are
# made from this repository's own files, so no network is needed.
#
#     scripts/loading.sh [MERGES]    GPT-2's merges.txt; the small one of the tests without it
set -euo pipefail
cd "$(dirname "$0")/.."
merges=${1:-tests/data/merges.txt}
cmake --preset release >/dev/null
cmake --build --preset release --target loading | tail -n 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat README.md docs/*.md lib/*/*.[ch] >"$work/page"
for _ in $(seq 100); do cat "$work/page"; done >"$work/text"
{
    echo 'id,text,"a, third",'
    # Quotes, commas and empty fields, as spreadsheets write them.
    sed 's/"/""/g; s/^/7,"/; s/$/",,x/' "$work/text"
} >"$work/documents"
head -c 1000000 "$work/text" | tr -c '0-9\n' ',' | tr -d '\n' >"$work/line"
awk 'BEGIN {
    print "state,word,next,weight"
    for (i = 0; i < 300000; i++) print "state" i % 1000 ",word" i % 2999 ",state" (i * 7 + int(i / 1000)) % 1000 "," 1 + i % 3
}' >"$work/grammar"

row() { # NAME FILE [TOKENS [COLUMN [MERGES]]]
    local name=$1
    shift
    # The fastest of three: other programs use the caches too, even where processor seconds are counted.
    for _ in 1 2 3; do build/release/tests/loading "$@"; done | sort -t, -k2 -n | head -n 1 | awk -F, -v OFS=' | ' -v name="$name" '{ $1 = $1; print "| " name " | " $0 " |" }'
}
echo "| source | MB | seconds | MB/s | tokens | bytes per token beyond the file |"
echo "|---|---|---|---|---|---|"
row "text, char" "$work/text" char
row "text, word" "$work/text" word
row "text, gpt2 ($(wc -l <"$merges") merges)" "$work/text" gpt2 - "$merges"
row "CSV column, char" "$work/documents" char text
row "one line of commas, char" "$work/line" char
row "grammar" "$work/grammar"
