#!/usr/bin/env python3
"""The models of `maskgrad bench` in PyTorch on the CPU: the same layers, sizes, optimizer and clipping, timed the same way.

    bench_torch.py toy|char|baby|gpt2 THREADS [STEPS]

Prints one CSV row per phase: config,threads,phase,tokens_per_s. Needs Debian's python3-torch.
"""
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

SIZES = {"toy": (16, 32, 2, 4, 64, 28), "char": (12, 64, 4, 4, 128, 65), "baby": (4, 256, 6, 6, 384, 65),
         "gpt2": (1, 512, 12, 12, 768, 50257)}


class Block(nn.Module):
    """GPT-2's block: attention and MLP, each after a layer norm and added to its input."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attend(self, x, past, hidden):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=2))
        if past is not None:
            if past:
                k, v = torch.cat((past[0], k), dim=2), torch.cat((past[1], v), dim=2)
            past[:] = (k, v)
        scores = q @ k.transpose(2, 3) * (width // self.heads) ** -0.5
        if length > 1:
            scores = scores.masked_fill(hidden[:length, :length], float("-inf"))
        return self.out((scores.softmax(dim=3) @ v).transpose(1, 2).reshape(batch, length, width))

    def forward(self, x, past, hidden):
        x = x + self.attend(self.ln_1(x), past, hidden)
        return x + self.down(F.gelu(self.up(self.ln_2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, context, layers, heads, width, vocabulary):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.register_buffer("hidden", torch.ones(context, context, dtype=torch.bool).triu(1))
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, ids, pasts=None, position=0):
        x = self.tokens(ids) + self.places.weight[position : position + ids.shape[1]]
        for i, block in enumerate(self.blocks):
            x = block(x, pasts[i] if pasts else None, self.hidden)
        return self.norm(x) @ self.tokens.weight.T


def train(model, batch, context, vocabulary, steps):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1)
    ids, targets = torch.randint(vocabulary, (2, batch, context))
    seconds = []
    for i in range(steps + 3):
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(ids).flatten(0, 1), targets.flatten()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if i >= 3:
            seconds.append(time.perf_counter() - begin)
    return batch * context / statistics.median(seconds)


@torch.no_grad()
def generate(model, tokens, cached):
    best = float("inf")
    for _ in range(3 if cached else 1):
        ids, pasts, begin = torch.zeros(1, 1, dtype=torch.long), [[] for _ in model.blocks], time.perf_counter()
        for position in range(tokens):
            logits = model(ids[:, -1:], pasts, position) if cached else model(ids)
            ids = torch.cat((ids, logits[:, -1:].argmax(dim=2)), dim=1)
        best = min(best, time.perf_counter() - begin)
    return tokens / best


def main():
    name, threads = sys.argv[1], int(sys.argv[2])
    batch, context, layers, heads, width, vocabulary = SIZES[name]
    steps = int(sys.argv[3]) if len(sys.argv) > 3 else {"toy": 200, "char": 60, "baby": 6, "gpt2": 2}[name]
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model = GPT(context, layers, heads, width, vocabulary)
    print(f"{name},{threads},train,{train(model, batch, context, vocabulary, steps):.1f}")
    tokens = min(context - 1, 63 if name == "gpt2" else 255)
    print(f"{name},{threads},generate_cached,{generate(model, tokens, True):.1f}")
    print(f"{name},{threads},generate_uncached,{generate(model, tokens, False):.1f}")


main()
