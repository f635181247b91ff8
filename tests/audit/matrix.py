#!/usr/bin/env python3
"""The audit's matrix: planted faults, each with the probe that has to see it first, and honest models, each acquitted.

    MASKGRAD=build/release/maskgrad PYTHONPATH=adapters python3 tests/audit/matrix.py          all of it
    ... matrix.py NAME...                                                          those rows, with the verdicts

A row is red when the first verdict, its pair or its words are others than expected. In the end each probe is disabled in
turn (MASKGRAD_BREAK), and the faults that it is for have to turn red."""

import os
import sys
import time

import numpy as np
import torch
from maskgrad_audit import audit

from models import *

torch.set_num_threads(1)
PROBES = ("repeat", "batch", "mask", "control", "prefix", "padding", "cache", "shift", "segments")


# ---- How a model is shown ----


def see_all(n):
    return torch.zeros(n, n).bool()


def shown(model, vocab=V, context=T, **offers):
    """A PyTorch module of token ids, as audit()'s arguments."""

    def tensors(call):
        def ask(*arrays):
            with torch.no_grad():
                return call(*(torch.from_numpy(a) if isinstance(a, np.ndarray) else a for a in arrays))
        return ask

    return dict(logits=tensors(model), vocab=vocab, context=context,
                **{name: tensors(o) if callable(o) else o for name, o in offers.items()})


def masked(mask, **options):
    return lambda: shown(Decoder(mask=mask, **options))


def weighed(weights, **options):
    return lambda: shown(Decoder(weights=weights, **options))


def mixed(mix, **options):
    return lambda: shown(Decoder(mix=mix() if isinstance(mix, type(mixed)) and mix.__code__.co_argcount == 0 else mix,
                                 **options))


def only(mix, **options):
    return lambda: shown(Only(mix() if mix.__code__.co_argcount == 0 else mix, **options))


def on_path(name, method, **faults):
    """One more path of an honest decoder, with a fault."""

    def make():
        model = Decoder()
        return shown(model, **{name: lambda *given: getattr(model, method)(*given, **faults)})
    return make


def peeks(when, vocab=V, **offers):
    return lambda: shown(Peeking(when, vocab=vocab), vocab=vocab, **offers)


# ---- Faults of their own kind ----


def train_only():
    model = Decoder()
    return shown(model, train=lambda ids: model.train_mode(ids, masks=[see_all] * 2))


def training_mode(**options):
    return lambda: shown(Decoder(**options).train())


def noisy(size):
    model = Decoder()
    return lambda: shown(lambda ids: model(ids) + size * torch.randn(1))


def noise_and_leak():
    model = Decoder(mask=see_all)
    return shown(lambda ids: model(ids) + 1e-3 * torch.randn(1))


def keeps_its_state():
    net, wte, head, state = nn.GRU(C, C, batch_first=True), nn.Embedding(V, C), nn.Linear(C, V), {}

    def forward(ids):
        y, state[len(ids)] = net(wte(ids), state.get(len(ids)))
        return head(y)
    return shown(forward)


def batch_first_mistaken():
    net, wte, head = nn.LSTM(C, C), nn.Embedding(V, C), nn.Linear(C, V)
    return shown(lambda ids: head(net(wte(ids))[0]))


def flattened_rows():
    model = Decoder(context=T * 16)
    return shown(lambda ids: model(ids.reshape(1, -1)).reshape(*ids.shape, V))


def first_row_only():
    model, open_model = Decoder(), Decoder(mask=see_all)
    return shown(lambda ids: torch.cat([model(ids[:1]), open_model(ids[1:])]))


def zeroed(parts):
    def make():
        model = Decoder()
        with torch.no_grad():
            for name, p in model.named_parameters():
                if any(part in name for part in parts):
                    p.zero_()
        return shown(model, loss=model.loss)
    return make


def not_a_number():
    model = Decoder()
    return shown(lambda ids: model(ids).masked_fill((ids == 3)[..., None], math.nan))


def tiny_leak():
    return dict(logits=NumpyAttention(leak=1e-8), vocab=V, context=T, dtype="f64")


