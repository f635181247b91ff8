# compare, of many runs: groups, their statistics, names as they were typed, tidy files, and 80 columns.
program=$1
. "$(dirname "$0")/../tools/lab.bash"
data=$2/datasets/data/frases.csv
ok() { "$@" >out 2>err || fail "$*: $(cat out err)"; }

ok "$program" sweep --set mask=causal,none --set lr=3e-05,3e-4 --seeds 1..3 --out-dir S -- --data "$data" --grammar-size 2000 \
    --n-layer 1 --n-head 2 --n-embd 16 --block-size 8 --batch-size 4 --eval-iters 1 --eval-interval 5 --max-iters 12
sed -i 's/"log_interval": 10/"log_interval": 7/' S/*seed=2/run.json
ok "$program" compare S --out-dir pictures --csv all.csv --json all.json --to-loss 100
grep -q '^12 runs in 4 groups' out || fail "the groups: $(cat out)"
grep -q '^mask=none lr=3e-05  *3  ' out || fail "as typed: $(cat out)"
! grep -q 'min-lr\|log-interval\|lookahead\|e-05 .*99' out || fail "what does not matter: $(cat out)"
[ "$(wc -L <out)" -le 80 ] || fail "wider than 80 columns: $(cat out)"
[ -e pictures/final-loss.csv ] && [ "$(grep -c ',yes,' pictures/final-loss.csv)" = 4 ] || fail "the heat map"
head -1 pictures/loss.csv | grep -qx 'series,x,y,spread' || fail "the bands: $(head -3 pictures/loss.csv)"
[ "$(head -1 all.csv)" = run,mask,lr,seed,step,split,loss,lr_at_step,grad_norm,tokens,seconds ] || fail "the CSV: $(head -1 all.csv)"
python3 - S all.csv all.json out <<'PY' || fail "the numbers"
import csv, glob, json, math, re, statistics, sys
folder, tidy, listed, out = sys.argv[1:]
logs = {path.rsplit("/", 1)[0]: list(csv.DictReader(open(path))) for path in glob.glob(folder + "/*/log.csv")}
rows = list(csv.reader(open(tidy)))[1:]
assert len(rows) == sum(map(len, logs.values())), len(rows)
objects = json.load(open(listed))
assert len(objects) == len(rows)
for row, o in zip(rows, objects):
    assert [row[0], row[1], float(row[2]), int(row[3]), int(row[4]), row[5]] == [
        o["run"], o["mask"], o["lr"], o["seed"], o["step"], o["split"]], (row, o)
    assert (o["grad_norm"] is None) == (row[8] == "") and float(row[6]) == o["loss"]
