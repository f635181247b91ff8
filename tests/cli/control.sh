#!/usr/bin/env bash
# Names and texts from strangers do not control the terminal: whatever a file, a name or an argument holds, no control
# character but a newline reaches stdout or stderr, and no newline of theirs begins a line there.
set -u
program=$1 source=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
out=$folder/out err=$folder/err
python=/usr/bin/python3

# A color, a window title, a C1 introducer, an override of direction, a line separator, DEL, a tab, and a forged line.
nasty=$'\e[31m\e]0;title\a\xc2\x9b31m\xe2\x80\xae\xe2\x80\xa8\x7f\t\rFORGED\nFORGED'
word=${nasty//[$'\t\r\n']/} # what a grammar's word may hold
path=${nasty//$'\n'/}        # and a path of --data

failures=0
fail() { echo "FAILED: $*" >&2; failures=$((failures + 1)); }
# Tabs too: nothing of ours prints one.
orders='[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]'
clean() { # clean FILE WHAT
    if LC_ALL=C grep -aqP "$orders" "$1"; then fail "$2 lets a control character through: $(cat -v "$1" | head -5)"; fi
    if grep -aq '^FORGED' "$1"; then fail "$2 lets a line be forged: $(cat -v "$1" | head -5)"; fi
}
tried=0
run() { # run STATUS ARGUMENTS...
    local expected=$1; shift
    "$program" "$@" >"$out" 2>"$err" </dev/null
    local status=$?
    tried=$((tried + 1))
    if [ "$status" -ne "$expected" ]; then fail "$(printf '%q ' "$@") returns $status, not $expected: $(cat -v "$err")"; fi
    clean "$out" "stdout of $(printf '%q ' "$@")"
    clean "$err" "stderr of $(printf '%q ' "$@")"
}
tiny=(--n-layer 1 --n-head 1 --n-embd 4 --block-size 4 --batch-size 1 --max-iters 1 --eval-iters 1)

# The command line.
run 2 "$nasty"
run 2 lab "$nasty"
run 2 train "--$nasty"
run 2 train "--nosuch=$nasty"
run 2 train "-$nasty"
run 2 train --max-iters "$nasty"
run 2 train "--mask=$nasty"
run 2 generate one "$nasty"

# Files that are not there, and names of those that are.
run 2 train --data "$folder/$nasty"
run 1 train --data "$folder/$path"
run 1 inspect "$folder/$nasty"
run 1 compare "$folder/$nasty" "$folder/$nasty"
mkdir "$folder/$nasty" "$folder/$path"
run 1 train --data "$folder/$path"

# A CSV file's header and cells; text; a grammar's states and words.
printf '"%s",text\n1,2\n' "$nasty" >"$folder/table.csv"
run 2 train --data "$folder/table.csv" --column body
run 2 train --data "$folder/table.csv" --column "$nasty "
printf 'a,b\n1\n' >"$folder/$path/ragged.csv"
run 1 train --data "$folder/$path/ragged.csv" --column a
for row in "$word,x,B,1" "A,$word,A,-1" "A,x,$word,1" "A,x,A,$word" "A,\"$nasty\",A,1"; do
    printf 'state,word,next,weight\nA,x,A,1\n%s\n' "$row" >"$folder/grammar.csv"
    run 1 train --data "$folder/grammar.csv"
done
printf 'state,"%s",word,next\n' "$word" >"$folder/grammar.csv"
run 1 train --data "$folder/grammar.csv"

# A whole run of such words, in such a folder, from a file of such a name.
printf 'state,word,next,weight\nA,%s,A,1\nA,b,A,1\n' "$word" >"$folder/grammar.csv"
cp "$folder/grammar.csv" "$folder/$path/$path.csv"
run 0 train --data "$folder/$path/$path.csv" --out-dir "$folder/$nasty/run" --grammar-size 200 "${tiny[@]}"
run 0 train --data "$folder/grammar.csv" --out-dir "$folder/run" --grammar-size 200 "${tiny[@]}"
printf 'plain\r\n%s' "$nasty$nasty" >"$folder/$path/text.csv" # a warning names it
run 0 train --data "$folder/$path/text.csv" --out-dir "$folder/text" "${tiny[@]}"
run 0 compare "$folder/$nasty/run" "$folder/run" --out-dir "$folder/compare"
run 0 compare "$folder/$nasty/run" "$folder/run" --out-dir "$folder/$nasty/compare"
run 0 audit "$folder/$nasty/run" --sequences 1 --length 4 --out-dir "$folder/$nasty/audit" --json "$folder/$nasty/json"
run 0 lab mask --quick --out-dir "$folder/$nasty/lab"
run 1 lab mask --quick --out-dir "$folder/$path/ragged.csv/lab"
run 0 bench --checkpoint "$folder/$nasty/run" --csv "$folder/$nasty/bench.csv"
run 0 import "$source/tests/data/gpt2-like/plain" --out "$folder/$nasty/gpt2.h5"
run 0 evaluate "$folder/$nasty/run" --data "$folder/$path/$path.csv" --eval-iters 1
run 0 inspect "$folder/$nasty/run"
run 0 inspect --json "$folder/run"
run 0 evaluate "$folder/$nasty/run" "$folder/run" --data "$folder/grammar.csv"
printf 'state,word,next,weight\nA,other,A,1\nA,b,A,1\n' >"$folder/other.csv"
run 2 evaluate "$folder/run" --data "$folder/other.csv"
run 2 generate "$folder/run" --prompt "$nasty"
run 2 generate "$folder/run" --ids "$nasty"

# run.json says what the data were.
sed -i 's|"path": *"[^"]*"|"path": "\\u001b]0;x\\u0007\\u009b\\u202e\\nFORGED"|; s|"data": *"[^"]*"|"data": "\\u001b\\nFORGED"|' \
    "$folder/run/run.json"
"$program" compare "$folder/run" "$folder/text" >"$out" 2>"$err"
clean "$out" 'compare, of a run.json with such a path'
clean "$err" 'compare, of a run.json with such a path'

# A program gets text unchanged; a terminal does only if that is asked for.
"$program" generate "$folder/run" -n 20 >"$out" || fail 'generate'
grep -q $'\e' "$out" || fail 'generate into a file writes other bytes than the model'
if command -v script >/dev/null; then
    TERM=dumb script -qec "'$program' generate '$folder/run' -n 20" /dev/null </dev/null | tr -d '\r' >"$out"
    clean "$out" 'generate to a terminal'
    grep -qF '\x1B[31m' "$out" || fail "generate to a terminal does not show the character: $(cat -v "$out")"
    TERM=dumb script -qec "'$program' generate '$folder/run' -n 20 --raw" /dev/null </dev/null >"$out"
    grep -q $'\e' "$out" || fail 'generate --raw escapes'
else
    echo 'left out: a terminal (Debian: bsdutils has script)'
fi

# Tensors and groups of files that came from elsewhere.
if "$python" -c 'import json, struct' 2>/dev/null; then
    cp -r "$source/tests/data/gpt2-like/plain" "$folder/gpt2"
    chmod -R u+w "$folder/gpt2"
    NASTY=$nasty "$python" - "$folder/gpt2/model.safetensors" <<'END' || fail 'python'
import json, os, struct, sys
with open(sys.argv[1], "rb") as file:
    size, = struct.unpack("<Q", file.read(8))
    header, data = json.loads(file.read(size)), file.read()
end = max(t["data_offsets"][1] for k, t in header.items() if k != "__metadata__")
header[os.environ["NASTY"]] = {"dtype": "F32", "shape": [1], "data_offsets": [end, end + 4]}
header = json.dumps(header).encode()
with open(sys.argv[1], "wb") as file:
    file.write(struct.pack("<Q", len(header)) + header + data + b"\0\0\0\0")
END
    run 0 import --dry-run "$folder/gpt2"
    grep -qF 'skipped  \x1B[31m' "$out" || fail "import does not list the tensor: $(cat -v "$out")"
fi
if "$python" -c 'import h5py' 2>/dev/null; then
    damage() { # damage STATEMENT: of `file`, with `nasty`
        cp "$source/tests/checkpoints/version-1.h5" "$folder/nasty.h5"
        NASTY=$word "$python" -c "
import h5py, os, sys
nasty = os.environ['NASTY']
with h5py.File('$folder/nasty.h5', 'r+') as file:
    $1
" || fail "python: $1"
        dd if=/dev/zero of="$folder/nasty.h5" bs=512 count=1 conv=notrunc status=none # the seal
        for command in inspect 'inspect --json' 'inspect --verify' generate; do
            # shellcheck disable=SC2086
            "$program" $command "$folder/nasty.h5" >"$out" 2>"$err"
            [ $? -lt 3 ] || fail "$command after $1: $(cat -v "$err")"
            tried=$((tried + 1))
            clean "$out" "$command after $1"
            clean "$err" "$command after $1"
        done
    }
    damage 'file.attrs["creator"] = nasty'
    "$program" inspect "$folder/nasty.h5" | grep -qF '\x1B[31m' || fail 'inspect does not show the creator'
    damage 'file.attrs["format"] = nasty'
    damage 'file["tokenizer"].attrs["kind"] = nasty'
    damage 'file.create_group(nasty)'
    damage 'file["model"].create_group(nasty)'
    damage 'file["model"].create_dataset(nasty, data=[1.0])'
    damage 'file["config"].attrs[nasty] = 1'
else
    echo 'left out: HDF5 (Debian: python3-h5py)'
fi

[ "$tried" -gt 30 ] || fail "only $tried commands were tried"
exit $((failures > 0))
