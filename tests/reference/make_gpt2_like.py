#!/usr/bin/env python3
"""Makes models in the form in which GPT-2 is published, with random weights, and their logits by PyTorch in float64.

    make_gpt2_like.py FOLDER                 all variants, tiny, as in tests/data/gpt2-like
    make_gpt2_like.py FOLDER --size gpt2     one folder, as large as GPT-2 small (half a gigabyte)

Each variant is a folder with config.json, the weights, and logits.csv: a line of ids, then a line of logits for each.
Needs numpy, h5py and torch.
"""
import argparse
import json
import math
import os
import struct

import h5py
import numpy as np
import torch
import torch.nn.functional as F

SIZES = {
    "tiny": dict(n_layer=2, n_head=2, n_embd=4, n_positions=6, vocab_size=11),
    "odd": dict(n_layer=3, n_head=3, n_embd=12, n_positions=17, vocab_size=101),
    "wide": dict(n_layer=1, n_head=4, n_embd=64, n_positions=32, vocab_size=300),
    "gpt2": dict(n_layer=12, n_head=12, n_embd=768, n_positions=1024, vocab_size=50257),
}


def make_weights(size, std, seed=1337):
    """GPT-2's parameters under PyTorch's names, float32."""
    rng = np.random.default_rng(seed)
    C = size["n_embd"]

    def normal(*shape, mean=0.0):
        return (mean + std * rng.standard_normal(shape, dtype=np.float32)).astype(np.float32)

    weights = {"wte.weight": normal(size["vocab_size"], C), "wpe.weight": normal(size["n_positions"], C)}
    for layer in range(size["n_layer"]):
        h = f"h.{layer}."
        for name in ("ln_1", "ln_2"):
            weights[h + name + ".weight"], weights[h + name + ".bias"] = normal(C, mean=1), normal(C)
        for name, rows, columns in (("attn.c_attn", C, 3 * C), ("attn.c_proj", C, C),
                                    ("mlp.c_fc", C, 4 * C), ("mlp.c_proj", 4 * C, C)):
            weights[h + name + ".weight"], weights[h + name + ".bias"] = normal(rows, columns), normal(columns)
    weights["ln_f.weight"], weights["ln_f.bias"] = normal(C, mean=1), normal(C)
    return weights


