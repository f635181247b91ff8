"""Ask `maskgrad audit` whether a Python model reads its labels. One file, NumPy only; PyTorch, Keras and JAX welcome.

In a test:

    from maskgrad_audit import audit
    assert audit(lambda ids: model(torch.from_numpy(ids)), vocab=65, context=64)["mask"].passed

As a program, for `maskgrad audit -- python3 my_model.py`:

    from maskgrad_audit import serve
    serve(lambda ids: model(torch.from_numpy(ids)), vocab=65, context=64)

Both take the same callbacks. All but the first are optional; each enables one more question. `ids` are int64 arrays;
logits may be NumPy arrays, tensors or anything NumPy can convert.

    logits(ids (B,T))              -> (B,T,V), in evaluation mode
    step(ids (n,), reset)          -> (n,V)    fed in pieces, with the cache; reset: forget everything before them
    padded(ids (B,T), mask (B,T))  -> (B,T,V)  mask: 1 for a token, 0 for a pad
    segments(ids, segments (B,T))  -> (B,T,V)  packed documents: 0,0,0,1,1,2,...
    train(ids (B,T))               -> (B,T,V)  in training mode; random generators are seeded before each call
    loss(ids (1,T))                -> number   the loss that training minimizes, mean in nats; it does its own shifting

The protocol is in docs/audit.md.
"""

import json
import os
import random
import subprocess
import sys
import traceback

import numpy as np

PROTOCOL = 1


def _array(x):
    """Whatever a framework returns, as an array. Half precision is widened: NumPy has no bfloat16."""
    if hasattr(x, "detach"):  # a PyTorch tensor
        x = x.detach()
        if str(x.dtype) in ("torch.bfloat16", "torch.float16"):
            x = x.float()
        x = x.cpu().numpy()
    x = np.asarray(x)
    return x if x.dtype == np.float64 else x.astype(np.float32, copy=False)


def _seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)
    if "tensorflow" in sys.modules:
        sys.modules["tensorflow"].random.set_seed(seed)


class _Model:
    """The callbacks, and the answers made from them."""

    def __init__(self, logits, vocab, context, *, step=None, padded=None, segments=None, train=None, loss=None,
                 dtype="f32", rows=None):
        self.calls = {"logits": logits, "step": step, "padded": padded, "segments": segments, "train": train,
                      "loss": loss}
        self.greeting = {"maskgrad-audit": PROTOCOL, "vocab": int(vocab), "context": int(context),
                         "can": [name for name, call in self.calls.items() if call], "dtype": dtype}
        if rows:
            self.greeting["rows"] = int(rows)

    def ask(self, request):
        """The numbers that answer a request, and the shape that they must have before columns are selected."""
        call, vocab = request["call"], self.greeting["vocab"]
        ids = np.array(request["ids"], dtype=np.int64)
        if call == "loss":
            return _array(self.calls["loss"](ids)).reshape(-1), (1,)
        if call == "step":
            x = _array(self.calls["step"](ids, request["reset"]))
            return x[0] if x.ndim == 3 and len(x) == 1 else x, (*ids.shape, vocab)
        if call in ("padded", "segments"):
            given = np.array(request["mask" if call == "padded" else "segments"], dtype=np.int64)
            return _array(self.calls[call](ids, given)), (*ids.shape, vocab)
        if request.get("train"):
            _seed(request["seed"])
            return _array(self.calls["train"](ids)), (*ids.shape, vocab)
        return _array(self.calls["logits"](ids)), (*ids.shape, vocab)

    def answer(self, request):
        """The bytes of an answer. A model that raises an exception has refused; an answer of the wrong shape is sent as its
        shape only."""
        try:
            x, shape = self.ask(request)
        except Exception as refusal:
            where = traceback.extract_tb(refusal.__traceback__)[-1]
            place = f"{os.path.basename(where.filename)}:{where.lineno}"
            return _line({"error": f"{type(refusal).__name__} at {place}: {refusal}"})
        if x.shape != shape:
            return _line({"shape": list(x.shape)})
        if "columns" in request:
            x = x[..., request["columns"]]
        wide = x.dtype == np.float64
        header = {"shape": list(x.shape), "f64": True} if wide else {"shape": list(x.shape)}
        return _line(header) + np.ascontiguousarray(x, dtype="<f8" if wide else "<f4").tobytes()

    def converse(self, questions, answers):
        """Greet and answer until the end; returns the report, or None if the other side left."""
        answers.write(_line(self.greeting))
        answers.flush()
        for line in questions:
            request = json.loads(line)
            if request["call"] == "end":
                return request["report"]
            answers.write(self.answer(request))
            answers.flush()
        return None


def _line(message):
    return json.dumps(message).encode() + b"\n"


def serve(logits, vocab, context, **offers):
    """Act as PROGRAM of `maskgrad audit -- PROGRAM`. From here on, what the model prints goes to standard error."""
    questions, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    sys.stdout.flush()
    os.dup2(2, 1)
    try:
        _Model(logits, vocab, context, **offers).converse(questions, answers)
    except BrokenPipeError:
        pass


class Verdict:
    """What one probe found: .verdict ("pass", "fail", "inconclusive", "not offered"), .evidence, .look (where in the code),
    .query and .key (the first pair that convicts), .largest (the largest change), .passed."""

    def __init__(self, found):
        self.__dict__.update(found)
        self.passed = self.verdict == "pass"

    def __repr__(self):
        look = f"; look at: {self.look}" if self.look else ""
        return f"{self.verdict}: {self.evidence}{look}"


class Verdicts(dict):
    """Verdicts by probe. .verdict is the overall verdict, .first the first probe that did not pass, .report everything
    that `maskgrad audit --json` writes, including the map of which token moves which prediction."""

    def __init__(self, report):
        super().__init__((found["probe"], Verdict(found)) for found in report["probes"])
        self.report, self.verdict, self.first = report, report["verdict"], report["first"]
        self.passed = self.verdict == "pass"

    def __str__(self):
        return "\n".join(f"{probe:10}{verdict}" for probe, verdict in self.items())


def _start(command):
    try:
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except OSError as error:
        raise RuntimeError(f"the program {command[0]!r} cannot be started ({error.strerror}): install maskgrad, or name its "
                           "program in the argument `maskgrad` or in the environment's MASKGRAD") from None


def audit(logits, vocab, context, *, maskgrad=None, timeout=None, ids=None, seed=None, length=None, full=None, cuts=None,
          sequences=None, values=None, out_dir=None, **offers):
    """Audit a model that runs in this process. Starts maskgrad (the argument, the environment's MASKGRAD, or from PATH). The other
    arguments are the flags of `maskgrad audit`; `ids` is a list. RuntimeError if the audit could not be done."""
    command = [maskgrad or os.environ.get("MASKGRAD", "maskgrad"), "audit", "--stdio"]
    flags = {"timeout": timeout, "seed": seed, "length": length, "full": full, "cuts": cuts, "sequences": sequences,
             "values": values, "out-dir": out_dir, "ids": ",".join(str(int(i)) for i in ids) if ids is not None else None}
    command += [f"--{name}={value}" for name, value in flags.items() if value is not None]
    model = _Model(logits, vocab, context, **offers)
    with _start(command) as process:
        try:
            report = model.converse(process.stdout, process.stdin)
        except BrokenPipeError:
            report = None
        process.stdin.close()
        said = process.stderr.read().decode(errors="replace").strip()
    if report is None:
        raise RuntimeError(said or f"maskgrad ended with status {process.returncode}")
    return Verdicts(report)
