#!/usr/bin/env bash
# Names of folders and files that cannot be meant, in every command that writes: an empty name, a link that leads nowhere, a
# file in a folder's place. Each is refused, with a sentence that says what is wrong with which name.
set -u
maskgrad=$1 source=$2
. "$source/tests/tools/lab.bash"

train=(train --data "$source/datasets/data/frases.csv" --grammar-size 2000 --n-layer 1 --n-head 1 --n-embd 8 --block-size 8
    --max-iters 1 --eval-iters 1)
"$maskgrad" "${train[@]}" --out-dir run >log 2>&1 || fail "no run to begin with: $(cat log)"
gpt2=$source/tests/data/gpt2-like/plain
ln -s nowhere dangling
ln -s circle circle
echo here >file

refused() { # STATUS TEXT COMMAND...
    local expected=$1 text=$2 status=0
    shift 2
    "$maskgrad" "$@" >out 2>err || status=$?
    [ $status -eq "$expected" ] && grep -qF -- "$text" err || fail "$*: status $status: $(cat err)"
}
folders() { # STATUS TEXT NAME: as the --out-dir of each command
    for command in "lab mask --quick" "compare run run" "audit run"; do
        # shellcheck disable=SC2086
        refused "$1" "$2" $command --out-dir "$3"
    done
    refused "$1" "$2" "${train[@]}" --out-dir "$3"
    refused "$1" "$2" "${train[@]}" --force --out-dir "$3"
}
folders 2 "--out-dir is empty: name a folder" ""
refused 2 "--out is empty: name a file" import "$gpt2" --out ""
refused 2 "--csv is empty: name a file" bench --checkpoint run --csv ""
refused 2 "--json is empty: name a file" audit run --json ""
folders 1 "dangling leads nowhere: No such file or directory" dangling
folders 1 "dangling leads nowhere: No such file or directory" dangling/below
folders 1 "circle leads nowhere: Too many levels of symbolic links" circle
folders 1 "file exists and is not a folder" file
folders 1 "file exists and is not a folder" file/below
[ "$(cat file)" = here ] || fail "a file that was in the way has changed"

# A folder without a run, where one is read.
mkdir -p empty runs/deep && cp -r run unsaved && rm unsaved/checkpoint.h5
for command in "evaluate runs" "inspect runs" "generate runs" "audit runs" "logits runs --ids 1" "bench --checkpoint runs" \
    "lab mask --quick --out-dir lab --checkpoint runs" "train --data file --init-from runs"; do
    # shellcheck disable=SC2086
    refused 1 "runs holds no run, or one that has saved nothing yet: there is no checkpoint.h5 in it" $command
done
for name in empty runs/; do
    refused 1 "$name holds no run: there is no run.json in it" compare run "$name"
    refused 1 "$name holds no run: there is no run.json in it" train --config "$name"
done
refused 1 "unsaved holds no run, or one that has saved nothing yet" inspect unsaved
refused 1 "'nowhere' cannot be read: No such file" compare nowhere
refused 1 "'nowhere/checkpoint.h5' cannot be read: No such file" inspect nowhere/checkpoint.h5
refused 1 "'file' is not a run folder" compare file

# A link to a folder is that folder.
mkdir real && ln -s real link
"$maskgrad" "${train[@]}" --out-dir link >log 2>&1 && [ -s real/checkpoint.h5 ] && [ -L link ] || fail "a link: $(cat log)"
