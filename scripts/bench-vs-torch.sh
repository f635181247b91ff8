#!/usr/bin/env bash
# maskgrad bench and the same models in PyTorch, in turn, and the ratio of their tokens/s. Needs Debian's python3-torch
# (scripts/install-deps.sh --tests installs it). The result is in docs/performance.md.
#
#     scripts/bench-vs-torch.sh [ROUNDS [CONFIG...]]    3 rounds of toy, char and baby by default; medians are printed
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-3}
shift $(($# > 0))
configs=${*:-toy char baby}
python=/usr/bin/python3
"$python" -c 'import torch' 2>/dev/null || {
    echo "This needs PyTorch for $python: scripts/install-deps.sh --tests installs Debian's python3-torch." >&2
    exit 1
}
cmake --preset release >/dev/null
cmake --build --preset release --target maskgrad | tail -n 1
rows=$(mktemp -d)
trap 'rm -rf "$rows"' EXIT
for round in $(seq "$rounds"); do
    for threads in 1 2; do
        for config in $configs; do
            echo "round $round of $rounds: $config, $threads threads" >&2
            build/release/maskgrad bench --config "$config" --threads "$threads" --csv "$rows/ours" >/dev/null
            tail -n +2 "$rows/ours" >>"$rows/maskgrad"
            OMP_NUM_THREADS=$threads "$python" scripts/bench_torch.py "$config" "$threads" >>"$rows/torch"
        done
    done
done
"$python" - "$rows" <<'PY'
import collections, csv, statistics, sys

def read(name, value):
    table = collections.defaultdict(list)
    for row in csv.reader(open(f"{sys.argv[1]}/{name}")):
        table[tuple(row[:3])].append(value(row))
    return {key: statistics.median(values) for key, values in table.items()}

ours, torch = read("maskgrad", lambda r: float(r[4])), read("torch", lambda r: float(r[3]))
share = read("maskgrad", lambda r: 100 * float(r[7]))
print("| model | threads | phase | maskgrad tokens/s | PyTorch tokens/s | ratio | share of sgemm peak |")
print("|---|---|---|---|---|---|---|")
for key in ours:
    if key not in torch: continue  # nothing like it is measured there
    peak = f"{share[key]:.0f}%" if key[2] == "train" else ""
    print(f"| {key[0]} | {key[1]} | {key[2]} | {ours[key]:,.0f} | {torch[key]:,.0f} | {ours[key] / torch[key]:.2f} | {peak} |")
PY
