#!/usr/bin/env python3
"""What the best possible predictor of a grammar achieves, in nats: the numbers that tests/datasets/test_grammar.c holds.

Written from the definitions, apart from the C code: floor[t] = H(x[t+1] | x[0..t]) of the stationary process.
Short contexts are checked by a second way, differences of block entropies over all strings.

    python3 tests/reference/grammar_numbers.py datasets/data/frases.csv [T]
"""
import csv
import itertools
import sys

import numpy as np


def load(path):
    """One matrix per word: M[s, s'] = P(word, s' | s)."""
    with open(path, encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    states = list(dict.fromkeys(row["state"] for row in rows))
    words = list(dict.fromkeys(row["word"] for row in rows))
    matrices = np.zeros((len(words), len(states), len(states)))
    for row in rows:
        matrices[words.index(row["word"]), states.index(row["state"]), states.index(row["next"])] += float(row["weight"])
    return states, words, matrices / matrices.sum(axis=(0, 2))[None, :, None]


def stationary(matrices):
    transition = matrices.sum(axis=0)
    n = len(transition)
    equations = np.vstack([transition.T - np.eye(n), np.ones(n)])
    return np.linalg.lstsq(equations, np.append(np.zeros(n), 1), rcond=None)[0]


def entropy(p):
    p = p[p > 0]
    return -(p * np.log(p)).sum()


def floors(matrices, n):
    """The distribution over beliefs, carried forward word by word."""
    beliefs = {(): (1.0, stationary(matrices))}
    result = []
    for _ in range(n):
        after = {}
        for share, belief in beliefs.values():
            for word in matrices:
                joint = belief @ word
                p = joint.sum()
                if p <= 1e-15:
                    continue
                key = tuple(np.round(joint / p, 11))
                after[key] = (after.get(key, (0.0, None))[0] + share * p, joint / p)
        beliefs = after
        result.append(sum(share * entropy(np.einsum("s,wsn->w", belief, matrices)) for share, belief in beliefs.values()))
    return np.array(result)


def block_entropy(matrices, length):
    probabilities = [stationary(matrices)]
    for _ in range(length):
        probabilities = [v @ word for v, word in itertools.product(probabilities, matrices)]
        probabilities = [v for v in probabilities if v.sum() > 1e-15]
    return entropy(np.array([v.sum() for v in probabilities]))


def main():
    path, T = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 32
    states, words, matrices = load(path)
    floor = floors(matrices, max(T, 400))
    for t in range(3):
        assert abs(block_entropy(matrices, t + 2) - block_entropy(matrices, t + 1) - floor[t]) < 1e-9
    print(f"{path}: {len(states)} states, {len(words)} words, {int((matrices > 0).sum())} rows")
    print(f"entropy rate        {floor[-1]:.12f}")
    print(f"mean floor, T = {T:<4d}{floor[:T].mean():.12f}")
    for t in range(4):
        print(f"floor[{t}]            {floor[t]:.12f}")


if __name__ == "__main__":
    main()
