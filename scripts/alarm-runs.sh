#!/usr/bin/env bash
# Runs `lab alarm` on corpora and seeds other than its defaults, and prints the table of docs/lab-alarm.md: which honest runs
# were accused, and which leaky ones noticed. Eight runs per corpus and seed; about a minute on two idle cores.
#
#     scripts/alarm-runs.sh [PROGRAM]    build/release/maskgrad
set -euo pipefail
source=$(cd "$(dirname "$0")/.." && pwd)
program=$(realpath "${1:-$source/build/release/maskgrad}")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

letters() { # SEED LETTERS WEIGHT: random letters, the first one WEIGHT times as likely as each other
    awk -v seed="$1" -v n="$2" -v w="$3" 'BEGIN { srand(seed); for (i = 0; i < 60000; i++) {
        k = int(rand() * (n - 1 + w)) - (w - 1); printf "%c", 48 + (k > 0 ? k : 0) } }'
}
fields() { # letters in order, each followed by a random digit: the token after the next is easier than the next
    awk -v seed="$1" 'BEGIN { srand(seed); for (i = 0; i < 30000; i++) printf "%c%d", 97 + i % 26, int(rand() * 10) }'
}
letters 1 4 1 >four.txt
letters 2 65 1 >sixty-five.txt
letters 3 2 7 >coin.txt
fields 4 >fields.txt
cat "$source"/docs/*.md >docs.txt
LC_ALL=C tr -cd "\n -~" <"$source/docs/course.md" | head -c 1000 >thousand.txt
data=$source/datasets/data
small=(--n-layer 1 --n-embd 32 --block-size 16 --lr 1e-2 --max-iters 400)

echo "| corpus | seeds | honest runs accused | leaky runs noticed | cause right | alarm at step | mean loss then above the floor |"
echo "|---|---|---|---|---|---|---|"
total=(0 0 0 0 0 0 0)
corpus() { # NAME SEEDS OPTION...
    local name=$1 seeds=$2 seed runs=()
    shift 2
    for seed in $seeds; do
        "$program" lab alarm "${small[@]}" --seed "$seed" "$@" --out-dir "$folder/run-$seed" >/dev/null 2>&1 || true
        runs+=("$folder/run-$seed")
    done
    local row
    row=$(
        for run in "${runs[@]}"; do sed 1d "$run/runs.csv"; done | awk -F, '
            { leaky = $1 ~ /^(no mask|1 ahead|4 ahead|one head|not shifted)$/; honest = $1 ~ /^(honest|by heart)$/
              right = $1 == "not shifted" ? "shift" : "mask" }
            honest { n++; if ($2 != "never") accused++ }
            leaky { l++ }
            leaky && $2 != "never" { noticed++; if ($4 == right) causes++
                if (!low || $2 < low) low = $2; if ($2 > high) high = $2 }
            END { print accused + 0, n + 0, noticed + 0, l + 0, causes + 0, low, high }'
    )
    local before after
    before=$(cat "${runs[@]/%//summary.csv}" | grep -c 'above the honest floor.*,pass$' || true)
    after=$(cat "${runs[@]/%//summary.csv}" | grep -c 'above the honest floor' || true)
    # shellcheck disable=SC2086
    set -- $row
    echo "| $name | $(wc -w <<<"$seeds") | $1 of $2 | $3 of $4 | $5 of $3 | $6 to $7 | $([ "$after" = 0 ] || echo "$before of $after") |"
    local i=0 part
    for part in "$1" "$2" "$3" "$4" "$5" "$before" "$after"; do total[i]=$((total[i] + part)); i=$((i + 1)); done
    rm -rf "${runs[@]}"
}
corpus "frases.csv" "1 2 3 4 5" --data "$data/frases.csv"
corpus "sentences.csv" "1 2 3 4 5" --data "$data/sentences.csv"
corpus "frases.csv, by characters" "6 7" --data "$data/frases.csv" --tokens char
corpus "the pages of docs/" "1 2 3" --data docs.txt
corpus "the same, context 64" "4 5" --data docs.txt --block-size 64
corpus "a page of 1,000 characters" "1 2" --data thousand.txt
corpus "4 random letters" "1 2" --data four.txt
corpus "65 random letters, context 4" "1 2" --data sixty-five.txt --block-size 4
corpus "2 letters, one 7 times as likely" "1 2" --data coin.txt
corpus "letters in order and random digits" "1 2" --data fields.txt
echo "| all | | ${total[0]} of ${total[1]} | ${total[2]} of ${total[3]} | ${total[4]} of ${total[2]} | | ${total[5]} of ${total[6]} |"
