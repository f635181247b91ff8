# sweep: what it refuses, what it runs, and that a sweep that is killed and started again has the bits of single runs.
program=$1
. "$(dirname "$0")/../tools/lab.bash"
data=$2/datasets/data/frases.csv
shared=(--data "$data" --grammar-size 2000 --n-layer 1 --n-head 2 --n-embd 16 --block-size 8 --batch-size 4 --eval-iters 1
    --eval-interval 20 --threads 1)
without_seconds() { cut -d, -f1-6 "$1/log.csv"; }

status() { # STATUS COMMAND...
    local wanted=$1 found=0
    shift
    "$@" >out 2>err || found=$?
    [ "$found" = "$wanted" ] || fail "status $found, not $wanted, of $*: $(cat out err)"
}
refuses() { # SENTENCE SWEEP-FLAGS...
    local sentence=$1
    shift
    status 2 "$program" sweep "$@" --out-dir refused -- "${shared[@]}" --max-iters 5
    grep -qF -- "$sentence" err || fail "$*: $(cat err)"
    [ ! -e refused ] || fail "$* left a folder"
}

# ---- What is refused, before anything is made ----
refuses "'foo' is not a flag of train" --set foo=1,2
refuses "'' is not a flag of train" --set =1,2
refuses "'masc' is not a flag of train: did you mean mask?" --set masc=causal,none
refuses "'n_layers' is not a flag of train: did you mean n-layer?" --zip n_layers=1,2
refuses "'device' is not a flag of train: everything runs on the processor" --set device=cuda
refuses "lr has no values" --set lr=
refuses "lr has no values" --set lr
refuses "--lr has an empty value" --set lr=1e-3,,2e-3
refuses "--lr has an empty value" --zip lr=1e-3,
refuses "'-1'" --set lr=1e-3,-1
refuses "--lr has 2 values and --mask has 3" --zip lr=1e-3,2e-3 --zip mask=causal,none,window:3
refuses "--lr is swept twice" --set lr=1e-3 --set learning_rate=2e-3
refuses "--seed is swept twice" --set seed=1 --seeds 1..3
refuses "--mask and --lookahead set the same thing" --set mask=none --zip lookahead=1
refuses "lr=1e-3 and lr=0.001 are the same run" --set lr=1e-3,0.001
refuses "--n-head is swept, and --n-head after --" --set n-head=1,2
refuses "--out-dir is the sweep's own" --set out-dir=a,b
refuses "--config has no place in a sweep" --set config=a,b
refuses "--seeds takes whole numbers and ranges" --seeds 3..1
refuses "more than 100000 runs" --seeds 1..1000000000
refuses "more than 100000 runs" --set lr=1,2,3,4,5,6,7,8,9,10 --seeds 1..1000 --set beta1=0,.1,.2,.3,.4,.5,.6,.7,.8,.9 \
    --set beta2=0,.1,.2,.3,.4,.5,.6,.7,.8,.9 --set dropout=0,.1,.2,.3,.4,.5,.6,.7,.8,.9
refuses "nothing is varied"
printf 'lr,mask\n1e-3,none\n-1,causal\n' >wrong.csv
refuses "wrong.csv, line 3: --lr takes" --grid wrong.csv
printf 'lr,masc\n1e-3,none\n' >misspelled.csv
refuses "misspelled.csv, line 1: 'masc' is not a flag of train: did you mean mask?" --grid misspelled.csv
printf '[{"lr": 1e-3}, {"lr": [1]}]' >wrong.json
refuses "wrong.json, entry 2: " --grid wrong.json
refuses "cannot be read" --grid nowhere.csv
status 2 "$program" sweep --set lr=1,2 -- --n-layer 1
grep -q -- '--data FILE is missing' err || fail "no data: $(cat err)"
status 2 "$program" sweep --set n-embd=5,7 --out-dir refused -- "${shared[@]:0:8}"
grep -q 'none of these runs can begin' err || fail "no possible run: $(cat err)"

for misplaced in --data=book.txt --block_size=8 --threads=1; do
    status 2 "$program" sweep --set lr=1,2 "$misplaced"
    grep -q 'is a flag of train, and those follow --' err || fail "$misplaced: $(cat err)"
done

