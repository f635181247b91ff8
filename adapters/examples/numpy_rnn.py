"""A recurrent network in NumPy, for `maskgrad audit -- python3 numpy_rnn.py`. `--broken` reads it from right to left."""

import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from maskgrad_audit import serve

VOCAB, CONTEXT, WIDTH = 30, 24, 16
rng = np.random.default_rng(1)
embedding, inward = rng.normal(size=(VOCAB, WIDTH)), rng.normal(size=(WIDTH, WIDTH)) / 4
outward = rng.normal(size=(WIDTH, VOCAB))
state = np.zeros(WIDTH)


def run(ids, h):
    """ids (B,T), h (B,C) the states before them -> logits (B,T,V) and the states after them."""
    rows = []
    for t in range(ids.shape[1]):
        h = np.tanh(embedding[ids[:, t]] + h @ inward)
        rows.append(h @ outward)
    return np.stack(rows, axis=1), h


def logits(ids):
    if "--broken" in sys.argv:
        return run(ids[:, ::-1], np.zeros((len(ids), WIDTH)))[0][:, ::-1]
    return run(ids, np.zeros((len(ids), WIDTH)))[0]


def step(ids, reset):
    global state
    x, h = run(ids[None], np.zeros((1, WIDTH)) if reset else state[None])
    state = h[0]
    return x[0]


def loss(ids):
    x = logits(ids[:, :-1])
    log_p = x - np.log(np.exp(x).sum(-1, keepdims=True))
    return -np.take_along_axis(log_p, ids[:, 1:, None], axis=-1).mean()


serve(logits, vocab=VOCAB, context=CONTEXT, step=step, loss=loss, dtype="f64")