def over_time(mix, dtype=np.float64, leak=0.0, leak_from=0):
    """An embedding, a mix over time (B,T,C) -> (B,T,C), and the embedding again; and a leak into the label's logit."""

    def make():
        rng = np.random.default_rng(6)
        wte, kernel = rng.normal(size=(V, C)).astype(dtype), rng.normal(size=(T, C)).astype(dtype)

        def logits(ids):
            y = mix(wte[ids], kernel[:ids.shape[1]]).astype(dtype) @ wte.T
            if leak:
                y[:, leak_from:-1] += (leak * np.eye(V))[ids[:, leak_from + 1:]]
            return y
        return dict(logits=logits, vocab=V, context=T, dtype="f64" if dtype == np.float64 else "f32")
    return make


def large(mask, context, **training):
    def make():
        model = Decoder(mask=mask, context=context, layers=1)
        if "train" in training:
            return shown(model, context=context, train=lambda ids: model.train_mode(ids, masks=[training["train"]]))
        return shown(model, context=context)
    return make


def in_training(call):
    """An honest model, in training mode followed by another of its logits."""

    def make():
        model = Decoder()
        return shown(model, train=lambda ids: call(model, ids))
    return make


def less_mean_of(axes, share=1.0):
    def normalized(model, ids):
        y = model(ids)
        return y - share * y.mean(axes, keepdim=True)
    return in_training(normalized)


def own_generator(dropped):
    """Dropout of a generator that nobody seeds."""
    generator = torch.Generator()

    def dropout(model, ids):
        y = dropped(model, ids)
        return y * (torch.rand(y.shape, generator=generator) > 0.2)
    return in_training(dropout)


# ---- Honest, each in its own way ----


def everything(**options):
    def make():
        model = Decoder(**options)
        more = {"dtype": "bf16"} if options.get("dtype") == torch.bfloat16 else {}
        return shown(model, model.vocab, model.context, step=model.step, padded=model.padded, segments=model.packed,
                     train=model.train_mode, loss=model.loss, **more)
    return make


def with_threads(n):
    def make():
        torch.set_num_threads(n)
        return everything()()
    return make


def torch_encoder():
    layer = nn.TransformerEncoderLayer(C, H, 4 * C, batch_first=True)
    net, wte, head = nn.TransformerEncoder(layer, 2).eval(), nn.Embedding(V, C), nn.Linear(C, V)
    return shown(lambda ids: head(net(wte(ids), mask=future(ids.shape[1]))))


def padded_with_nan():
    """A pad's own row is masked out entirely, and NaN: nobody reads it."""
    model = Decoder(layers=1)

    def padded(ids, mask):
        return model.padded(ids, mask).masked_fill((mask == 0)[..., None], math.nan)
    return shown(model, padded=padded)


def own_sequence():
    return dict(everything()(), ids=[5, 6, 7, 8, 9, 10, 11])


def in_bits():
    model = Decoder()
    return shown(model, loss=lambda ids: model.loss(ids) / math.log(2))


# ---- The tables: name, model, first probe, verdict, pair (None: there is none, ...: any), words of its evidence ----

