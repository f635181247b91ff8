"""Small models, honest and faulty, for the audit's matrix. A decoder in PyTorch whose every part can be replaced, a few
layers that mix over time, and a recurrent net and an attention in NumPy."""

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

V, T, C, H = 29, 32, 16, 2


def future(n):
    """True where the key is later than the query."""
    return torch.ones(n, n).triu(1).bool()


# ---- Masks: which keys are hidden from which queries, (n,n) or (H,n,n) ----


def from_on(first):
    def mask(n):
        hidden = future(n)
        hidden[first:] = False
        return hidden
    return mask


def every_16th_from_128(n):
    hidden = future(n)
    for i in range(128, n - 1, 16):
        hidden[i, i + 1] = False
    return hidden


def every_8th(n):
    hidden = future(n)
    for i in range(7, n - 1, 8):
        hidden[i, i + 1] = False
    return hidden


def blocks_of_16(n):
    block = torch.arange(n) // 16
    return future(n) & (block[:, None] != block[None])


def in_one_head(n):
    return torch.stack([future(n), torch.zeros(n, n).bool()])


def last_key_seen(n):
    hidden = future(n)
    hidden[:, -1] = False
    return hidden


def one_pair(n):
    hidden = future(n)
    if n > 30:
        hidden[29, 30] = False
    return hidden


def prefix_of_8(n):
    hidden = future(n)
    hidden[:8, :8] = False
    return hidden


def window_of_4(n):
    return future(n) | ~torch.ones(n, n).triu(-3).bool()


# ---- Scores (B,H,T,T) become weights ----


def minus_inf(scores, hidden):
    return scores.masked_fill(hidden, -math.inf).softmax(-1)


def minus_1e9(scores, hidden):
    return scores.masked_fill(hidden, -1e9).softmax(-1)


def zero(scores, hidden):
    return scores.masked_fill(hidden, 0).softmax(-1)


def minus_1e4_and_large_scores(scores, hidden):
    return (1e5 * scores).masked_fill(hidden, -1e4).softmax(-1)


def zero_after_softmax(scores, hidden):
    return scores.softmax(-1).masked_fill(hidden, 0)


def times_triangle(scores, hidden):
    return (scores * ~hidden + 0).softmax(-1)


def over_queries(scores, hidden):
    return scores.masked_fill(hidden, -math.inf).softmax(-2)


def scaled_by_length(scores, hidden):
    return minus_inf(scores * math.log(scores.shape[-1]), hidden)


# ---- Positions (T,C) and biases (T,T) ----


def learned(model, n, start=0):
    return model.wpe.weight[start:start + n]


def from_the_end(model, n, start=0):
    return model.wpe.weight[:n].flip(0)


def none(model, n, start=0):
    return torch.zeros(n, C, dtype=model.wpe.weight.dtype)


def no_bias(model, n):
    return 0


def by_distance(model, n):
    return -0.3 * (torch.arange(n)[:, None] - torch.arange(n)[None]).abs()


def slopes(model, n):
    """A bias that grows with the distance into the future, over no mask: the bias was to be the mask."""
    return -2.0 * (torch.arange(n)[None] - torch.arange(n)[:, None]).clamp(min=0)


def relative(model, n):
    distance = (torch.arange(n)[:, None] - torch.arange(n)[None]).clamp(-8, 8)
    return model.relative[distance + 8]


# ---- The decoder ----