# Means, standard deviations and errors as the standard library has them; the lowest first.
found = re.findall(r"^mask=(\S+) lr=(\S+) +3 +(\S+) +(\S+) +(\S+)$", open(out).read(), re.M)
assert len(found) == 12, found  # three tables of four groups
for number, (mask, lr, mean, sd, se) in enumerate(found):
    runs = [f"{folder}/mask={mask},lr={'3e-4' if lr == '0.0003' else lr},seed={seed}" for seed in (1, 2, 3)]
    finals = [float([r for r in logs[run] if r["split"] == "val"][-1]["loss"]) for run in runs]
    lasts = [float(open(run + "/position.csv").read().split()[-1].split(",")[1]) for run in runs]
    firsts = [float([r for r in logs[run] if r["split"] == "val"][0]["seconds"]) for run in runs]
    values = (finals, lasts, firsts)[number // 4]
    wanted = statistics.mean(values), statistics.stdev(values), statistics.stdev(values) / math.sqrt(3)
    assert all(abs(float(a) - b) < 6e-5 for a, b in zip((mean, sd, se), wanted)), (number, mask, lr, wanted)
means = [float(f[2]) for f in found[:4]]
assert means == sorted(means), means
PY
# --by pools the rest, and says so; of two groups the difference is tested.
ok "$program" compare S --by mask --out-dir pictures
grep -q '^The runs of a group also differ in lr' out && grep -q '^mask=none  *6  ' out || fail "--by: $(cat out)"
tr '\n' ' ' <out | grep -q '95 % interval -[0-9.]* to [0-9.]* (Welch' || fail "no interval: $(cat out)"
# Few runs are shown one by one as well, and their seeds are settings that differ.
ok "$program" compare S/mask=none,lr=3e-05,seed=[12] --out-dir pictures
grep -q '^--seed$' out && grep -q '^Against S/' out && grep -q '^all runs  *2  ' out || fail "two seeds: $(cat out)"
# One setting that differs makes a line with error bars.
ok "$program" compare S/mask=none* --out-dir one
head -1 one/final-loss.csv | grep -qx 'series,x,y,spread' || fail "error bars: $(cat one/final-loss.csv)"
for wrong in "--by foo" "--by" "--by out-dir"; do
    # shellcheck disable=SC2086
    "$program" compare S $wrong >out 2>err
    [ $? = 2 ] || fail "$wrong: $(cat out err)"
done
"$program" compare S/mask=none,lr=3e-05,seed=1 >out 2>err
[ $? = 2 ] && grep -q 'nothing to compare' err || fail "one run: $(cat out err)"
# A run without a step in a folder of runs is left out, and counted; so is a measure that a run does not have.
mkdir S/new && cp S/mask=none,lr=3e-05,seed=1/run.json S/new && head -1 S/mask=none,lr=3e-05,seed=1/log.csv >S/new/log.csv
rm S/mask=none,lr=3e-05,seed=1/position.csv
ok "$program" compare S --out-dir pictures
grep -q '^1 run without a step yet' out && grep -q '^mask=none lr=3e-05  *2/3  ' out || fail "what is missing: $(cat out)"
# An unfinished run has no final numbers: it is named, and n says what was used.
mkdir U && cp -r S/mask=causal,lr=3e-05,seed=[123] U
sed -i '/^9,train/,$d' U/mask=causal,lr=3e-05,seed=2/log.csv
ok "$program" compare U --out-dir pictures --to-loss 100
[ "$(grep -c '^all runs  *2/3  ' out)" = 2 ] && grep -q '^all runs  *3  ' out || fail "n of what is finished: $(cat out)"
tr '\n' ' ' <out | grep -q '1 run is not finished: U/mask=causal,lr=3e-05,seed=2 (step 9 of *12)' || fail "unfinished: $(cat out)"
# A folder counts once, under whatever name and however often it is given.
ln -s "$PWD/S/mask=causal,lr=3e-05,seed=1" linked
one=S/mask=causal,lr=3e-05,seed=1
ok "$program" compare $one linked --out-dir pictures
! grep -q '^all runs' out && grep -q '^1 run given again, such as linked: each folder counts once' out || fail "twice: $(cat out)"
ok "$program" compare $one linked S/mask=causal,lr=3e-05,seed=2 $one/ --out-dir pictures --csv twice.csv
grep -q '^all runs  *2  ' out && [ "$(tail -n +2 twice.csv | cut -d'"' -f2 | sort -u | wc -l)" = 2 ] || fail "a sample of two: $(cat out)"
# The page: groups and runs by their loss, the lowest first, the settings that differ, and curves with their numbers.
ok "$program" compare S --html --out-dir page
grep -q 'The page: page/report.html' out || fail "no page: $(cat out)"
cut -d, -f3 page/groups.csv | tail -n +2 | sort -cg || fail "groups out of order: $(cat page/groups.csv)"
grep -q '^"*S/mask=none,lr=3e-05,seed=2"*,mask=none lr=3e-05 seed=2,' page/runs.csv || fail "what differs: $(cat page/runs.csv)"
[ "$(grep -c 'class="numbers"' page/report.html)" = "$(grep -c '^<div class="paper">' page/report.html)" ] || fail "a figure without its numbers"
grep -q '<p class="over">maskgrad compare</p>' page/report.html && ! grep -q 'class="verdicts"' page/report.html || fail "a verdict on nothing"