FAULTS = [
    ("dropout left on", training_mode(dropout=0.1), "repeat", "fail", None, "each time"),
    ("noise", noisy(0.1), "repeat", "fail", None, "each time"),
    ("noise of 1e-5", noisy(1e-5), "repeat", "fail", None, "each time"),
    ("noise over a leak", noise_and_leak, "repeat", "fail", None, "each time"),
    ("a state kept between calls", keeps_its_state, "repeat", "fail", None, "each time"),
    ("NaN", not_a_number, "repeat", "fail", None, "NaN"),
    ("batch_first mistaken", batch_first_mistaken, "batch", "fail", None, "other rows"),
    ("rows share an expert's capacity", only(shared_capacity), "batch", "fail", None, "other rows"),
    ("batch norm in training mode", lambda: shown(Only(batch_norm()).train()), "batch", "fail", None, "other rows"),
    ("scaled by the whole batch", only(whole_batch_scale), "batch", "fail", None, "other rows"),
    ("rows in one long sequence", flattened_rows, "batch", "fail", None, "other rows"),
    ("a mask for the first row only", first_row_only, "batch", "fail", None, ""),
    ("no mask", masked(see_all), "mask", "fail", (0, 1), "every prediction sees every later token"),
    ("inverted mask", masked(lambda n: torch.ones(n, n).tril(-1).bool()), "mask", "fail", (0, 1), ""),
    ("diagonal one too far", masked(lambda n: torch.ones(n, n).triu(2).bool(), layers=1), "mask", "fail", (0, 1),
     "every prediction sees 1 token ahead"),
    ("no mask from 20 on", masked(from_on(20)), "mask", "fail", (20, 21), "from position 20 on"),
    ("every 8th sees the next", masked(every_8th, layers=1), "mask", "fail", (7, 8), "every 8th prediction"),
    ("inside blocks of 16", masked(blocks_of_16), "mask", "fail", (0, 1), "inside its block of 16"),
    ("in one head", masked(in_one_head), "mask", "fail", (0, 1), ""),
    ("in the second layer", lambda: shown(Decoder(masks=[future, see_all])), "mask", "fail", (0, 1), ""),
    ("the last key", masked(last_key_seen, layers=1), "mask", "fail", (0, 31), "token 31 is seen by 31"),
    ("one pair", masked(one_pair, layers=1), "mask", "fail", (29, 30), "only the prediction at position 29"),
    ("a prefix of 8 sees itself", masked(prefix_of_8), "mask", "fail", (0, 1), ""),
    ("filled with 0", weighed(zero), "mask", "fail", (0, 1), ""),
    ("filled with -1e4", weighed(minus_1e4_and_large_scores), "mask", "fail", (0, 1), "only the prediction at position 0"),
    ("after the softmax", weighed(zero_after_softmax), "mask", "fail", (0, 1), ""),
    ("multiplied by a triangle", weighed(times_triangle), "mask", "fail", (0, 1), ""),
    ("softmax over queries", weighed(over_queries), "mask", "fail", (0, 1), ""),
    ("mean pooling", mixed(mean_pooling), "mask", "fail", (0, 1), "every later token"),
    ("max pooling", mixed(max_pooling), "mask", "fail", (0, 1), ""),
    ("FFT", mixed(fourier), "mask", "fail", (0, 1), "every later token"),
    ("layer norm over time", mixed(norm_over_time), "mask", "fail", (0, 1), ""),
    ("instance norm", mixed(instance_norm), "mask", "fail", (0, 1), ""),
    ("a scale of the whole sequence", mixed(scale_of_the_sequence), "mask", "fail", (0, 1), ""),
    ("a sum from the right", mixed(sum_from_the_right), "mask", "fail", (0, 1), "every later token"),
    ("a bias in place of a mask", masked(see_all, bias=slopes), "mask", "fail", (0, 1), ""),
    ("'same' convolution", only(same_convolution), "mask", "fail", (0, 1), "every prediction sees 1 token ahead"),
    ("shifted embeddings", mixed(shifted_left), "mask", "fail", (0, 1), "1 token ahead"),
    ("expert-choice routing", mixed(expert_choice), "mask", "fail", (2, 6), ""),
    ("bidirectional LSTM", only(lambda: Rectified(lambda x, net, out: out(net(x)[0]),
                                                  nn.LSTM(C, C, batch_first=True, bidirectional=True),
                                                  nn.Linear(2 * C, C))), "mask", "fail", (0, 1), "every later token"),
    ("a leak of 1e-8", tiny_leak, "mask", "fail", (0, 1), "1 token ahead"),
    ("only if the next token is 7", peeks(lambda now, then: then == 7), "mask", "fail", (0, 1),
     "by 1 of 28 other tokens there): every prediction sees 1 token ahead (31 pairs"),
    ("only if the next token is the same", peeks(lambda now, then: then == now), "mask", "fail", (0, 1),
     "by 1 of 28 other tokens there): every prediction sees 1 token ahead (31 pairs"),
    ("only if the next token is odd", peeks(lambda now, then: then % 2 == 1), "mask", "fail", (0, 1),
     "of 28 other tokens there): every prediction sees 1 token ahead (31 pairs"),
    ("only after a 3", peeks(lambda now, then: (now == 3) * then), "mask", "fail", (11, 12), "1 token ahead"),
    ("only if 3 is followed by 4", peeks(lambda now, then: (now == 3) & (then == 4)), "mask", "fail", (11, 12),
     "(by 1 of 28"),
    ("the last of 300 tokens only", peeks(lambda now, then: then == 299, vocab=300), "mask", "fail", (0, 1),
     "1 token ahead"),
    ("the first of 5,000 only", peeks(lambda now, then: then == 0, vocab=5000), "mask", "fail", (0, 1),
     "1 token ahead"),
    ("the same of 300 tokens only", peeks(lambda now, then: then == now, vocab=300), "mask", "fail", (0, 1),
     "1 token ahead"),
    ("in training mode only", train_only, "mask", "fail", (0, 1), "in training mode"),
    ("batch norm over rows and time in training", less_mean_of((0, 1)), "mask", "fail", (0, 1),
     "in training mode position 0 moves with token 1,"),
    ("from 70 on of 100", large(from_on(70), 100), "mask", "fail", (70, 71), "every prediction from position 70 on"),
    ("from 200 on of 256", large(from_on(200), 256), "mask", "fail", (200, 201),
     "every prediction from position 200 on sees up to 55 tokens ahead"),
    ("every 16th from 128 on of 256", large(every_16th_from_128, 256), "mask", "fail", (128, 129),
     "every 16th prediction, from position 128 on, sees 1 token ahead"),
    ("from 150 on of 200 in training mode", large(future, 200, train=from_on(150)), "mask", "fail", (150, 151),
     "in training mode position 150 moves with token 151"),
    ("a leak of 1e-8 beside an FFT", over_time(fft_convolution, leak=1e-8), "mask", "fail", (0, 1),
     "every prediction sees every later token"),
    ("the same from 20 on", over_time(fft_convolution, leak=1e-8, leak_from=20), "mask", "fail", (20, 21),
     "every prediction from position 20 on sees 1 token ahead (11 pairs"),
    ("dropout that no seed reaches", own_generator(lambda model, ids: model(ids)), "mask", "inconclusive", None,
     "In training mode equal calls differ"),
    ("the same, over a leak", own_generator(lambda model, ids: model.train_mode(ids, masks=[see_all] * 2)), "mask",
     "inconclusive", None, "In training mode equal calls differ"),
    ("zeros in training", in_training(lambda model, ids: torch.zeros(*ids.shape, V)), "mask", "inconclusive", None,
     "in training mode, with one row per call, no earlier token moves 31 of 31"),
    ("less the mean of all rows in training", less_mean_of(0), "mask", "inconclusive", None,
     "in training mode, with one row per call, no earlier"),
    ("a constant", lambda: shown(lambda ids: torch.ones(*ids.shape, V)), "mask", "inconclusive", None, "nothing flows"),
    ("a head of zeros", zeroed(["head"]), "mask", "inconclusive", None, "nothing flows"),
    ("attention into a projection of zeros", zeroed(["out."]), "mask", "inconclusive", None, "nothing flows"),
    ("positions from the end", lambda: shown(Decoder(positions=from_the_end)), "prefix", "fail", (0, 1), ""),
    ("scores scaled by the length", weighed(scaled_by_length), "prefix", "fail", (1, 2), ""),
    ("pads attended", on_path("padded", "padded", attended=True), "padding", "fail", None, "other ids in the 8 pads"),
    ("positions count pads", on_path("padded", "padded", counted=True), "padding", "fail", None, "do not matter"),
    ("pads or future", on_path("padded", "padded", combined="or"), "padding", "fail", None, ""),
    ("pads that see nothing are NaN", on_path("padded", "padded", blind=True), "padding", "fail", None, "NaN"),
    ("a stale cache", on_path("step", "step", stale=True), "cache", "fail", (0, -1), "after a reset"),
    ("positions restart", on_path("step", "step", restarts=True), "cache", "fail", (1, -1), "one by one, position 1"),
    ("a mask from the wrong corner", on_path("step", "step", corner=True), "cache", "fail", (1, -1), "position 1"),
    ("a cache one key short", on_path("step", "step", short=True), "cache", "fail", (31, -1), "position 31"),
    ("targets not shifted", on_path("loss", "loss", shift=0), "shift", "fail", (0, 0), "are not shifted"),
    ("targets shifted twice", on_path("loss", "loss", shift=2), "shift", "fail", (0, 2), "shifted twice"),
    ("targets shifted backwards", on_path("loss", "loss", shift=-1), "shift", "fail", (1, 0), "the wrong way"),
    ("targets rolled", on_path("loss", "loss", rolled=True), "shift", "fail", (31, 0), "rolled"),
    ("documents see each other", on_path("segments", "packed", seen=True), "segments", "fail", (11, 0), "document"),
    ("packed without a mask", on_path("segments", "packed", unmasked=True), "segments", "fail", (0, 1), "document 0"),
]
HONEST = [
    ("all paths", everything()),
    ("one thread", with_threads(1)),
    ("two threads", with_threads(2)),
    ("float64", everything(dtype=torch.float64)),
    ("bf16", everything(dtype=torch.bfloat16)),
    ("vocabulary 2", everything(vocab=2)),
    ("vocabulary 300", everything(vocab=300)),
    ("a context of 2", everything(context=2)),
    ("a context of 80", everything(context=80)),
    ("dropout", everything(dropout=0.1)),
    ("rows share statistics in training", less_mean_of(0, share=0.5)),
    ("four layers", everything(layers=4)),
    ("your own ids", own_sequence),
    ("-1e9", weighed(minus_1e9)),
    ("relative positions", lambda: shown(Decoder(positions=none, bias=relative))),
    ("biases by distance", lambda: shown(Decoder(positions=none, bias=by_distance))),
    ("a window of 4", masked(window_of_4)),
    ("left-padded convolution", only(left_padded_convolution)),
    ("GRU", only(lambda: recurrent(nn.GRU, batch_first=True))),
    ("LSTM", only(lambda: recurrent(nn.LSTM, batch_first=True))),
    ("cumulative mean", mixed(cumulative_mean)),
    ("token-choice routing", mixed(token_choice)),
    ("PyTorch's own encoder", torch_encoder),
    ("pads that are NaN", padded_with_nan),
    ("batch norm, evaluated", lambda: shown(Only(Rectified(
        lambda x, norm, net: net(norm(x.transpose(1, 2)).transpose(1, 2))[0], nn.BatchNorm1d(C),
        nn.GRU(C, C, batch_first=True))))),
    ("a loss in bits", in_bits),
    ("NumPy", lambda: dict(logits=NumpyAttention(), vocab=V, context=T, dtype="f64")),
    ("NumPy, float32", lambda: dict(logits=NumpyAttention(np.float32), vocab=V, context=T)),
    ("cumulative sum", over_time(lambda x, kernel: x.cumsum(1))),
    ("scan by doubling", over_time(scan_by_doubling)),
    # Right but for their last bits, which later tokens move: the audit says so, and neither convicts nor acquits them.
    *((name + of, over_time(mix, dtype), "mask", "inconclusive", ..., "It is no larger than rounding")
      for name, mix in (("FFT convolution", fft_convolution), ("the sum less what comes later", sum_less_the_rest),
                        ("log-domain scan", log_scan), ("softmax less the largest of all scores", largest_of_all))
      for of, dtype in (("", np.float64), (", float32", np.float32))),
]


