#!/usr/bin/env bash
# `lab all`: every lab of the list passes at its quick size and is in the index.
set -euo pipefail
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

"$program" lab all --quick --out-dir everything >out.txt 2>err.txt || {
    grep -h ',fail$' everything/*/summary.csv || tail -n 20 err.txt
    exit 1
}
labs=$("$program" lab | awk '/^  [a-z]/ {print $1}')
[ "$(wc -w <<<"$labs")" -ge 10 ] || { echo "FAIL: fewer than ten labs are listed"; exit 1; }
for lab in $labs; do
    [ -s "everything/lab-$lab/summary.csv" ] || { echo "FAIL: lab $lab wrote no summary"; exit 1; }
    grep -q "href=\"lab-$lab/report.html\"" everything/index.html || { echo "FAIL: $lab is not in the index"; exit 1; }
    echo "$lab: $(grep -c ',pass$' "everything/lab-$lab/summary.csv") checks pass"
done
# A terminal has neither the report's colors nor its page.
if grep -niE '\b(red|white|gray|blue|bright|on the (left|right)|in the middle)\b' out.txt; then
    echo "FAIL: the terminal's text speaks of colors or of the report's page"
    exit 1
fi
grep -q 'White: exactly 0' everything/lab-proof/report.html || { echo "FAIL: the report does not explain its colors"; exit 1; }
