#!/usr/bin/env python3
"""The entropy of a hidden word of a grammar given all other words of its window, and given those before it, in nats.

Written from the definitions, apart from the C code: no lists of beliefs. Without WINDOWS every sequence of words is
enumerated, which is exact and only for short windows; with it, so many windows are drawn. Nothing but Python is needed.

    python3 tests/reference/hidden_entropy.py datasets/data/frases.csv T [WINDOWS [SEED]]
"""
import csv
import math
import random
import sys
from collections import namedtuple

Arc = namedtuple("Arc", "state word next p")


def load(path):
    with open(path, encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    states = list(dict.fromkeys(row["state"] for row in rows))
    words = list(dict.fromkeys(row["word"] for row in rows))
    total = [sum(float(r["weight"]) for r in rows if r["state"] == state) for state in states]
    arcs = []
    for row in rows:
        s = states.index(row["state"])
        arcs.append(Arc(s, words.index(row["word"]), states.index(row["next"]), float(row["weight"]) / total[s]))
    return len(states), len(words), arcs


def stationary(n, arcs):
    """Where a window begins: the share of all words that are said in each state."""
    share = [1 / n] * n
    for _ in range(5000):  # half a step at a time, since the sentences may have a period
        after = [x / 2 for x in share]
        for a in arcs:
            after[a.next] += a.p * share[a.state] / 2
        share = after
    return share


def normal(x):
    return [v / sum(x) for v in x]


def entropy(p):
    return -sum(x * math.log(x) for x in p if x > 0)


def forward(belief, word, arcs):
    after = [0.0] * len(belief)
    for a in arcs:
        if a.word == word:
            after[a.next] += belief[a.state] * a.p
    return after


def backward(ahead, word, arcs):
    before = [0.0] * len(ahead)
    for a in arcs:
        if a.word == word:
            before[a.state] += a.p * ahead[a.next]
    return before


def of_window(window, start, n_words, arcs):
    """Of each position: the entropy given both sides, and given the left."""
    seen, ahead = [start], [[1.0] * len(start)]
    for word in window:
        seen.append(normal(forward(seen[-1], word, arcs)))
    for word in reversed(window):
        ahead.insert(0, normal(backward(ahead[0], word, arcs)))
    both, left = [], []
    for t in range(len(window)):
        given_both, given_left = [0.0] * n_words, [0.0] * n_words
        for a in arcs:
            given_left[a.word] += seen[t][a.state] * a.p
            given_both[a.word] += seen[t][a.state] * a.p * ahead[t + 1][a.next]
        both.append(entropy(normal(given_both)))
        left.append(entropy(normal(given_left)))
    return both, left


def all_windows(T, start, n_words, arcs):
    """Every window of T words, with its probability."""
    stack = [([], start)]
    while stack:
        window, belief = stack.pop()
        if len(window) == T:
            yield sum(belief), window
            continue
        for word in range(n_words):
            after = forward(belief, word, arcs)
            if sum(after) > 0:
                stack.append((window + [word], after))


def drawn_windows(T, start, n_windows, seed, arcs):
    rng = random.Random(seed)
    out = [[a for a in arcs if a.state == s] for s in range(len(start))]
    for _ in range(n_windows):
        state, window = rng.choices(range(len(start)), start)[0], []
        for _ in range(T):
            arc = rng.choices(out[state], [a.p for a in out[state]])[0]
            window.append(arc.word)
            state = arc.next
        yield 1 / n_windows, window


def main():
    path, T, *rest = sys.argv[1:]
    T, n_windows, seed = int(T), int(rest[0]) if rest else 0, int(rest[1]) if len(rest) > 1 else 1
    n_states, n_words, arcs = load(path)
    start = stationary(n_states, arcs)
    windows = drawn_windows(T, start, n_windows, seed, arcs) if n_windows else all_windows(T, start, n_words, arcs)
    mean, square = [[0.0] * T, [0.0] * T], [0.0, 0.0]
    for share, window in windows:
        for side, entropies in enumerate(of_window(window, start, n_words, arcs)):
            square[side] += share * (sum(entropies) / T) ** 2
            for t in range(T):
                mean[side][t] += share * entropies[t]
    for side, name in enumerate(["given both sides", "given the left  "]):
        average = sum(mean[side]) / T
        error = math.sqrt(max(0, square[side] - average**2) / n_windows) if n_windows else 0
        print(f"{name} {average:.4f}" + (f" ± {error:.4f}" if n_windows else " exactly"))
        print("    by position " + " ".join(f"{x:.4f}" for x in mean[side]))


if __name__ == "__main__":
    main()