def run(row):
    """What is wrong with a row's verdicts, or "", and the verdicts."""
    name, make, *expected = row
    torch.manual_seed(1)
    verdicts = audit(**make())
    torch.set_num_threads(1)
    if not expected:
        return ("" if verdicts.verdict == "pass" else f"{verdicts.first}: {verdicts[verdicts.first]}"), verdicts
    probe, verdict, pair, words = expected
    found = verdicts[probe]
    right = (verdicts.first == probe and found.verdict == verdict and words in found.evidence and
             (pair is ... or (found.query, found.key) == (pair or (None, None))))
    return "" if right else f"expected {probe} {verdict} {pair}; first {verdicts.first}: {found!r}", verdicts


def is_for(probe, row):
    """The control shows in the mask's verdict: nothing flows, so nothing is acquitted. So does the mask in training."""
    if probe == "training":
        return row[3] == "fail" and "in training mode" in row[5]
    return (row[2], row[3]) == (("mask", "inconclusive") if probe == "control" else (probe, "fail"))


def idle_probes():
    """Probes without which one of their faults stays green."""
    idle = []
    for probe in (*PROBES, "training"):
        os.environ["MASKGRAD_BREAK"] = f"audit.{probe}"
        rows = [row for row in FAULTS if is_for(probe, row)][-2:]
        if not rows or not all(run(row)[0] for row in rows):
            idle.append(probe)
    del os.environ["MASKGRAD_BREAK"]
    return idle


def main(asked):
    red, begun = 0, time.time()
    for row in FAULTS + HONEST:
        if asked and row[0] not in asked:
            continue
        problem, verdicts = run(row)
        red += bool(problem)
        print(f"{'red  ' if problem else 'green'}  {row[0]:40}{problem or verdicts.verdict}")
        if asked:
            print(verdicts)
    idle = [] if asked else idle_probes()
    for probe in idle:
        print(f"red    without the probe {probe} the table stays green")
    print(f"{len(FAULTS)} faults, {len(HONEST)} honest models, {red + len(idle)} red, {time.time() - begun:.1f} s")
    return red + len(idle)


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1:]) else 0)
