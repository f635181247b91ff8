#!/usr/bin/env bash
# The three lines of docs/run-folder.md that bring log.csv into TensorBoard, run as they stand there: on a stand-in for its
# writer, which keeps what it is given, and on TensorBoard itself where it is installed.
set -u
maskgrad=$1 source=$2
. "$source/tests/tools/lab.bash"
python=/usr/bin/python3
"$python" -c pass 2>/dev/null || { echo "skipped: $python is missing (apt-get install python3)"; exit 77; }
"$maskgrad" train --data "$source/datasets/data/frases.csv" --grammar-size 2000 --n-layer 1 --n-head 2 --n-embd 16 --block-size 8 \
    --max-iters 6 --eval-interval 3 --eval-iters 1 --out-dir runs/masked >out 2>&1 || fail "train: $(tail -n 1 out)"
sed -n '/^```python$/,/^```$/p' "$source/docs/run-folder.md" | grep -v '^```' | sed -n '/tensorboard/,$p' >lines.py
[ "$(wc -l <lines.py)" = 3 ] || fail "not three lines: $(cat lines.py)"

mkdir -p stub/torch/utils && touch stub/torch/__init__.py stub/torch/utils/__init__.py
cat >stub/torch/utils/tensorboard.py <<'END'
class SummaryWriter:
    def __init__(self, folder): self.rows = []
    def __enter__(self): return self
    def add_scalar(self, name, value, step): self.rows.append("%s,%d,%.9g" % (name, step, value))
    def __exit__(self, *what): open("seen", "w").write("\n".join(self.rows) + "\n")
END
PYTHONPATH=stub "$python" lines.py || fail "the lines do not run"
awk -F, 'NR > 1 { printf "loss/%s,%d,%.9g\n", $2, $1, $3 }' runs/masked/log.csv >expected
[ "$(wc -l <expected)" -eq 9 ] && cmp expected seen || fail "other numbers than those of log.csv"

if ! "$python" -c 'import torch.utils.tensorboard' 2>/dev/null; then
    echo "skipped: $python has no tensorboard (pip install tensorboard torch); the lines were run on a stand-in"
    exit 77
fi
"$python" lines.py || fail "TensorBoard does not take the lines"
ls runs/masked/events.out.tfevents.* >/dev/null || fail "no event file"
exit 0
