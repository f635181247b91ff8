#!/usr/bin/python3
"""What PyTorch computes in float64, for tests/check/test_reference.c: operations.h5 and gpt.h5, beside this script.

    /usr/bin/python3 tests/reference/make_reference.py        # python3-torch 1.13, python3-h5py

Every input is a float32 number, so that a build in float starts from the same values. A case of operations.h5 is the
group /OPERATION/CASE: in0, in1, ... are its inputs, out its result, weight what the result is contracted with, and
d0, d1, ... the gradients of sum(out * weight); an input without a gradient has none. `int` and `real` are the
operation's other arguments, in the order in which test_reference.c reads them.
"""
import pathlib
import zlib

import h5py
import numpy as np
import torch
import torch.nn.functional as F

HERE = pathlib.Path(__file__).parent
ALL = 2**31 - 1  # MG_LOOKAHEAD_ALL
LOOKAHEAD, WINDOW, PREFIX, BLOCK = range(4)  # mg_mask_kind
ALL_AXES = 1000  # MG_ALL_AXES
IGNORE = -1
torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)


def normal(random, *shape):
    return np.float32(random.standard_normal(shape)).astype(np.float64)


# ---- Philox4x32-10 (Salmon et al. 2011), written from the paper: the generator of dropout ----

STREAM_TEST = 8


def philox_words(seed, stream, step, index):
    counter = [index & 0xFFFFFFFF, index >> 32, step, stream]
    key = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        low, high = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [(high >> 32) ^ counter[1] ^ key[0], high & 0xFFFFFFFF,
                   (low >> 32) ^ counter[3] ^ key[1], low & 0xFFFFFFFF]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return counter


def philox_uniform(seed, step, index):
    words = philox_words(seed, STREAM_TEST, step, index)
    return ((words[0] << 32 | words[1]) >> 11) * 2.0**-53