# ---- Files of settings: texts stay as they are typed ----
printf 'lr,mask\n3e-05,none\n,window:3\n' >grid.csv
status 0 "$program" sweep --grid grid.csv --set no-scale=true,false --out-dir planned --plan -- "${shared[@]}" --max-iters 5
[ "$(wc -l <planned/jobs.txt)" = 4 ] && [ "$(ls planned)" = "$(printf 'jobs.sbatch\njobs.txt\noutput')" ] || fail "--plan: $(ls planned)"
grep -q -- '--lr=3e-05 --mask=none --no-scale --out-dir=planned/lr=3e-05,mask=none,no-scale=true --auto-resume$' planned/jobs.txt ||
    fail "the commands: $(cat planned/jobs.txt)"
bash -n planned/jobs.sbatch || fail "the template is not a script"
grep -q '^#SBATCH --array=1-4$' planned/jobs.sbatch || fail "the template: $(cat planned/jobs.sbatch)"
printf '[{"lr": 3e-05, "mask": "none"}, {"no_scale": true, "lr": null}]' >grid.json
status 0 "$program" sweep --grid grid.json --out-dir json --plan -- "${shared[@]}" --max-iters 5
grep -q -- '--lr=3e-05 --mask=none --out-dir=' json/jobs.txt && grep -q -- ' --no-scale --out-dir=' json/jobs.txt ||
    fail "JSON: $(cat json/jobs.txt)"
# Names are one folder's, whatever the value.
cp "$data" "a b'.csv"
status 0 "$program" sweep --set "data=a b'.csv,$data" --out-dir 'odd names' -j 2 -- "${shared[@]:2}" --max-iters 2
[ -e "odd names/data=a%20b%27.csv/samples.txt" ] || fail "an odd name: $(ls 'odd names')"
# The list runs as it is, twice; and Slurm's template runs a line.
status 0 "$program" sweep --set "data=a b'.csv" --seeds 1,2 --out-dir 'odd list' --plan -- "${shared[@]:2}" --max-iters 2
for again in 1 2; do
    status 0 xargs -d '\n' -n 1 -P 2 sh -c <'odd list/jobs.txt'
done
[ "$(grep -c 'is finished$' err)" = 2 ] || fail "a finished run was not left as it is: $(cat err)"
rm -r "odd list/data=a%20b%27.csv,seed=2"
SLURM_ARRAY_TASK_ID=2 bash 'odd list/jobs.sbatch' >out 2>err || fail "the template: $(cat err)"
[ -e "odd list/data=a%20b%27.csv,seed=2/samples.txt" ] || fail "the template ran another line"

# ---- Failures are listed with their sentence, and left until --retry ----
sweep_failing() { "$program" sweep --set n-head=2,3 --set lr=1e-3,2e-3 --out-dir failing -j 2 "$@" -- "${shared[@]:0:6}" \
    --n-embd 16 "${shared[@]:10}" --max-iters 5; }
status 1 sweep_failing
grep -q '^2 of 4 runs finished, 2 failed$' out || fail "the end: $(cat out)"
grep -q '^  n-head=3,lr=1e-3: n_embd is 16 and n_head is 3' <(sed -n '/^Failed/,$p' out) || fail "the sentences: $(cat out)"
status 1 sweep_failing
! grep -q '^f.*  n-head=' out || fail "a failed run was tried again: $(cat out)"
status 1 sweep_failing --retry
[ "$(grep -c '^failed ' out)" = 2 ] || fail "--retry: $(cat out)"
# A folder with another run in it is no run of this sweep.
status 2 "$program" sweep --set n-head=2 --set lr=1e-3,2e-3 --out-dir failing -- "${shared[@]:0:6}" --n-embd 32 "${shared[@]:10}"
grep -q 'holds a run with another --n-embd' err || fail "another run: $(cat err)"

# ---- What diverges is a run's matter: the others train, and only finished runs have final numbers ----
diverging() { "$program" sweep --set "$1" --jobs 1 --out-dir "$2" -- "${shared[@]}" --grad-clip 0 --max-iters 30; }
status 1 diverging lr=1e20,1e-3 diverging
grep -q '^1 of 2 runs finished, 1 failed$' out && grep -q 'for 1 of the runs, and unknown for 1$' out ||
    fail "the first diverges: $(cat out err)"