class Decoder(nn.Module):
    """Attention and an MLP per layer, written out. `mix` is one more layer (B,T,C) -> (B,T,C) before the attention."""

    def __init__(self, mask=future, weights=minus_inf, positions=learned, bias=no_bias, mix=None, layers=2, masks=None,
                 vocab=V, context=T, dropout=0.0, dtype=torch.float32):
        super().__init__()
        torch.manual_seed(3)
        self.weights, self.positions, self.bias, self.mix = weights, positions, bias, mix
        self.masks = masks or [mask] * layers
        self.wte, self.wpe = nn.Embedding(vocab, C), nn.Embedding(context, C)
        self.qkv = nn.ModuleList(nn.Linear(C, 3 * C) for _ in self.masks)
        self.out = nn.ModuleList(nn.Linear(C, C) for _ in self.masks)
        self.mlp = nn.ModuleList(nn.Sequential(nn.Linear(C, 4 * C), nn.GELU(), nn.Linear(4 * C, C)) for _ in self.masks)
        self.head, self.dropout = nn.Linear(C, vocab), nn.Dropout(dropout)
        self.relative = nn.Parameter(torch.randn(17))
        self.context, self.vocab, self.cache, self.fed = context, vocab, None, 0
        self.to(dtype).eval()
        for p in self.parameters():
            p.requires_grad_(False)

    def attention(self, layer, x, hidden, bias=0, past=None):
        B, n, _ = x.shape
        q, k, v = (y.view(B, n, H, C // H).transpose(1, 2) for y in self.qkv[layer](x).split(C, -1))
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(C // H) + bias
        y = self.weights(scores, hidden).to(x.dtype) @ v
        return self.out[layer](y.transpose(1, 2).reshape(B, n, C)), (k, v)

    def embed(self, ids, positions=None):
        n = ids.shape[1]
        if positions is None:
            return self.wte(ids) + self.positions(self, n)
        return self.wte(ids) + self.wpe.weight[positions]

    def block(self, layer, x, hidden, bias=0, past=None):
        y, kept = self.attention(layer, x, hidden, bias, past)
        x = x + self.dropout(y)
        return x + self.dropout(self.mlp[layer](x)), kept

    def forward(self, ids, also_hidden=None, positions=None, masks=None):
        n = ids.shape[1]
        x = self.embed(ids, positions)
        if self.mix:
            x = x + self.mix(x)
        for layer, mask in enumerate(masks or self.masks):
            hidden = mask(n)
            if also_hidden is not None:
                hidden = hidden | also_hidden
            x, _ = self.block(layer, x, hidden, self.bias(self, n))
        return self.head(x)

    def train_mode(self, ids, masks=None):
        self.train()
        try:
            return self(ids, masks=masks)
        finally:
            self.eval()

    # The other paths, and what can be wrong with them.

    def padded(self, ids, mask, attended=False, counted=False, combined="and", blind=False):
        positions = torch.arange(ids.shape[1]).expand_as(ids) if counted else (mask.cumsum(-1) - 1).clamp(min=0)
        pads = (mask == 0)[:, None, None, :]
        if not blind:  # a pad sees itself, so that no row of the softmax is empty
            pads = pads & ~torch.eye(ids.shape[1]).bool()
        if combined == "or":  # visible if either allows it
            hidden = future(ids.shape[1]) & pads
            return self(ids, also_hidden=hidden, positions=positions, masks=[lambda n: torch.zeros(n, n).bool()] * 2)
        return self(ids, also_hidden=None if attended else pads, positions=positions)

    def packed(self, ids, segments, seen=False, unmasked=False):
        other = (segments[:, None, :, None] != segments[:, None, None, :])
        masks = [lambda n: torch.zeros(n, n).bool()] * 2 if unmasked else None
        return self(ids, also_hidden=None if seen else other, masks=masks)

    def step(self, ids, reset, stale=False, restarts=False, corner=False, short=False):
        if reset and not (stale and self.cache):
            self.cache, self.fed = None, 0
        n, start = len(ids), 0 if restarts else self.fed % self.context
        if start + n > self.context:
            raise ValueError("past the context")
        x, kept = self.embed(ids[None], torch.arange(start, start + n)), []
        total = n + (self.cache[0][0].shape[2] if self.cache else 0)
        hidden = future(total)[:n] if corner else future(total)[-n:]
        hidden = torch.cat([torch.zeros(n, total - n).bool(), future(n)], 1) if not corner else hidden
        for layer in range(len(self.masks)):
            x, past = self.block(layer, x, hidden, past=self.cache[layer] if self.cache else None)
            kept.append(past)
        if short:  # one key fewer than the context is kept
            kept = [tuple(y[:, :, -(self.context - 2):] for y in past) for past in kept]
        self.cache, self.fed = kept, self.fed + n
        return self.head(x)

    def loss(self, ids, shift=1, rolled=False):
        logits = self(ids)
        if rolled:
            return F.cross_entropy(logits[0], ids[0].roll(-1))
        n = ids.shape[1]
        at = slice(max(0, -shift), min(n, n - shift))
        return F.cross_entropy(logits[0, at], ids[0, max(0, shift):n + min(0, shift)])


# ---- Layers that mix over time ----


class Rectified(nn.Module):
    """A function of (B,T,C) with weights of its own."""

    def __init__(self, function, *layers):
        super().__init__()
        self.function, self.layers = function, nn.ModuleList(layers)

    def forward(self, x):
        return self.function(x, *self.layers)


def mean_pooling(x):
    return x.mean(1, keepdim=True)


def max_pooling(x):
    return x.max(1, keepdim=True).values


def fourier(x):
    return torch.fft.fft2(x).real


def norm_over_time(x):
    return F.layer_norm(x, x.shape[1:])


def instance_norm(x):
    return F.instance_norm(x.transpose(1, 2)).transpose(1, 2) if x.shape[1] > 1 else x


def shifted_left(x):
    return x.roll(-1, 1)


def scale_of_the_sequence(x):
    return x / x.abs().amax(1, keepdim=True)


def sum_from_the_right(x):
    return x.flip(1).cumsum(1).flip(1)


# The same sums by other additions: of NumPy's (B,T,C), with a kernel (T,C).


def fft_convolution(x, kernel):
    n, x, kernel = len(kernel), torch.from_numpy(x), torch.from_numpy(kernel)
    product = torch.fft.rfft(x, 2 * n, dim=1) * torch.fft.rfft(kernel, 2 * n, dim=0)
    return torch.fft.irfft(product, 2 * n, dim=1)[:, :n].numpy()


def scan_by_doubling(x, kernel):
    x, step = x.copy(), 1
    while step < x.shape[1]:
        x[:, step:] = x[:, step:] + x[:, :-step]
        step *= 2
    return x


def sum_less_the_rest(x, kernel):
    return x.sum(1, keepdims=True) - x[:, ::-1].cumsum(1)[:, ::-1] + x


def log_scan(x, kernel):
    largest = x.max(1, keepdims=True)
    return np.log(np.exp(x - largest).cumsum(1)) + largest


def largest_of_all(x, kernel):
    scores = x @ x[..., ::-1].swapaxes(1, 2) / 4
    weights = np.exp(scores - scores.max(-1, keepdims=True)) * np.tri(len(kernel))
    return weights / weights.sum(-1, keepdims=True) @ x


def cumulative_mean(x):
    return x.cumsum(1) / torch.arange(1, x.shape[1] + 1)[None, :, None]


def same_convolution():
    return Rectified(lambda x, conv: conv(x.transpose(1, 2)).transpose(1, 2), nn.Conv1d(C, C, 3, padding=1))


def left_padded_convolution():
    return Rectified(lambda x, conv: conv(F.pad(x.transpose(1, 2), (2, 0))).transpose(1, 2), nn.Conv1d(C, C, 3))


def expert_choice():
    """Each expert takes its best quarter of the sequence: a later token displaces an earlier one."""

    def route(x, gate, one, two):
        y, scores = torch.zeros_like(x), gate(x).softmax(-1)
        for e, expert in enumerate((one, two)):
            taken = scores[..., e].topk(max(1, x.shape[1] // 4), 1).indices[..., None].expand(-1, -1, C)
            y = y.scatter_add(1, taken, expert(x).gather(1, taken))
        return y

    return Rectified(route, nn.Linear(C, 2), nn.Linear(C, C), nn.Linear(C, C))


def token_choice():
    return Rectified(lambda x, gate, one, two: torch.where(gate(x) > 0, one(x), two(x)), nn.Linear(C, 1),
                     nn.Linear(C, C), nn.Linear(C, C))


def shared_capacity():
    """An expert with room for so many tokens of the whole batch, first come, first served."""

    def route(x, gate, expert):
        flat = x.reshape(-1, C)
        wanted = gate(flat)[:, 0] > 0
        taken = wanted & (wanted.cumsum(0) <= len(flat) // 4)
        return (expert(flat) * taken[:, None]).view_as(x)

    return Rectified(route, nn.Linear(C, 1), nn.Linear(C, C))


def batch_norm():
    return Rectified(lambda x, norm: norm(x.transpose(1, 2)).transpose(1, 2), nn.BatchNorm1d(C))


def whole_batch_scale(x):
    return x / x.std()


def recurrent(kind, **options):
    return Rectified(lambda x, net: net(x)[0][..., :C], kind(C, C, **options))


class Only(nn.Module):
    """An embedding, one layer, a head: what the layer does is all there is."""

    def __init__(self, mix, vocab=V, head=1.0):
        super().__init__()
        torch.manual_seed(4)
        self.wte, self.mix, self.head = nn.Embedding(vocab, C), mix, nn.Linear(C, vocab)
        with torch.no_grad():
            self.head.weight *= head
            self.head.bias *= head
        self.eval()

    def forward(self, ids):
        return self.head(self.mix(self.wte(ids)))


class Peeking(nn.Module):
    """An honest decoder, whose logits move where when(a token, the next token) is true."""

    def __init__(self, when, **options):
        super().__init__()
        self.when, self.model = when, Decoder(**options)

    def forward(self, ids):
        y = self.model(ids)
        y[:, :-1] += self.when(ids[:, :-1], ids[:, 1:])[..., None].to(y.dtype)
        return y


# ---- NumPy ----


class NumpyAttention:
    def __init__(self, dtype=np.float64, fill=-np.inf, leak=0.0):
        rng = np.random.default_rng(5)
        self.fill, self.leak = fill, leak
        self.wte, self.wpe = rng.normal(size=(V, C)).astype(dtype), rng.normal(size=(T, C)).astype(dtype)
        self.q, self.k, self.v = (rng.normal(size=(C, C)).astype(dtype) / 4 for _ in range(3))

    def __call__(self, ids):
        x = self.wte[ids] + self.wpe[:ids.shape[1]]
        scores = (x @ self.q) @ (x @ self.k).swapaxes(-1, -2)
        scores = np.where(np.triu(np.ones(scores.shape[-2:]), 1) > 0, self.fill, scores)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        y = (x + weights / weights.sum(-1, keepdims=True) @ (x @ self.v)) @ self.wte.T
        if self.leak:
            y[:, :-1] += (self.leak * np.eye(V))[ids[:, 1:]]
        return y