def dropout(x, p, seed, step):
    words = [philox_words(seed, STREAM_TEST, step, i // 4)[i % 4] for i in range(x.numel())]
    kept = torch.tensor([word >= int(p * 2**32) for word in words]).reshape(x.shape)
    return torch.where(kept, x / (1 - p) if p < 1 else x * 0, x * 0)


# ---- The formulas that torch has no single function for ----


def reduce(name, x, axis):
    if axis == ALL_AXES:
        x, axis = x.reshape(-1), 0
    return x.max(axis).values if name == "max" else getattr(x, name)(axis)


def matmul(a, b, transpose_a, transpose_b):
    return (a.mT if transpose_a else a) @ (b.mT if transpose_b else b)


def cross_entropy(logits, ignore, targets):
    targets = torch.tensor(targets)
    total = F.cross_entropy(logits.reshape(len(targets), -1), targets, ignore_index=ignore, reduction="sum")
    return total / max(1, int((targets != ignore).sum()))


def visible(T, kind, n):
    query, key = torch.arange(T)[:, None], torch.arange(T)[None, :]
    causal = key <= query
    return {LOOKAHEAD: key <= query + n, WINDOW: causal & (query - key < n), PREFIX: causal | (query < n) & (key < n),
            BLOCK: key // max(n, 1) <= query // max(n, 1)}[kind]


def attention(qkv, masks, scale, p=0.0, seed=0, step=0, limits=None):
    """masks: a kind and its number for each head; limits (B,T,2): the keys first ... end - 1 that a query sees at most."""
    B, T, C3 = qkv.shape
    H = len(masks)
    q, k, v = (part.reshape(B, T, H, -1).transpose(1, 2) for part in qkv.split(C3 // 3, 2))
    mask = torch.stack([visible(T, *mask) for mask in masks])
    if limits is not None:
        key = torch.arange(T)
        mask = mask & ((key >= limits[:, :, :1]) & (key < limits[:, :, 1:]))[:, None]
    weights = (q @ k.mT * scale).masked_fill(~mask, -np.inf).softmax(-1)
    if p > 0:
        u = np.array([philox_uniform(seed, step, i) for i in range(weights.numel())]).reshape(weights.shape)
        weights = weights * torch.tensor((u >= p) / (1 - p))
    return (weights @ v).transpose(1, 2).reshape(B, T, C3 // 3)


# ---- Cases ----


class Cases:
    def __init__(self, file):
        self.file = file

    def add(self, op, note, function, *inputs, constants=(), int=(), real=()):
        """An input is a shape, to be filled with normal numbers, or an array. `constants` get no gradient."""
        random = np.random.RandomState(zlib.crc32(f"{op}/{note}".encode()))
        values = [normal(random, *x) if isinstance(x, tuple) else np.float64(np.float32(x)) for x in inputs]
        tensors = [torch.tensor(x, requires_grad=i not in constants) for i, x in enumerate(values)]
        out = function(*tensors)
        weight = normal(random, *out.shape)
        out.backward(torch.tensor(weight))
        group = self.file.create_group(f"{op}/{note}")
        group["out"], group["weight"] = out.detach().numpy(), weight
        for i, x in enumerate(tensors):
            group[f"in{i}"] = values[i]
            if i not in constants:
                group[f"d{i}"] = x.grad.numpy()
        if len(int):
            group["int"] = np.array(int, dtype=np.int64)
        if len(real):
            group["real"] = np.array(real, dtype=np.float64)


def positive(*shape):
    return 0.5 + np.abs(np.random.RandomState(1).standard_normal(shape))


def elementwise_cases(cases):
    binary = {"add": torch.add, "sub": torch.sub, "mul": torch.mul}
    for name, function in binary.items():
        cases.add(name, "same shape", function, (3, 5), (3, 5))
        cases.add(name, "row", function, (2, 3, 7), (7,))
        cases.add(name, "outer", function, (4, 1), (1, 3))
        cases.add(name, "scalar", function, (), (2, 3))
        cases.add(name, "four dimensions", function, (2, 1, 3, 1), (5, 1, 7))
    cases.add("div", "same shape", torch.div, (3, 5), positive(3, 5))
    cases.add("div", "column", torch.div, (2, 3, 7), positive(3, 1))
    cases.add("div", "scalar", torch.div, (2, 3), positive())
    cases.add("div", "outer", torch.div, (1, 3), positive(4, 1))
    for factor in (-1.5, 0.0):
        cases.add("scale", f"{factor}", lambda x: x * factor, (3, 7), real=[factor])
    functions = {"exp": torch.exp, "tanh": torch.tanh, "relu": torch.relu,
                 "gelu": lambda x: F.gelu(x, approximate="tanh")}
    for name, function in functions.items():
        cases.add(name, "a vector and a tail", function, (37,))
        cases.add(name, "scalar", function, ())
    cases.add("log", "a vector and a tail", torch.log, positive(37))
    cases.add("log", "matrix", torch.log, positive(3, 5))
    wide = np.array([-30, -10, -6, -3, -1e-3, 0, 1e-3, 3, 6, 10, 30])
    for name in ("tanh", "gelu"):
        cases.add(name, "far out", functions[name], wide)
    cases.add("exp", "far out", torch.exp, np.array([-100, -20, -1, 0, 1, 5]))


def axis_cases(cases):
    for name in ("sum", "mean", "max"):
        for note, shape, axis in (("all", (2, 3), ALL_AXES), ("first", (3, 2, 5), 0), ("middle", (3, 7, 4), -2),
                                  ("last", (2, 3, 2, 5), -1), ("one", (3, 1), 1)):
            cases.add(name, note, lambda x: reduce(name, x, axis), shape, int=[axis])
    ties = np.array([[1, 3, 3], [2, 2, 2], [0, -1, 0]])
    cases.add("max", "equals", lambda x: reduce("max", x, 1), ties, int=[1])


def shape_cases(cases):
    cases.add("reshape", "to matrix", lambda x: x.reshape(4, 3), (2, 3, 2), int=[4, 3])
    cases.add("reshape", "to scalar", lambda x: x.reshape(()), (1, 1))
    for note, shape, a, b in (("matrix", (3, 5), 0, 1), ("heads", (2, 3, 2, 5), 1, 2), ("ends", (2, 3, 5), -1, 0)):
        cases.add("transpose", note, lambda x: x.transpose(a, b), shape, int=[a, b])
    for note, shape, axis, begin, end in (("last", (3, 5), 1, 2, 4), ("first", (4, 2, 3), -3, 3, 4),
                                          ("all", (3,), 0, 0, 3)):
        cases.add("slice", note, lambda x: x.narrow(axis, begin, end - begin), shape, int=[axis, begin, end])
    cases.add("concat", "last", lambda *x: torch.cat(x, -1), (2, 3), (2, 1), (2, 4), int=[-1])
    cases.add("concat", "first", lambda *x: torch.cat(x, 0), (1, 2, 3), (3, 2, 3), int=[0])


def matrix_cases(cases):
    shapes = (("A B", (3, 5), (5, 2), 0, 0), ("At B", (5, 3), (5, 2), 1, 0), ("A Bt", (3, 5), (2, 5), 0, 1),
              ("At Bt", (5, 3), (2, 5), 1, 1), ("batched", (2, 3, 2, 5), (2, 3, 5, 3), 0, 0),
              ("one B", (2, 3, 5), (5, 2), 0, 0), ("one A", (3, 5), (2, 2, 5, 3), 0, 0),
              ("both repeat", (2, 1, 5, 3), (3, 2, 5), 1, 1), ("one row", (1, 7), (7, 3), 0, 0))
    for note, a, b, transpose_a, transpose_b in shapes:
        cases.add("matmul", note, lambda x, y: matmul(x, y, transpose_a, transpose_b), a, b,
                  int=[transpose_a, transpose_b])
    cases.add("linear", "bias", lambda x, w, b: x @ w + b, (2, 3, 5), (5, 7), (7,))
    cases.add("linear", "no bias", torch.matmul, (3, 5), (5, 2))
    cases.add("linear", "one row", lambda x, w, b: x @ w + b, (5,), (5, 3), (3,))
    cases.add("linear", "more than a tile", lambda x, w, b: x @ w + b, (131, 3), (3, 2), (2,))
    cases.add("linear_tied", "rows", lambda x, w: x @ w.T, (2, 3, 5), (7, 5))
    for note, rows in (("rows", (2, 3)), ("more than a tile", (131,)), ("one row", ())):
        cases.add("linear_add", note, lambda r, x, w, b: r + x @ w + b, (*rows, 7), (*rows, 5), (5, 7), (7,))
        cases.add("linear_gelu", note, lambda x, w, b: F.gelu(x @ w + b, approximate="tanh"), (*rows, 5), (5, 7), (7,))
    cases.add("linear_tied", "one row", lambda x, w: x @ w.T, (1, 3), (5, 3))


def row_cases(cases):
    partly_hidden = np.where(np.eye(5) + np.eye(5, k=1) > 0, np.arange(25.0).reshape(5, 5) / 7, -np.inf)
    for name in ("softmax", "log_softmax"):
        function = getattr(torch, name)
        cases.add(name, "rows", lambda x: function(x, -1), (2, 3, 5))
        cases.add(name, "a vector and a tail", lambda x: function(x, -1), (37,))
        cases.add(name, "large", lambda x: function(x, -1), np.array([[1e4, 1e4 + 1, -1e4], [-1e4, -1e4, -1e4 - 2]]))
    cases.add("softmax", "partly hidden", lambda x: torch.softmax(x, -1), partly_hidden)
    triangle = np.triu(np.ones((4, 4)), 1)
    for note, shape, mask, value in (("triangle", (2, 4, 4), triangle, -np.inf), ("row", (2, 3, 4), triangle[2], 7.5),
                                     ("same shape", (4, 4), triangle, -1e9)):
        cases.add("masked_fill", note, lambda x, m: x.masked_fill(m != 0, value), shape, mask, constants=[1],
                  real=[value])
    for note, shape, eps in (("rows", (2, 3, 5), 1e-5), ("a vector and a tail", (37,), 1e-5),
                             ("more than a tile", (67, 3), 1e-3)):
        width = shape[-1:]
        cases.add("layer_norm", note, lambda x, g, b: F.layer_norm(x, width, g, b, eps), shape, width, width,
                  real=[eps])


def token_cases(cases):
    for note, table, dim, ids in (("repeated ids", (5, 3), [4], [2, 2, 0, 2]), ("wide", (3, 70), [3], [1, 0, 1]),
                                  ("two dimensions", (4, 3), [2, 3], [3, 1, 1, 0, 3, 3])):
        cases.add("embedding", note, lambda x: F.embedding(torch.tensor(ids).reshape(dim), x), table,
                  int=[len(dim), *dim, *ids])
    for note, shape, targets in (("rows", (3, 5), [4, 0, 2]), ("some ignored", (2, 3, 7), [IGNORE, 2, 0, 6, IGNORE, 1]),
                                 ("all ignored", (2, 3), [IGNORE, IGNORE]), ("one of one", (1, 1), [0]),
                                 ("more than a tile", (67, 3), [i % 4 - 1 for i in range(67)])):
        cases.add("cross_entropy", note, lambda x: cross_entropy(x, IGNORE, targets), shape, int=[IGNORE, *targets])


def dropout_cases(cases):
    for note, p, shape, seed, step in (("a quarter", 0.25, (5, 9), 7, 1), ("half", 0.5, (37,), 2**40 + 3, 9),
                                       ("none", 0.0, (3,), 1, 1), ("all", 1.0, (3,), 1, 1)):
        cases.add("dropout", note, lambda x: dropout(x, p, seed, step), shape, int=[seed, step], real=[p])


def documents(lengths):
    """(B,T,2): first and end of each token's document, for sequences packed with documents of these lengths."""
    ends = [np.cumsum(row) for row in lengths]
    return np.array([[(end - n, end) for end, n in zip(e, row) for _ in range(n)] for e, row in zip(ends, lengths)])


def attention_cases(cases):
    causal, none = (LOOKAHEAD, 0), (LOOKAHEAD, ALL)
    shapes = (("causal", (2, 5, 18), [causal, causal], 1), ("none", (2, 5, 18), [none, none], 1),
              ("lookahead 1", (1, 7, 9), [(LOOKAHEAD, 1)], 1),
              ("lookahead 3", (2, 7, 18), [(LOOKAHEAD, 3), (LOOKAHEAD, 3)], 1),
              ("one leaky head", (1, 6, 27), [causal, (LOOKAHEAD, 2), causal], 1),
              ("no scale", (1, 5, 24), [causal, causal], 0), ("one token", (2, 1, 6), [causal], 1),
              ("more than a tile", (1, 35, 6), [causal, causal], 1),
              ("window", (2, 7, 18), [(WINDOW, 1), (WINDOW, 3)], 1),
              ("window, more than a tile", (1, 37, 12), [(WINDOW, 6), (WINDOW, 40)], 1),
              ("prefix", (2, 7, 18), [(PREFIX, 3), (PREFIX, 9)], 1),
              ("block", (2, 7, 18), [(BLOCK, 3), (BLOCK, 2)], 1))
    for note, shape, masks, scaled in shapes:
        scale = (shape[2] / 3 / len(masks)) ** -0.5 if scaled else 1.0
        cases.add("attention", note, lambda x: attention(x, masks, scale), shape,
                  int=[0, 0, *sum(masks, ())], real=[scale, 0])
    cases.add("attention", "dropout", lambda x: attention(x, [causal, causal], 0.5, 0.25, 5, 3), (2, 5, 24),
              int=[5, 3, *causal, *causal], real=[0.5, 0.25])
    limited = (("documents", (2, 7, 18), [causal, causal], ((1, 2, 4), (7,))),
               ("documents of one token", (1, 5, 9), [causal], ((1,) * 5,)),
               ("documents, more than a tile", (2, 37, 12), [causal, causal], ((3, 17, 17), (36, 1))),
               ("documents, no mask", (2, 7, 18), [none, none], ((3, 4), (1, 6))),
               ("documents, window and prefix", (2, 9, 18), [(WINDOW, 2), (PREFIX, 6)], ((5, 4), (2, 2, 5))),
               ("documents, block", (1, 9, 18), [(BLOCK, 4), (BLOCK, 2)], ((3, 3, 3),)))
    for note, shape, masks, lengths in limited:
        scale = (shape[2] / 3 / len(masks)) ** -0.5
        cases.add("attention", note, lambda x, limits: attention(x, masks, scale, limits=limits), shape,
                  documents(lengths), constants=(1,), int=[0, 0, *sum(masks, ())], real=[scale, 0])


# ---- The GPT ----

LAYERS, HEADS, WIDTH, BLOCK_SIZE, VOCAB = 2, 2, 6, 9, 11
BATCH, LENGTH, STEPS = 3, 7, 10
LR, BETAS, EPS, DECAY, CLIP = 1e-2, (0.9, 0.95), 1e-8, 0.1, 1.0


def gpt_parameters(random):
    shapes = {"wte": (VOCAB, WIDTH), "wpe": (BLOCK_SIZE, WIDTH)}
    block = {"ln_1.weight": (WIDTH,), "ln_1.bias": (WIDTH,), "attn.c_attn.weight": (WIDTH, 3 * WIDTH),
             "attn.c_attn.bias": (3 * WIDTH,), "attn.c_proj.weight": (WIDTH, WIDTH), "attn.c_proj.bias": (WIDTH,),
             "ln_2.weight": (WIDTH,), "ln_2.bias": (WIDTH,), "mlp.c_fc.weight": (WIDTH, 4 * WIDTH),
             "mlp.c_fc.bias": (4 * WIDTH,), "mlp.c_proj.weight": (4 * WIDTH, WIDTH), "mlp.c_proj.bias": (WIDTH,)}
    for layer in range(LAYERS):
        shapes.update({f"h.{layer}.{name}": shape for name, shape in block.items()})
    shapes.update({"ln_f.weight": (WIDTH,), "ln_f.bias": (WIDTH,)})
    gain = lambda name: name.endswith(".weight") and len(shapes[name]) == 1
    return {name: np.float32(gain(name) + 0.3 * random.standard_normal(shape)).astype(np.float64)
            for name, shape in shapes.items()}


def gpt_forward(p, ids, masks, scaled):
    def norm(x, name):
        return F.layer_norm(x, (WIDTH,), p[f"{name}.weight"], p[f"{name}.bias"], 1e-5)

    def linear(x, name):
        return x @ p[f"{name}.weight"] + p[f"{name}.bias"] if f"{name}.weight" in p else x

    scale = (WIDTH / HEADS) ** -0.5 if scaled else 1.0
    x = F.embedding(ids, p["wte"]) + p["wpe"][: ids.shape[1]]
    for layer in range(LAYERS):
        h = f"h.{layer}"
        mixed = attention(linear(norm(x, f"{h}.ln_1"), f"{h}.attn.c_attn"), masks[layer], scale)
        x = x + linear(mixed, f"{h}.attn.c_proj")
        hidden = F.gelu(linear(norm(x, f"{h}.ln_2"), f"{h}.mlp.c_fc"), approximate="tanh")
        x = x + linear(hidden, f"{h}.mlp.c_proj")
    return norm(x, "ln_f") @ p["wte"].T


def gpt_case(group, start, ids, targets, mask=(LOOKAHEAD, 0), leak=None, scaled=True, projection=True):
    """Logits, loss and gradients of the first batch, then STEPS steps of AdamW on one batch each."""
    p = {name: torch.tensor(value, requires_grad=True) for name, value in start.items()
         if projection or "attn.c_proj" not in name}
    masks = [[mask] * HEADS for _ in range(LAYERS)]
    if leak:
        masks[leak[0]][leak[1]] = (LOOKAHEAD, leak[2])
    group.attrs.update(mask=np.array(mask, dtype=np.int64), leak=np.array(leak or (-1, 0, 0), dtype=np.int64),
                       scale=np.int64(scaled), output_projection=np.int64(projection))
    matrices = [x for x in p.values() if x.ndim > 1]
    vectors = [x for x in p.values() if x.ndim == 1]
    adamw = torch.optim.AdamW([{"params": matrices, "weight_decay": DECAY}, {"params": vectors, "weight_decay": 0}],
                              lr=LR, betas=BETAS, eps=EPS)
    losses, norms = [], []
    for step in range(STEPS):
        adamw.zero_grad()
        logits = gpt_forward(p, torch.tensor(ids[step]), masks, scaled)
        loss = F.cross_entropy(logits.reshape(-1, VOCAB), torch.tensor(targets[step]).reshape(-1), ignore_index=IGNORE)
        loss.backward()
        if step == 0:
            group["logits"] = logits.detach().numpy()
            for name, x in p.items():
                group[f"grad/{name}"] = x.grad.numpy()
        norm = float(torch.sqrt(sum((x.grad**2).sum() for x in p.values())))
        for x in p.values():  # not clip_grad_norm_, which adds 1e-6 to the norm
            x.grad *= min(1.0, CLIP / norm)
        adamw.step()
        losses.append(float(loss.detach()))
        norms.append(norm)
    group["losses"], group["norms"] = losses, norms
    for name, x in p.items():
        group[f"after/{name}"] = x.detach().numpy()


def gpt_cases(file):
    random = np.random.RandomState(1337)
    start = gpt_parameters(random)
    tokens = random.randint(0, VOCAB, (STEPS, BATCH, LENGTH + 1))
    ids, targets = tokens[..., :-1], tokens[..., 1:].copy()
    targets[:, 1, 2] = IGNORE
    file.attrs.update(n_layer=LAYERS, n_head=HEADS, n_embd=WIDTH, block_size=BLOCK_SIZE, vocab_size=VOCAB, lr=LR,
                      beta1=BETAS[0], beta2=BETAS[1], eps=EPS, weight_decay=DECAY, clip=CLIP)
    file["ids"], file["targets"] = ids, targets
    for name, value in start.items():
        file[f"start/{name}"] = value
    variants = {"causal": {}, "no mask": {"mask": (LOOKAHEAD, ALL)}, "lookahead 2": {"mask": (LOOKAHEAD, 2)},
                "window 2": {"mask": (WINDOW, 2)}, "prefix 4": {"mask": (PREFIX, 4)}, "block 3": {"mask": (BLOCK, 3)},
                "one leaky head": {"leak": (1, 0, 1)}, "no scale": {"scaled": False},
                "no output projection": {"projection": False}}
    for name, options in variants.items():
        gpt_case(file.create_group(f"variants/{name}"), start, ids, targets, **options)


def main():
    with h5py.File(HERE / "operations.h5", "w") as file:
        cases = Cases(file)
        for add in (elementwise_cases, axis_cases, shape_cases, matrix_cases, row_cases, token_cases, dropout_cases,
                    attention_cases):
            add(cases)
    with h5py.File(HERE / "gpt.h5", "w") as file:
        gpt_cases(file)


if __name__ == "__main__":
    main()
