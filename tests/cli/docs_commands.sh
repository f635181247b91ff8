#!/usr/bin/env bash
# Every command line of README.md and docs/*.md works with the files that the text mentions. Each is
# run once, with less work: a few steps, --quick. What is not run is listed below, by name, with the reason.
set -u
maskgrad=$1 source=$2
. "$source/tests/tools/lab.bash"
python=/usr/bin/python3
"$python" -c 'import numpy' 2>/dev/null || { echo "SKIPPED: this needs numpy for $python (Debian: python3-numpy)"; exit 77; }

# Lines that begin so are not run.
not_run() {
    cat <<'END'
scripts/demo.sh            installs, builds and trains for minutes
scripts/test.sh            this test is part of it
scripts/bench-vs-torch.sh  measures for minutes
scripts/growth.py          measures for minutes
scripts/loading.sh         builds, and measures for minutes
scripts/alarm-runs.sh      trains for an hour
scripts/install-deps.sh    installs
scripts/portable-hashes.sh  builds, and trains on several machines
scripts/kill-test.sh       kills runs for minutes; cli.kill does so for seconds
scripts/screenshots.sh     builds a report and draws pictures of it
cmake                      builds and installs; cli.examples does both
maskgrad sweep --set       trains up to thirty models; cli.sweep trains some
maskgrad compare runs/masks  compares those
maskgrad playground --data  trains a model; cli.playground does
maskgrad lab leak --seeds  trains ten models; cli.lab_leak trains some
maskgrad lab dial --seeds  trains fifteen models; cli.lab_dial trains some
maskgrad lab all           runs every lab; cli.lab_all does
maskgrad lab attention --data   trains two models; cli.lab_attention does
maskgrad lab attention --prompt   trains two models; cli.lab_attention does
END
}

# ---- The command lines: indented, or in `backticks`, also across the end of a line ----

command_lines() { # FILE
    sed -nE 's/^    ((build\/release\/)?maskgrad [a-z]+( .*)?|(scripts|cmake|ctest|python3|zcat).*)$/\1/p' "$1" |
        sed -E 's/ +#.*//'
    sed -E 's/^    .*//; /^```/,/^```/d' "$1" | tr '\n' ' ' | grep -oE '`[^`]+`' | tr -d '`' | sed 's,\\|,|,g' |
        sed -nE '/^(build\/release\/)?maskgrad [a-zC]/p; /\| maskgrad /p; /^(scripts\/|python3 )/p'
}

# ---- The files that they use ----

export PATH=$folder/bin:$PATH
mkdir -p bin build/release runs FOLDER
ln -s "$maskgrad" bin/maskgrad
ln -s "$maskgrad" build/release/maskgrad
ln -s "$source/datasets" datasets
ln -s "$source/docs" docs
awk 'BEGIN { srand(7); for (i = 0; i < 3000; i++) { n = 3 + int(rand() * 5); s = "";
    for (k = 0; k < n; k++) s = s (k ? " " : "") substr("the cat sat on a mat and Once upon time she sells", 1 + 4 * int(rand() * 12), 4);
    print s } }' >book.txt
for name in moby-dick some text lines; do cp book.txt $name.txt; done
gzip -c book.txt >corpus.gz
{ echo text; tr -d ',"' <book.txt | head -n 1000; } >tales.csv
printf '#!/bin/sh\nexec %s %s/my_model.py\n' "$python" "$folder" >bin/PROGRAM
printf '#!/bin/sh\nexec %s "$@"\n' "$python" >bin/python3
chmod +x bin/PROGRAM bin/python3
cat >my_model.py <<END
import sys; sys.path.insert(0, "$source/adapters")
import numpy as np
from maskgrad_audit import serve
serve(lambda ids: np.cumsum(np.eye(5)[ids] * [1, 2, 3, 5, 7], axis=1), vocab=5, context=4, dtype="f64")
END
tiny=(--grammar-size 5000 --n-layer 2 --n-embd 16 --block-size 32 --max-iters 1 --eval-iters 1)
maskgrad train --data book.txt "${tiny[@]}" --out-dir LARGE >log 2>&1 || fail "no run to begin with: $(cat log)"
for name in SMALL DIR CHECKPOINT runs/mine runs/NAME; do cp -r LARGE $name; done
maskgrad train --data datasets/data/frases.csv "${tiny[@]}" --no-positions --out-dir FILE >log 2>&1 ||
    fail "no run to begin with: $(cat log)"
"$python" - "$source/tests/data/merges.txt" <<'END' || fail "no GPT-2"
"""FOLDER: a GPT-2 with the vocabulary and the context of the published one, six layers, and a width of 4."""
import json, shutil, struct, sys
import numpy as np
C, V, T, L = 4, 50257, 1024, 6
shapes = {"wte.weight": (V, C), "wpe.weight": (T, C), "ln_f.weight": (C,), "ln_f.bias": (C,)}
for i in range(L):
    for name, shape in (("ln_1", (C,)), ("ln_2", (C,)), ("attn.c_attn", (C, 3 * C)), ("attn.c_proj", (C, C)),
                        ("mlp.c_fc", (C, 4 * C)), ("mlp.c_proj", (4 * C, C))):
        shapes[f"h.{i}.{name}.weight"], shapes[f"h.{i}.{name}.bias"] = shape, shape[-1:]
