#!/bin/bash
# What export writes, read by a GPT-2 of its own in PyTorch (tests/reference/make_gpt2_like.py): the same logits.
set -u
program=$1 source=$2
python=/usr/bin/python3
if ! "$python" -c 'import numpy, h5py, torch' 2> /dev/null; then
    echo "skipped: $python has no numpy, h5py or torch (apt-get install python3-torch python3-h5py)"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
seq 1 400 | sed 's/.*/the cat & the dog/' > "$folder/text.txt"

failures=0
agrees() { # agrees FLAGS...: the logits of a model that is trained so
    "$program" train --force --data "$folder/text.txt" --max-iters 40 --eval-iters 1 --init-std 0.2 --out-dir "$folder/run" "$@" \
        > "$folder/log" 2>&1 || { cat "$folder/log"; failures=1; }
    rm -rf "$folder/hf"
    "$program" export "$folder/run" --allow-loss --out "$folder/hf" > /dev/null 2>&1 || failures=1
    "$program" logits "$folder/run" --ids 1,4,2,0,3,6,5 > "$folder/logits.csv"
    PYTHONPATH=$source/tests/reference PYTHONDONTWRITEBYTECODE=1 "$python" - "$folder" << 'END' || failures=1
import json, sys
import numpy as np
from make_gpt2_like import gpt2_logits
folder = sys.argv[1]
with open(folder + "/hf/model.safetensors", "rb") as file:
    length = int.from_bytes(file.read(8), "little")
    header, data = json.loads(file.read(length)), file.read()
assert length % 8 == 0 and header.pop("__metadata__") == {"format": "pt"}
weights = {}
for name, tensor in header.items():
    begin, end = tensor["data_offsets"]
    assert name.startswith("transformer.") and tensor["dtype"] == "F32"
    weights[name[len("transformer."):]] = np.frombuffer(data[begin:end], "<f4").reshape(tensor["shape"]).copy()
config = json.load(open(folder + "/hf/config.json"))
assert weights["wte.weight"].shape == (config["vocab_size"], config["n_embd"])
assert weights["wpe.weight"].shape == (config["n_positions"], config["n_embd"])
expected = gpt2_logits(weights, config, [1, 4, 2, 0, 3, 6, 5], scale=config["scale_attn_weights"])
found = np.loadtxt(folder + "/logits.csv", delimiter=",")
difference = abs(expected - found).max()
print("largest difference from PyTorch: %.2g, of logits up to %.3g" % (difference, abs(expected).max()))
sys.exit(expected.shape != found.shape or not difference < 1e-5)
END
}
agrees
agrees --n-layer 3 --n-head 3 --n-embd 15 --block-size 7 --no-scale
agrees --tokens gpt2 --merges "$source/tests/data/merges.txt" --n-head 1 --n-embd 10
agrees --no-output-projection
agrees --no-positions
exit "$failures"
