#!/usr/bin/env bash
# A run of each kind writes the same checkpoint as before, byte for byte: the SHA-256 of each is in
# tests/reference/checkpoint-hashes.txt. Bits depend on the BLAS kernel, the compiler, its flags and the processor's vectors,
# so a line there begins with these; where there is none for this machine, the test is skipped and says so.
#
#     tests/cli/same_bytes.sh build/dev/maskgrad . --write     adds this machine's lines, or renews them: say why in the commit
set -u
maskgrad=$1 source=$2
hashes=$source/tests/reference/checkpoint-hashes.txt
. "$source/tests/tools/lab.bash"

data=$source/datasets/data
small=(--n-layer 2 --n-head 2 --n-embd 16 --block-size 8 --batch-size 4 --max-iters 12 --eval-interval 6 --eval-iters 2
    --warmup-iters 3 --lr 1e-2 --threads 2)
grammar=(--data "$data/frases.csv" --grammar-size 5000)
run() { # KIND FLAG...
    local kind=$1
    shift
    "$maskgrad" train "${small[@]}" "$@" --out-dir "$kind" >log 2>&1 || fail "$kind: $(tail -n 1 log)"
    echo "$kind $(sha256sum "$kind/checkpoint.h5" | cut -d' ' -f1)"
}
kinds() {
    run causal "${grammar[@]}"
    run unmasked "${grammar[@]}" --mask none
    run leak "${grammar[@]}" --leak 0.1:2
    run dropout "${grammar[@]}" --dropout 0.1 --grad-accum 2
    run unscaled "${grammar[@]}" --no-scale --no-output-projection --attn-init-std 0.1
    run characters --data "$data/frases.csv" --tokens char --grammar-size 5000
    run words --data "$source/LICENSE" --tokens word --validation 0.2
    run csv --data "$data/sentences.csv" --column word
}

kinds >found || exit 1
machine=$(python3 - <<'PY' 2>/dev/null || true
import json
m = json.load(open("causal/run.json"))["machine"]
print(m["blas"].replace(" ", "-"), "gcc-" + m["compiler"].split()[0] if m["compiler"][0].isdigit() else m["compiler"].replace(" ", "-"))
PY
)
[ -n "$machine" ] || { echo "python3 is not installed: run.json cannot be read" >&2; exit 77; }
vectors=baseline
for level in avx2 avx512f; do grep -qw "$level" /proc/cpuinfo && vectors=$level; done
flags=$(sed -n 's/^CMAKE_BUILD_TYPE:.*=//p' "$(dirname "$maskgrad")/CMakeCache.txt")
grep -qE '^MASKGRAD_(SANITIZE|DOUBLE):.*=ON' "$(dirname "$maskgrad")/CMakeCache.txt" && flags=$flags-other
key="${machine// /,},$vectors,$flags"

if [ "${3:-}" = --write ]; then
    touch "$hashes"
    grep -v "^$key " "$hashes" >kept
    { cat kept; sed "s|^|$key |" found; } | sort >"$hashes"
    exit 0
fi
grep "^$key " "$hashes" >known || { echo "no hashes for $key in $(basename "$hashes")" >&2; exit 77; }
sed "s|^|$key |" found | sort >now
diff <(sort known) now >changed || fail "checkpoints changed (< as stored, > now): $(cat changed)"
