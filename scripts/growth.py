#!/usr/bin/env python3
"""How a training step grows with context, width, layers and batch: time, memory, and the exponents of both.

    scripts/growth.py [OUT_DIR]     default runs/growth; needs a release build and gnuplot

Each row varies one size of a base model. The exponent is the slope of a straight line through log(size), log(value); the
theoretical one is the exponent of the useful floating-point operations, which `maskgrad bench` counts for the same sizes. The table
and the picture of docs/performance.md come from here.
"""
import csv
import math
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BASE = {"batch-size": 4, "block-size": 128, "n-layer": 2, "n-head": 4, "n-embd": 128}
VARIED = {
    "block-size": [32, 64, 128, 256, 512, 1024],
    "n-embd": [32, 64, 128, 256, 512],
    "n-layer": [1, 2, 4, 8],
    "batch-size": [1, 2, 4, 8, 16, 32],
}
NAMES = {"block-size": "context", "n-embd": "width", "n-layer": "layers", "batch-size": "batch"}


def measure(sizes, out):
    """Milliseconds per step, useful operations per step, megabytes of activations."""
    flags = [f"--{name}={value}" for name, value in sizes.items()]
    text = subprocess.run([ROOT / "build/release/maskgrad", "bench", f"--csv={out}/bench.csv", *flags], check=True,
                          capture_output=True, text=True).stdout
    row = next(r for r in csv.DictReader(open(f"{out}/bench.csv")) if r["phase"] == "train")
    milliseconds = float(row["ms_per_step"])
    activations = float(re.search(r"activations\s+([\d.]+) MB", text).group(1))
    return milliseconds, float(row["gflops"]) * 1e6 * milliseconds, activations


def slope(x, y):
    x, y = [math.log(v) for v in x], [math.log(v) for v in y]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y)) / sum((a - mean_x) ** 2 for a in x)


def draw(out, rows):
    """Each quantity with the line that theory expects, through the last point: the slope of the operations for time, 1 for memory."""
    plots = []
    for name, measured in rows.items():
        sizes, values = [value for value, _ in measured], list(zip(*(m for _, m in measured)))
        with open(f"{out}/{NAMES[name]}.dat", "w") as file:
            for size, milliseconds, operations, megabytes in zip(sizes, *values):
                file.write(f"{size} {milliseconds} {megabytes} {operations / values[1][-1] * values[0][-1]} "
                           f"{size / sizes[-1] * values[2][-1]}\n")
        for column, quantity, unit, theory in ((2, "time", "ms per step", "operations"), (3, "memory", "MB", "linear")):
            expected = slope(sizes, values[1]) if column == 2 else 1
            measured_slope = slope(sizes, values[0] if column == 2 else values[2])
            plots.append(f"set ylabel '{unit}'; set xlabel '{NAMES[name]}'; set xtics ({','.join(map(str, sizes))}); "
                         f"set title '{quantity}: {measured_slope:.2f}, {theory}: {expected:.2f}'; "
                         f"set xrange [{sizes[0]} / 1.2:{sizes[-1]} * 1.2]; "
                         f"plot '{out}/{NAMES[name]}.dat' using 1:{column + 2} with lines lw 1 dt 2 lc rgb '#808080' notitle, "
                         f"'' using 1:{column} with linespoints lw 2 pt 7 "
                         f"lc rgb '{'#0072B2' if column == 2 else '#009E73'}' notitle")
    script = (f"set terminal pngcairo size 1600,800 font ',13'; set output '{out}/growth.png'; set multiplot layout 2,4 "
              "columnsfirst; set logscale xy; set grid; set offsets graph 0, graph 0, graph 0.05, graph 0.05; " + "; ".join(plots))
    subprocess.run(["gnuplot"], input=script, text=True, check=True)


def main():
    out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "runs/growth")
    out.mkdir(parents=True, exist_ok=True)
    rows = {name: [(value, measure({**BASE, name: value}, out)) for value in values] for name, values in VARIED.items()}
    print("| varied | from | to | ms per step | exponent of time | of the operations | MB of activations | exponent of memory |")
    print("|---|---|---|---|---|---|---|---|")
    for name, measured in rows.items():
        sizes = [value for value, _ in measured]
        milliseconds, operations, megabytes = zip(*(m for _, m in measured))
        print(f"| {NAMES[name]} | {sizes[0]} | {sizes[-1]} | {milliseconds[0]:.2f} … {milliseconds[-1]:.1f} | "
              f"{slope(sizes, milliseconds):.2f} | {slope(sizes, operations):.2f} | {megabytes[0]:.1f} … {megabytes[-1]:.1f} | "
              f"{slope(sizes, megabytes):.2f} |")
    draw(out, rows)
    print(f"\nThe picture is {out}/growth.png")


main()