def gpt2_logits(weights, size, ids, scale=True):
    """The model, written out: (T) ids to (T, V) logits, in float64."""
    w = {name: torch.from_numpy(value).double() for name, value in weights.items()}
    H, C, T = size["n_head"], size["n_embd"], len(ids)

    def norm(x, name):
        return F.layer_norm(x, (C,), w[name + ".weight"], w[name + ".bias"], 1e-5)

    def linear(x, name):
        return x @ w[name + ".weight"] + w[name + ".bias"]

    future = torch.ones(T, T, dtype=torch.bool).triu(1)
    x = w["wte.weight"][ids] + w["wpe.weight"][:T]
    for layer in range(size["n_layer"]):
        h = f"h.{layer}."
        q, k, v = (part.view(T, H, C // H).transpose(0, 1)
                   for part in linear(norm(x, h + "ln_1"), h + "attn.c_attn").split(C, 1))
        scores = q @ k.transpose(1, 2) / (math.sqrt(C / H) if scale else 1)
        attention = scores.masked_fill(future, -math.inf).softmax(-1)
        x = x + linear((attention @ v).transpose(0, 1).reshape(T, C), h + "attn.c_proj")
        x = x + linear(F.gelu(linear(norm(x, h + "ln_2"), h + "mlp.c_fc"), approximate="tanh"), h + "mlp.c_proj")
    return (norm(x, "ln_f") @ w["wte.weight"].T).numpy()


def to_bf16(x):
    """The upper halves of float32s, rounded to nearest, ties to even."""
    bits = x.view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def from_bf16(x):
    return (x.astype(np.uint32) << 16).view(np.float32)


def write_safetensors(path, tensors):
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, value in tensors.items():
        names = {"float32": "F32", "float16": "F16", "uint16": "BF16", "uint8": "U8"}
        header[name] = {"dtype": names[value.dtype.name], "shape": list(value.shape),
                        "data_offsets": [offset, offset + value.nbytes]}
        offset += value.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for value in tensors.values():
            file.write(np.ascontiguousarray(value).tobytes())


def write_keras(path, weights, middle, embeddings):
    """tf_model.h5. `middle` is what stands in front, which differs from version to version."""
    def keras_name(name):
        parts = name.split(".")
        kind = parts.pop()
        if parts[0] == "h":
            parts[0:2] = ["h_._" + parts[1]]
        if parts[-1].startswith("ln_"):
            kind = {"weight": "gamma", "bias": "beta"}[kind]
        if parts[-1] == "wpe" or (parts[-1] == "wte" and embeddings):
            kind = "embeddings"
        return "/".join([middle] + parts + [kind + ":0"])

    with h5py.File(path, "w", libver="latest") as file:
        for name, value in weights.items():
            bias_of_linear = name.endswith(".bias") and ".c_" in name
            file.create_dataset(keras_name(name), data=value[None] if bias_of_linear else value)
        if embeddings:
            file.create_group("top_level_model_weights")
        file.attrs["backend"] = "tensorflow"
        file.attrs["layer_names"] = [b"transformer"]


def write_config(folder, size, **more):
    config = dict(model_type="gpt2", activation_function="gelu_new", layer_norm_epsilon=1e-5, **size)
    config.update(more)
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(config, file, indent=2, sort_keys=True)
        file.write("\n")


def write_logits(folder, weights, size, ids, **how):
    with open(os.path.join(folder, "logits.csv"), "w") as file:
        file.write(",".join(map(str, ids)) + "\n")
        for row in gpt2_logits(weights, size, ids, **how):
            file.write(",".join("%.9g" % x for x in row) + "\n")


def some_ids(size, n):
    return [(1 + 7919 * i) % size["vocab_size"] for i in range(min(n, size["n_positions"]))]


def prefixed(tensors):
    return {"transformer." + name: value for name, value in tensors.items()}


def buffers(size):
    """What older versions wrote beside the weights: the mask, and the number it filled in."""
    T, of_layers = size["n_positions"], {}
    for layer in range(size["n_layer"]):
        of_layers[f"h.{layer}.attn.bias"] = np.tril(np.ones((1, 1, T, T), np.uint8))
        of_layers[f"h.{layer}.attn.masked_bias"] = np.array(-1e4, np.float32)
    return of_layers


def byte_alphabet():
    """GPT-2's spelling of the 256 bytes, in the order of their ids."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in plain]
    return [chr(b) for b in plain] + [chr(256 + i) for i in range(len(others))]


def write_tokenizer(folder):
    """Two merges: 259 tokens."""
    tokens = byte_alphabet() + ["th", "the", "<|endoftext|>"]
    with open(os.path.join(folder, "merges.txt"), "w") as file:
        file.write("#version: 0.2\nt h\nth e\n")
    with open(os.path.join(folder, "vocab.json"), "w") as file:
        json.dump({token: i for i, token in enumerate(tokens)}, file)
    return len(tokens)


def make_variants(out, size):
    weights = make_weights(size, 0.5)
    ids = some_ids(size, 6)

    def variant(name, tensors=None, truth=weights, at=size, scale=True, **config):
        folder = os.path.join(out, name)
        os.makedirs(folder, exist_ok=True)
        write_config(folder, at, **config)
        write_logits(folder, truth, at, ids, scale=scale)
        if tensors is not None:
            write_safetensors(os.path.join(folder, "model.safetensors"), tensors)
        return folder

    variant("plain", weights)
    with_head = {**prefixed({**buffers(size), **weights}), "lm_head.weight": weights["wte.weight"]}
    variant("prefixed", with_head, tie_word_embeddings=False)
    half = {name: value.astype(np.float16) for name, value in weights.items()}
    variant("f16", half, {name: value.astype(np.float32) for name, value in half.items()})
    brain = {name: to_bf16(value) for name, value in weights.items()}
    variant("bf16", prefixed(brain), {name: from_bf16(value) for name, value in brain.items()})
    variant("unscaled", weights, scale=False, scale_attn_weights=False)
    # A reader that takes a square matrix transposed passes every check of shapes. This file is what it would read.
    name = "h.0.attn.c_proj.weight"
    variant("transposed", {**weights, name: np.ascontiguousarray(weights[name].T)})
    for name, middle, embeddings in (("keras", "transformer/tfgp_t2lm_head_model/transformer", False),
                                     ("keras-embeddings", "transformer/tf_gpt2_model_1/transformer", True)):
        write_keras(os.path.join(variant(name), "tf_model.h5"), weights, middle, embeddings)
    padded = dict(size, vocab_size=max(264, size["vocab_size"]))
    text_weights = make_weights(padded, 0.5)
    write_tokenizer(variant("text", text_weights, text_weights, padded))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--size", choices=SIZES, default="tiny")
    options = parser.parse_args()
    size = SIZES[options.size]
    os.makedirs(options.folder, exist_ok=True)
    if options.size != "gpt2":
        make_variants(options.folder, size)
        return
    weights = make_weights(size, 0.02)
    write_config(options.folder, size)
    write_safetensors(os.path.join(options.folder, "model.safetensors"), {**weights, **buffers(size)})
    write_logits(options.folder, weights, size, some_ids(size, 8))


if __name__ == "__main__":
    main()
