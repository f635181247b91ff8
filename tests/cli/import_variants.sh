#!/usr/bin/env bash
# GPT-2's weights as other programs save them: wrapped, transposed, tied under the head's name, with tensors of types to
# come, with special tokens first. What is read is bit for bit the plain model, or the refusal names the remedy.
maskgrad=$1 source=$2
. "$source/tests/tools/lab.bash"
plain=$source/tests/data/gpt2-like/plain text=$source/tests/data/gpt2-like/text
"$maskgrad" import "$plain" --out plain.h5 >/dev/null 2>&1 || fail "the plain model"
"$maskgrad" logits plain.h5 --ids 1,2,3 >plain.csv || fail "logits"

variant() { # NAME PYTHON: the plain model's tensors are in t, name to (type, shape, bytes)
    mkdir "$1" && cp "$plain/config.json" "$1"
    python3 - "$plain/model.safetensors" "$1" "$2" <<'PY' || fail "making $1"
import json, struct, sys
from array import array
data = open(sys.argv[1], "rb").read()
n = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + n])
t = {k: (v["dtype"], v["shape"], data[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]])
     for k, v in header.items() if k != "__metadata__"}
def transpose(name, value):
    dtype, shape, raw = value
    if len(shape) != 2 or not name.startswith("h."): return value
    a, (r, c) = array("f", raw), shape
    return dtype, [c, r], array("f", [a[i * c + j] for j in range(c) for i in range(r)]).tobytes()
exec(sys.argv[3])
at, header = 0, {}
for k, (dtype, shape, raw) in t.items():
    header[k] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(raw)]}
    at += len(raw)
head = json.dumps(header).encode()
open(sys.argv[2] + "/model.safetensors", "wb").write(struct.pack("<Q", len(head)) + head + b"".join(v[2] for v in t.values()))
PY
}
same() { # NAME WORDS FLAGS...: imports as the plain model, and says so
    local name=$1 words=$2
    shift 2
    "$maskgrad" import "$name" --out "$name.h5" "$@" >out 2>err || fail "$name: $(cat err)"
    grep -qF -e "$words" err || fail "$name: '$(cat err)' does not say '$words'"
    "$maskgrad" logits "$name.h5" --ids 1,2,3 | cmp - plain.csv || fail "$name: other logits"
}
refused() { # NAME WORDS FLAGS...
    local name=$1 words=$2 got=0
    shift 2
    "$maskgrad" import "$name" --dry-run "$@" >out 2>err || got=$?
    [ "$got" = 1 ] || fail "$name: status $got, not 1: $(cat err)"
    grep -qF -e "$words" err || fail "$name: '$(cat err)' does not say '$words'"
}

# ---- Wrappers ----
variant module 't = {"module." + k: v for k, v in t.items()}'
same module 'names begin with module., which a wrapper of the model adds: left out'
variant compiled 't = {"module._orig_mod.transformer." + k: v for k, v in t.items()}'
same compiled 'names begin with module. and _orig_mod.'
variant class 't = {"model.transformer." + k: v for k, v in t.items()}'
same class 'names begin with model.'
variant other 't = {"net." + k: v for k, v in t.items()}'
refused other 'wte and'

# ---- nn.Linear ----
variant linear 't = {k: transpose(k, v) for k, v in t.items()}'
refused linear "this is the transposed layout of PyTorch's nn.Linear, which --transposed takes"
same linear '' --transposed
refused "$plain" 'it is not transposed, leave out --transposed' --transposed

# ---- Tied, under the head's name ----
variant tied 't["lm_head.weight"] = t.pop("wte.weight" if "wte.weight" in t else "wte")'
same tied "'lm_head.weight' is taken as the token embedding wte"
sed -i 's/{/{"tie_word_embeddings": false,/' tied/config.json
refused tied 'the tensor wte is missing'

# ---- Types to come ----
variant future 't["scales"] = ("F8_E8M0", [4], b"1234"); t["zeros"] = ("F4", [4], b"12")'
same future ''
"$maskgrad" import future --dry-run 2>/dev/null | grep -q '^skipped *scales (4)' || fail "the new type is not listed"
variant needed 'k = "ln_f.bias"; t[k] = ("F6", t[k][1], t[k][2])'
refused needed "'ln_f.bias' holds F6, but only F32, F16 and BF16 can be imported"

# ---- Special tokens first ----
cp -r "$text" specials
python3 - <<'PY'
import json
v = json.load(open("specials/vocab.json"))
new = {"<s>": 0, "<pad>": 1, "</s>": 2}
for token, i in sorted(v.items(), key=lambda x: x[1]):
    if token != "<|endoftext|>": new[token] = i + 3
json.dump(new, open("specials/vocab.json", "w"))
PY
"$maskgrad" import "$text" --out text.h5 >/dev/null 2>&1 || fail "text"
"$maskgrad" import specials --out specials.h5 >out 2>err || fail "specials: $(cat err)"
grep -qF "which numbers other tokens among those of the merges" err || fail "specials: $(cat err)"
logits() { "$maskgrad" logits "$@" || fail "logits $*"; }
cmp <(logits specials.h5 --ids 260,3,4) <(logits text.h5 --ids 260,3,4) || fail "the weights are the same"
"$maskgrad" generate text.h5 --prompt 'the' --max-new-tokens 1 --temperature 0 >/dev/null 2>&1 || fail "generate"
"$maskgrad" generate specials.h5 --prompt 'the' --max-new-tokens 3 --temperature 0 >a 2>&1 || fail "generate: $(cat a)"
"$maskgrad" inspect specials.h5 >out 2>&1 || fail "inspect: $(cat out)"

# Out of order, with a gap, or with a token missing it is no such vocabulary.
cp -r specials swapped
sed -i 's/"!": 3, "\\"": 4/"!": 4, "\\"": 3/' swapped/vocab.json
refused swapped "the token '!' has id 4, but 0 according to the merges"
cp -r specials gap
sed -i 's/"<s>": 0/"<s>": 999/' gap/vocab.json
refused gap "has id 3, but 0 according to the merges"

# Without vocab.json, a configuration that contradicts the merges is refused; one that does not is taken.
cp -r specials unknown && rm unknown/vocab.json
sed -i 's/{/{"eos_token_id": 2,/' unknown/config.json
refused unknown 'eos_token_id in config.json is 2, but the merges make 258: only vocab.json says which ids'
for eos in 258 50256 null; do
    rm -rf known && cp -r "$text" known && rm known/vocab.json
    sed -i "s/{/{\"eos_token_id\": $eos,/" known/config.json
    "$maskgrad" import known --dry-run >out 2>err || fail "eos_token_id $eos: $(cat err)"
done
echo "what others save is read, or named with its remedy"