header, data, random = {}, b"", np.random.default_rng(1)
for name, shape in shapes.items():
    bytes_ = random.standard_normal(shape, dtype=np.float32).tobytes()
    header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(bytes_)]}
    data += bytes_
header = json.dumps(header).encode()
open("FOLDER/model.safetensors", "wb").write(struct.pack("<Q", len(header)) + header + data)
json.dump({"model_type": "gpt2", "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "n_embd": C, "n_head": 2,
           "n_layer": L, "n_positions": T, "vocab_size": V}, open("FOLDER/config.json", "w"))
shutil.copy(sys.argv[1], "FOLDER/merges.txt")
END
maskgrad import FOLDER --out gpt2.h5 >/dev/null 2>log || fail "no GPT-2: $(cat log)"

# ---- Running: every line once, with flags that leave less to do ----

less_work() { # COMMAND LAB: of the flags that leave less to do, those that it has
    local flags flag help
    # shellcheck disable=SC2086
    help=$(maskgrad $1 ${2:+"$2"} --help)
    case $1 in
    train) flags='--max-iters=2 --eval-interval=1 --eval-iters=1 --grammar-size=5000' ;;
    generate) flags='--max-new-tokens=5' ;;
    evaluate) flags='--eval-iters=1 --batch-size=1' ;;
    audit) flags='--sequences=1 --length=4' ;;
    bench) flags='--n-layer=1 --n-embd=48 --block-size=32 --steps=1' ;;
    lab)
        flags='--quick --grammar-size=5000 --max-iters=2 --warmup-iters=1 --eval-iters=1'
        flags+=' --block-size=16 --n-layer=1 --n-embd=64'
        ;;
    *) flags= ;;
    esac
    for flag in $flags; do
        [[ $help != *" ${flag%%=*}"* ]] || printf ' %s' "$flag"
    done
}
completed() { # a line that leaves out what the text around it says
    local line=$1
    line=${line//…/--data book.txt}
    line=${line/--block-size N/--block-size 16}
    case $line in
    *'train --resume'*) ;;
    *'train --auto-resume'*) line="$line --data book.txt --out-dir auto" ;;
    *'maskgrad train'*--data*) line="${line/maskgrad train/maskgrad train --force}" ;;
    *'maskgrad train'*) line="${line/maskgrad train/maskgrad train --force --data datasets/data/frases.csv}" ;;
    *'audit --sequences 1') line="$line CHECKPOINT" ;;
    esac
    printf '%s' "$line"
}
ran=0
run() { # FILE LINE
    local status=0 line words lab flags
    line=$(completed "$2")
    read -ra words <<<"${line#*maskgrad }"
    lab=
    [ "${words[0]}" != lab ] || lab=${words[1]}
    flags=$(less_work "${words[0]}" "$lab")
    case $line in
    *' -- '*) line="${line/ -- /$flags -- }" ;;
    *' | head') line="${line/ | head/$flags | head}" ;;
    *) line="$line$flags" ;;
    esac
    rm -f "runs/lab-$lab/summary.csv"
    eval "$line" >out 2>err </dev/null || status=$?
    # A lab whose models had no time to learn fails or is undecided, and says so in its summary.
    if [ "${words[0]}" = lab ] && { [ $status -eq 1 ] || [ $status -eq 3 ]; } && [ -s "runs/lab-$lab/summary.csv" ]; then
        status=0
    fi
    [ $status -eq 0 ] || fail "$1: \`$2\`, run as \`$line\`: status $status: $(tail -n 3 err)"
    ran=$((ran + 1))
}
is_listed() { # LINE
    local entry
    while IFS= read -r entry; do
        case $1 in "${entry%%  *}"*) return 0 ;; esac
    done < <(not_run)
    return 1
}

labs=" $(maskgrad lab | sed -nE 's/^  ([a-z]+) +[A-Z].*/\1/p' | tr '\n' ' ')"
declare -A seen
for file in "$source"/README.md "$source"/docs/*.md; do
    while IFS= read -r line; do
        name=${file#"$source"/}
        [ -z "${seen[$line]:-}" ] || continue
        seen[$line]=1
        is_listed "$line" && continue
        case $line in
        'maskgrad lab NAME') ;;
        'maskgrad lab '*) # one that exists; without flags cli.lab_all runs it
            read -ra words <<<"$line"
            [[ $labs == *" ${words[2]} "* ]] || fail "$name: there is no lab ${words[2]}"
            [ ${#words[@]} -eq 3 ] || run "$name" "$line"
            ;;
        'maskgrad '*' '* | *'build/release/maskgrad '* | *' | maskgrad '* | 'maskgrad bench') run "$name" "$line" ;;
        'maskgrad '*) # the name of a command
            $line --help >/dev/null || fail "$name: there is no command ${line#* }"
            ;;
        *) fail "$name: \`$line\` is neither run nor listed here with a reason" ;;
        esac
    done < <(command_lines "$file")
done
[ $ran -ge 40 ] || fail "only $ran command lines were found and run"
echo "$ran command lines run"
