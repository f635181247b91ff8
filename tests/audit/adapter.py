"""The adapter's own promises: verdicts as a dictionary, nothing that a model prints or raises disturbs them."""

import os
import subprocess
import sys

import numpy as np
import torch
from maskgrad_audit import audit

V, T = 7, 10
table = np.random.default_rng(1).normal(size=(V, V))


def honest(ids):
    return table[ids].cumsum(1)


def leaky(ids):
    return honest(ids[:, ::-1])[:, ::-1]


verdicts = audit(honest, vocab=V, context=T, dtype="f64")
assert verdicts["mask"].passed and verdicts.passed and verdicts.first is None, verdicts
assert list(verdicts) == ["repeat", "batch", "mask", "control", "prefix", "padding", "cache", "shift", "segments"]
assert verdicts["cache"].verdict == "not offered" and not verdicts["cache"].passed

verdicts = audit(leaky, vocab=V, context=T, dtype="f64", seed=3, sequences=1, ids=[1, 2, 3])
mask = verdicts["mask"]
assert mask.verdict == "fail" and (mask.query, mask.key) == (0, 1) and mask.largest > 0 and mask.look, mask
assert verdicts.first == "mask" and verdicts.verdict == "fail" and "mask" in str(verdicts)
assert len(verdicts.report["map"]) == T and verdicts.report["map"][0][1] > 0

# One row at a time, float16, lists.
assert audit(honest, vocab=V, context=T, rows=1)["batch"].verdict == "not offered"
assert audit(lambda ids: honest(ids).astype(np.float16), vocab=V, context=T, dtype="f16").passed
assert audit(lambda ids: honest(ids).tolist(), vocab=V, context=T).passed


# The lines of docs/audit.md for transformers, Keras and JAX, with stand-ins: what they return is no NumPy array.
class Array:
    def __init__(self, x):
        self.x = np.asarray(x, dtype=np.float32)

    def __array__(self, dtype=None, copy=None):
        return self.x if dtype is None else self.x.astype(dtype)


def keras_model(ids, training):
    assert not training
    return Array(honest(ids))


class Transformer:
    """A tensor with a gradient, in an object of several outputs."""

    def __call__(self, ids):
        self.logits = torch.from_numpy(honest(ids.numpy())).float().requires_grad_()
        return self


model, jit = Transformer(), lambda f: lambda ids: Array(f(ids))
assert audit(lambda ids: model(torch.from_numpy(ids)).logits, vocab=V, context=T).passed
assert audit(lambda ids: keras_model(ids, training=False), vocab=V, context=T).passed
assert audit(jit(honest), vocab=V, context=T).passed
assert not audit(jit(leaky), vocab=V, context=T).passed


def refuses(ids):
    raise ValueError("no\nthanks")


def refuses_half(ids):
    if ids.shape[1] == T // 2:
        raise ValueError("no\nthanks")
    return honest(ids)


verdicts = audit(refuses_half, vocab=V, context=T)
assert verdicts.verdict == "inconclusive" and "ValueError at adapter.py:" in verdicts["repeat"].evidence, verdicts


def not_done(words, ask):
    try:
        ask()
    except RuntimeError as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"audited, in spite of: {words}")


not_done("the model answered none of", lambda: audit(refuses, vocab=V, context=T))
not_done("ValueError at adapter.py:", lambda: audit(refuses, vocab=V, context=T))
not_done("maskgrad audit: ", lambda: audit(lambda ids: honest(ids)[0], vocab=V, context=T))
not_done("maskgrad audit: ", lambda: audit(honest, vocab=V + 1, context=T))
not_done("maskgrad audit: ", lambda: audit(honest, vocab=V, context=0))
not_done("maskgrad audit: ", lambda: audit(honest, vocab=V, context=T, dtype="int8"))
not_done("maskgrad audit: ", lambda: audit(honest, vocab=V, context=T, length=T + 1))
not_done("'./no-such-maskgrad' cannot be started (No such file or directory): install maskgrad",
         lambda: audit(honest, vocab=V, context=T, maskgrad="./no-such-maskgrad"))
path, os.environ["PATH"], program = os.environ["PATH"], "/nowhere", os.environ.pop("MASKGRAD")
not_done("'maskgrad' cannot be started", lambda: audit(honest, vocab=V, context=T))
os.environ.update(PATH=path, MASKGRAD=program)

# As a program that prints, and reads, wherever it likes.
chatty = """
import os, sys
import numpy as np
from maskgrad_audit import serve
table = np.random.default_rng(1).normal(size=(7, 7))
def logits(ids):
    print("hello")
    os.write(1, b"from below\\n")
    assert sys.stdin.read() == ""
    return table[ids].cumsum(1)
print("loading", file=sys.stderr)
serve(logits, vocab=7, context=10, dtype="f64")
"""
run = subprocess.run([os.environ["MASKGRAD"], "audit", "--", sys.executable, "-c", chatty], capture_output=True, text=True)
assert run.returncode == 0, run.stderr
assert "hello" in run.stderr and "from below" in run.stderr and "hello" not in run.stdout.split("Does this")[1]
