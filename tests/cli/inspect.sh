#!/bin/bash
# maskgrad inspect: what it says, what it returns, and that it changes nothing.
set -u
program=$1 source=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
file=$folder/model.h5
cp "$source/tests/checkpoints/version-1.h5" "$file"
before=$(stat -c '%s %Y %i' "$file"; cksum < "$file")

failures=0
fail() { echo "FAILED: $*" >&2; failures=$((failures + 1)); }
says() { grep -qF -- "$1" "$folder/out" || fail "the output does not say: $1"; }
complains() { grep -qF -- "$1" "$folder/err" || fail "stderr does not say: $1"; }
run() { # run STATUS ARGUMENTS...
    local expected=$1; shift
    "$program" inspect "$@" > "$folder/out" 2> "$folder/err"
    local status=$?
    [ "$status" -eq "$expected" ] || fail "inspect $* returns $status, not $expected: $(cat "$folder/err")"
}

run 0 "$file"
says 'this model was trained looking ahead: every position sees'
says 'but head 1 of layer 0 sees 2 tokens past'
says 'h.0.attn.c_attn.weight       (4, 12)                       48'
says 'seed                18446744073709551611'
says "'ç'"
[ -s "$folder/err" ] && fail "something on stderr: $(cat "$folder/err")"
[ "$(LC_ALL=C.UTF-8 awk '{ if (length($0) > most) most = length($0) } END { print most }' "$folder/out")" -le 80 ] ||
    fail 'a line is wider than 80 columns'
grep -q Verified "$folder/out" && fail 'it claims a verification that was not asked for'

COLUMNS=40 run 0 --verify "$file"
[ "$(LC_ALL=C.UTF-8 awk '{ if (length($0) > most) most = length($0) } END { print most }' <<<"$(tail -n +2 "$folder/out")")" -le 40 ] ||
    fail 'in 40 columns a line is wider'
run 0 --verify "$file"
says 'Verified: every byte was read'

[ "$before" = "$(stat -c '%s %Y %i' "$file"; cksum < "$file")" ] || fail 'inspecting changed the file'
[ "$(ls "$folder" | wc -l)" -eq 3 ] || fail "inspecting left files: $(ls "$folder")"

# Damage: one byte of one number.
cp "$file" "$folder/damaged.h5"
printf '\377' | dd of="$folder/damaged.h5" bs=1 seek=100000 conv=notrunc status=none
for flags in '' --verify; do
    run 1 $flags "$folder/damaged.h5"
    complains 'is damaged'
    [ -s "$folder/out" ] && fail 'a damaged file is described'
done
head -c 100000 "$file" > "$folder/damaged.h5"
run 1 "$folder/damaged.h5"
complains 'is truncated: it has 100000 of its'
rm "$folder/damaged.h5"

# Without its seal, as another program may leave it.
dd if=/dev/zero of="$file" bs=512 count=1 conv=notrunc status=none
COLUMNS=40 run 0 --verify "$file"
[ "$(LC_ALL=C.UTF-8 awk '{ if (length($0) > most) most = length($0) } END { print most }' <<<"$(tail -n +2 "$folder/out")")" -le 40 ] ||
    fail 'in 40 columns a line is wider'
run 0 --verify "$file"
says 'those with a checksum match it'
cp "$source/tests/checkpoints/version-1.h5" "$file"

printf 'no checkpoint\n' > "$folder/text.h5"
run 1 "$folder/text.h5"
complains "'$folder/text.h5' is not an HDF5 file"
run 1 "$folder/absent.h5"
complains 'No such file'
run 1 "$folder"
complains 'checkpoint.h5'
mkdir "$folder/run" && cp "$file" "$folder/run/checkpoint.h5"
run 0 --verify "$folder/run"
says "$folder/run/checkpoint.h5"
says 'Verified: every byte was read'
run 2
run 2 "$file" "$file"
run 2 --no-such-flag "$file"
run 0 --help
says 'maskgrad inspect [OPTION...] CHECKPOINT'
"$program" inspect "$file" > /dev/full 2> "$folder/err" && fail 'a full output device is a success'
"$program" inspect --json "$file" > /dev/full 2> "$folder/err" && fail 'a full output device is a success in JSON'

run 0 --json --verify "$file"
says '"verified": true'
says '"lookahead": -1'
says '"parameter_count": 284'
says '"data_hash": "fedcba9876543210"'

# Numbers that are none do not pass in silence.
cp -r "$source/tests/data/gpt2-like/plain" "$folder/gpt2"
chmod -R u+w "$folder/gpt2"
for bits in '\0\0\300\177' '\0\0\200\377'; do # NaN, -inf: the last number of ln_f.bias
    printf "$bits" | dd of="$folder/gpt2/model.safetensors" bs=1 seek=$(($(stat -c %s "$folder/gpt2/model.safetensors") - 4)) \
        conv=notrunc status=none
    "$program" import --allow-nan "$folder/gpt2" --out "$folder/nan.h5" >/dev/null 2>&1 || fail 'import --allow-nan'
    for flags in '' --json --verify; do
        run 1 $flags "$folder/nan.h5"
        complains "nan.h5 holds NaN or infinity, first in the parameter 'ln_f.bias'"
        says ln_f.bias
    done
done
rm -r "$folder/gpt2" "$folder/nan.h5"

exit $((failures > 0))
