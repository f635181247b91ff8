"""One layer of attention in PyTorch, for `maskgrad audit -- python3 pytorch_attention.py`. `--broken` forgets the mask."""

import os
import sys

import torch
from torch.nn import functional as F

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from maskgrad_audit import serve

VOCAB, CONTEXT, WIDTH = 65, 64, 32


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = torch.nn.Embedding(VOCAB, WIDTH), torch.nn.Embedding(CONTEXT, WIDTH)
        self.qkv, self.head = torch.nn.Linear(WIDTH, 3 * WIDTH), torch.nn.Linear(WIDTH, VOCAB)
        self.dropout = torch.nn.Dropout(0.1)

    def forward(self, ids):
        T = ids.shape[1]
        x = self.dropout(self.wte(ids) + self.wpe(torch.arange(T)))
        q, k, v = self.qkv(x).split(WIDTH, dim=-1)
        scores = q @ k.transpose(-2, -1) / WIDTH**0.5
        if "--broken" not in sys.argv:
            scores = scores.masked_fill(torch.ones(T, T).triu(1).bool(), float("-inf"))
        return self.head(x + scores.softmax(-1) @ v)

    def loss(self, ids):
        return F.cross_entropy(self(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())


torch.manual_seed(1)
model = Model()


def in_mode(training, call):
    def ask(ids):
        model.train(training)
        with torch.no_grad():
            return call(torch.from_numpy(ids))
    return ask


serve(in_mode(False, model), vocab=VOCAB, context=CONTEXT, train=in_mode(True, model), loss=in_mode(False, model.loss))
