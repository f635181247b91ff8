"""The adapter's own promises: verdicts as a dictionary, nothing that a model prints or raises disturbs them."""

import os
import subprocess
import sys

import numpy as np
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


def refuses(ids):
    raise ValueError("no\nthanks")


verdicts = audit(refuses, vocab=V, context=T)
assert verdicts.verdict == "inconclusive" and "ValueError at adapter.py:" in verdicts["repeat"].evidence, verdicts

for wrong in (lambda: audit(lambda ids: honest(ids)[0], vocab=V, context=T),
              lambda: audit(honest, vocab=V + 1, context=T),
              lambda: audit(honest, vocab=V, context=0),
              lambda: audit(honest, vocab=V, context=T, dtype="int8"),
              lambda: audit(honest, vocab=V, context=T, length=T + 1)):
    try:
        wrong()
    except RuntimeError as error:
        assert "maskgrad audit: " in str(error), error
    else:
        raise AssertionError("a model that does not fit was audited")
try:
    audit(honest, vocab=V, context=T, maskgrad="./no-such-maskgrad")
except FileNotFoundError:
    pass

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
