#!/usr/bin/env python3
"""A checkpoint of ours, read with h5py alone and run by PyTorch in float64: prints `maskgrad logits` of the same ids.

    logits_of_checkpoint.py CHECKPOINT 1,2,3

Written from docs/checkpoint-format.md and the GPT-2 paper, not from our C.
"""
import math
import sys

import h5py
import torch
from torch.nn import functional as F


def load(path):
    with h5py.File(path, "r") as file:
        config = {name: value for name, value in file["config"].attrs.items()}
        parameters = {}
        file["model"].visititems(
            lambda name, x: parameters.__setitem__(name, torch.tensor(x[()], dtype=torch.float64))
            if isinstance(x, h5py.Dataset) else None)
    return config, parameters


def documents(config, ids):
    """Where each token's document begins."""
    ends, starts = int(config["document_end"]) if int(config.get("documents", 0)) else -1, [0]
    for t, token in enumerate(ids[:-1].tolist()):
        starts.append(t + 1 if token == ends else starts[-1])
    return torch.tensor(starts)


def open_keys(kind, n, query, key):
    """Which keys a query sees under a mask. A lookahead of -1 is no mask."""
    if kind == 0:
        return key <= query + n if n >= 0 else torch.ones_like(key <= query)
    if kind == 1:
        return (key <= query) & (key > query - n)
    if kind == 2:
        return (key <= query) | ((key < n) & (query < n))
    return key < (query // n + 1) * n


def hidden(config, layer, ids):
    """Which keys each head's queries may not see: (n_head, length, length)."""
    length = len(ids)
    query, key = torch.arange(length)[:, None], torch.arange(length)[None, :]
    masks = []
    for head in range(int(config["n_head"])):
        kind, n = int(config.get("mask_kind", 0)), int(config["lookahead"])
        if layer == int(config["leak_layer"]) and head == int(config["leak_head"]):
            kind, n = 0, int(config["leak_lookahead"])
        masks.append(~open_keys(kind, n, query, key) | (key < documents(config, ids)[:, None]))
    return torch.stack(masks)


def logits(config, p, ids):
    heads, width, eps = int(config["n_head"]), int(config["n_embd"]), float(config["eps"])
    length = len(ids)
    norm = lambda x, name: F.layer_norm(x, (width,), p[name + ".weight"], p[name + ".bias"], eps)
    places = torch.arange(length)
    if not int(config.get("positions_run_on", 1)):
        places = places - documents(config, ids)
    x = p["wte"][ids]
    if int(config.get("positions", 1)):
        x = x + p["wpe"][places]
    for i in range(int(config["n_layer"])):
        h = f"h.{i}."
        qkv = norm(x, h + "ln_1") @ p[h + "attn.c_attn.weight"] + p[h + "attn.c_attn.bias"]
        q, k, v = (part.view(length, heads, -1).transpose(0, 1) for part in qkv.split(width, dim=1))
        scores = q @ k.transpose(1, 2)
        if int(config["scale"]):
            scores = scores / math.sqrt(width // heads)
        weights = scores.masked_fill(hidden(config, i, ids), -math.inf).softmax(dim=2)
        y = (weights @ v).transpose(0, 1).reshape(length, width)
        if int(config["output_projection"]):
            y = y @ p[h + "attn.c_proj.weight"] + p[h + "attn.c_proj.bias"]
        x = x + y
        up = norm(x, h + "ln_2") @ p[h + "mlp.c_fc.weight"] + p[h + "mlp.c_fc.bias"]
        x = x + F.gelu(up, approximate="tanh") @ p[h + "mlp.c_proj.weight"] + p[h + "mlp.c_proj.bias"]
    return norm(x, "ln_f") @ p["wte"].T


def main():
    config, parameters = load(sys.argv[1])
    for row in logits(config, parameters, torch.tensor([int(i) for i in sys.argv[2].split(",")])):
        print(",".join(f"{value:.9g}" for value in row.tolist()))


main()