grep -qx '1 run is not finished: diverging/lr=1e20 (step [0-9]* of 30)' out || fail "which is not finished: $(cat out)"
grep -q '^lr=1e+20  *0/1  *-  *-  *-$' out || fail "a diverged run has a final loss: $(cat out)"
status 1 diverging lr=1e20,1e30 both
grep -q 'time and disk: unknown' out && grep -q '^0 of 2 runs finished, 2 failed$' out || fail "both diverge: $(cat out err)"
# A value that is refused is refused of its run only, whichever comes first.
status 1 "$program" sweep --set lr=1e-5,1e-3 --out-dir refused -- "${shared[@]}" --min-lr 1e-4 --max-iters 5
grep -q '1 run cannot begin: --min-lr 0.0001 is above --lr 1e-05' out && grep -q '^1 of 2 runs finished' out ||
    fail "one is refused: $(cat out err)"

# ---- A run that another process holds is skipped, and said ----
exec 9<>"failing/n-head=2,lr=1e-3/.lock"
flock -x 9
rm "failing/n-head=2,lr=1e-3/samples.txt"
status 1 sweep_failing
grep -q '^held      n-head=2,lr=1e-3 ' out && grep -q '1 of 4 runs finished, 1 held by another process' out || fail "held: $(cat out)"
exec 9>&-
status 1 sweep_failing
grep -q '^2 of 4 runs finished, 2 failed$' out || fail "no longer held: $(cat out)"

# ---- Killed at any moment, and started again: the bits of single runs ----
sweep() { "$program" sweep --set mask=causal,none --seeds 1..3 --out-dir S -j 2 -- "${shared[@]}" --max-iters 150 --save-interval 20; }
for mask in causal none; do
    for seed in 1 2 3; do
        status 0 "$program" train "${shared[@]}" --max-iters 150 --save-interval 20 --mask $mask --seed $seed \
            --out-dir "single/mask=$mask,seed=$seed"
    done
done
for moment in 0 0.05 0.1 0.2 0.3 0.5 0.7; do
    "$program" sweep --set mask=causal,none --seeds 1..3 --out-dir S -j 2 -- "${shared[@]}" --max-iters 150 --save-interval 20 \
        >out 2>err &
    parent=$!
    sleep $moment
    # Either all at once, or the parent only: then the system asks the children to save.
    children=$(ps -o pid= --ppid $parent || true)
    [ "$moment" = 0.2 ] && children=
    # shellcheck disable=SC2086
    kill -9 $parent $children 2>/dev/null || true
    wait $parent 2>/dev/null || true
done
status_of_sweep=1
for try in 1 2 3 4 5; do # runs whose processes are still saving are held
    sweep >out 2>err && status_of_sweep=0 && break
    sleep 1
done
[ "$status_of_sweep" = 0 ] || fail "after the kills: $(cat out err)"
grep -q '^6 of 6 runs finished$' out || fail "after the kills: $(cat out)"
status 0 sweep
! grep -q '^finished' out || fail "a run was done twice: $(cat out)"
for run in single/*; do
    run=${run#single/}
    cmp <(without_seconds "single/$run") <(without_seconds "S/$run") || fail "the log of $run differs"
    cmp "single/$run/samples.txt" "S/$run/samples.txt" && cmp "single/$run/position.csv" "S/$run/position.csv" &&
        cmp "single/$run/checkpoint.h5" "S/$run/checkpoint.h5" || fail "$run differs from the same run by itself"
done

# ---- Ctrl-C: the children save, and it says where ----
"$program" sweep --set mask=causal,none --out-dir long -j 2 -- "${shared[@]}" --max-iters 1000000 >out 2>err &
parent=$!
for ((i = 0; i < 200; i++)); do
    [ "$(cat long/*/log.csv 2>/dev/null | wc -l)" -gt 20 ] && break
    sleep 0.05
done
children=$(ps -o pid= --ppid $parent)
kill -TERM $parent
found=0
wait $parent || found=$?
[ "$found" = 130 ] || fail "stopped with status $found: $(cat out err)"
grep -q 'all is kept in long' out || fail "it does not say where: $(cat out)"
[ "$(wc -w <<<"$children")" = 2 ] || fail "children: $children"
for child in $children; do ! kill -0 "$child" 2>/dev/null || fail "child $child is still there"; done
for mask in causal none; do [ -e "long/mask=$mask/checkpoint.h5" ] || fail "mask=$mask was not saved: $(cat long/output/*)"; done
