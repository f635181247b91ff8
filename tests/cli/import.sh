#!/bin/bash
# maskgrad import: what it prints and returns, and that every other command works on an imported model.
set -u
program=$1 source=$2
models=$source/tests/data/gpt2-like
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

failures=0
fail() { echo "FAILED: $*" >&2; failures=$((failures + 1)); }
says() { grep -qF -- "$1" "$folder/out" || fail "the output does not say: $1"; }
complains() { grep -qF -- "$1" "$folder/err" || fail "stderr does not say: $1"; }
run() { # run STATUS ARGUMENTS...
    local expected=$1; shift
    "$program" "$@" > "$folder/out" 2> "$folder/err"
    local status=$?
    [ "$status" -eq "$expected" ] || fail "$* returns $status, not $expected: $(cat "$folder/err")"
}
# The largest difference of a model's logits from those of PyTorch must be below 1e-4.
agrees() { # agrees CHECKPOINT LOGITS
    run 0 logits "$1" --ids "$(head -1 "$2")"
    tail -n +2 "$2" | paste -d, - "$folder/out" | awk -F, '
        { for (i = 1; i <= NF / 2; i++) { d = $i - $(i + NF / 2); if (d < 0) d = -d; if (!(d < 1e-4)) bad = 1 } rows++ }
        END { exit bad || rows != 6 }' || fail "$1 and $2 do not agree"
}

# Every form computes what PyTorch does.
for form in plain prefixed f16 bf16 unscaled keras keras-embeddings text; do
    run 0 import "$models/$form" --out "$folder/$form.h5"
    says 'tensors      28 matched'
    agrees "$folder/$form.h5" "$models/$form/logits.csv"
done
cmp -s "$folder/plain.h5" "$folder/keras.h5" || fail 'the same weights in two forms make two checkpoints'

# A dry run lists, and writes nothing.
before=$(ls "$folder")
run 0 import "$models/prefixed" --dry-run
says 'matched  h.0.attn.c_attn.weight   (4, 12)        F32  from transformer.h.0.attn.c_attn.weight'
says 'skipped  transformer.h.0.attn.bias (1, 1, 6, 6): a buffer'
says 'skipped  lm_head.weight (11, 4): equal to wte'
says 'fingerprint'
complains 'there is no merges.txt'
[ "$before" = "$(ls "$folder")" ] || fail 'a dry run left files'
print=$(grep fingerprint "$folder/out")
run 0 import "$models/transposed" --dry-run
[ "$print" = "$(grep fingerprint "$folder/out")" ] && fail 'a transposed matrix has the same fingerprint'

mkdir "$folder/missing"
cp "$models/plain/config.json" "$folder/missing"
sed 's/h.1.ln_2.bias/x.1.ln_2.bias/' "$models/plain/model.safetensors" > "$folder/missing/model.safetensors"
run 1 import "$folder/missing" --dry-run
says 'missing  h.1.ln_2.bias            (4)'
complains 'the tensor h.1.ln_2.bias is missing'
run 1 import "$folder/missing" --out "$folder/missing.h5"
[ -e "$folder/missing.h5" ] && fail 'a checkpoint was written all the same'

# Usage errors.
run 2 import
run 2 import "$models/plain"
run 1 import nothere
complains "'nothere' cannot be read: No such file or directory"
run 2 import "$models/plain"
complains '--dry-run'
run 2 import "$models/plain" "$models/plain" --dry-run
run 0 import --help
run 1 import "$folder/absent" --dry-run
run 1 import "$models/plain" --out "$folder/no/such/folder.h5"
"$program" import "$models/plain" --dry-run > /dev/full 2> "$folder/err" && fail 'a full output device is a success'

# The other commands: by ids where there is no text, by text where there are merges.
run 0 generate "$folder/plain.h5" --ids 1,2 --max-new-tokens 20 --seed 1
cp "$folder/out" "$folder/cached"
run 0 generate "$folder/plain.h5" --ids 1,2 --max-new-tokens 20 --seed 1 --no-kv-cache
cmp -s "$folder/out" "$folder/cached" || fail 'the cache changes what is written'
[ "$(tr , '\n' < "$folder/out" | wc -l)" -eq 22 ] || fail 'not 20 ids after the prompt'
run 2 generate "$folder/plain.h5" --prompt 'the cat'
complains 'ids'
run 0 generate "$folder/text.h5" --prompt 'the cat' --max-new-tokens 10
grep -q '^the cat' "$folder/out" || fail 'the prompt is not in front'
run 0 generate "$folder/text.h5" --ids 1 --max-new-tokens 2000 --temperature 3
tr , '\n' < "$folder/out" | awk '$1 > 258 { bad = 1 } END { exit bad }' || fail 'an id of the padding was drawn'
run 0 inspect --verify "$folder/text.h5"
says 'gpt2'
run 0 inspect --json "$folder/plain.h5"
yes 'the cat and the other cat' | head -100 > "$folder/text.txt"
run 0 evaluate "$folder/text.h5" --data "$folder/text.txt"
run 2 evaluate "$folder/plain.h5" --data "$folder/text.txt"
complains 'merges.txt'
run 0 inspect "$folder/plain.h5"
says 'not trained here'

exit $((failures > 0))
