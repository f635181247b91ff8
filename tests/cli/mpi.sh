#!/usr/bin/env bash
# Several ranks train what one process trains, bit for bit: with 1 to 8 ranks, after a kill, after a signal, resumed by
# another number of them. What does not fit is refused in one sentence. In a build without MPI: that it is without.
set -u
maskgrad=$1 source=$2
. "$source/tests/tools/lab.bash"

if ! grep -q '^MASKGRAD_MPI:BOOL=ON' "$(dirname "$maskgrad")/CMakeCache.txt"; then
    ldd "$maskgrad" >libraries || fail "ldd cannot read $maskgrad"
    grep -qi 'libcsv' libraries || fail "ldd does not list the libraries"
    grep -iE 'mpi|pmix|open-rte' libraries && fail "the default build needs MPI"
    mkdir held
    exec 9>held/.lock
    flock 9 || fail "flock"
    OMPI_COMM_WORLD_SIZE=4 "$maskgrad" train --data "$source/datasets/data/frases.csv" --out-dir held >out 2>err &&
        fail "a folder that another process holds is used"
    grep -q '4 processes were started together' err || fail "nothing says that this build is without MPI: $(cat err)"
    exit 0
fi

# All ranks on this machine, as root too; more of them than processors.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_btl=self,vader OMPI_MCA_orte_tmpdir_base=$PWD
flags=(--data "$source/datasets/data/frases.csv" --grammar-size 5000 --n-layer 2 --n-head 2 --n-embd 16 --block-size 8
    --batch-size 4 --max-iters 24 --eval-interval 8 --eval-iters 2 --dropout 0.1 --threads 1)
start() { # RANKS FOLDER FLAG...
    local ranks=$1 folder=$2
    shift 2
    timeout 120 mpirun -n "$ranks" "$maskgrad" train "$@" --out-dir "$folder" >"$folder.out" 2>"$folder.err"
}
same() { # FOLDER AS
    local file
    for file in checkpoint.h5 samples.txt position.csv; do
        cmp "$1/$file" "$2/$file" || fail "$1/$file differs from that of $2"
    done
    diff <(cut -d, -f1-6 "$1/log.csv") <(cut -d, -f1-6 "$2/log.csv") >changed || fail "$1/log.csv: $(head -3 changed)"
}
one_sentence() { # FOLDER SENTENCE
    [ "$(grep -c '^maskgrad train: ' "$1.err")" = 1 ] || fail "$1: not one sentence: $(grep maskgrad "$1.err")"
    grep -q "$2" "$1.err" || fail "$1: $(grep maskgrad "$1.err")"
}

# ---- The same bits ----
for micro in 8 6; do
    "$maskgrad" train "${flags[@]}" --grad-accum $micro --out-dir one$micro >one.out 2>&1 || fail "$(tail -n 1 one.out)"
done
for ranks in 2 4 8; do
    start $ranks eight$ranks "${flags[@]}" --grad-accum 8 || fail "$ranks ranks: $(cat "eight$ranks.err")"
    same eight$ranks one8
    [ "$(grep -c '^iter ' eight$ranks.out)" = "$(grep -c '^iter ' one.out)" ] || fail "more ranks than one print"
done
start 3 six3 "${flags[@]}" --grad-accum 6 || fail "3 ranks: $(cat six3.err)"
same six3 one6
cmp -s one8/checkpoint.h5 one6/checkpoint.h5 && fail "8 and 6 micro-batches are the same: nothing was compared"
grep -q '"ranks": 4' eight4/run.json || fail "run.json does not say how many ranks"

# ---- What does not fit ----
start 3 three "${flags[@]}" --grad-accum 8 && fail "3 ranks share 8 micro-batches"
one_sentence three "3 ranks cannot share the 8 micro-batches.* 1, 2, 4 or 8 ranks"
[ ! -e three ] || fail "a refused run leaves a folder"
start 2 stream "${flags[@]}" --grad-accum 2 --data - --tokens char </dev/null && fail "standard input is shared"
one_sentence stream "a file that all can read"
start 2 unknown --no-such-flag && fail "an unknown flag is taken"
[ "$(grep -c 'no-such-flag' unknown.err)" = 1 ] || fail "a usage error is said more than once: $(cat unknown.err)"
mkdir a b
seq 1 2000 >a/text
seq 1 1999 >b/text
echo 9999 >>b/text
timeout 60 mpirun -n 1 -wdir a "$maskgrad" train --data text --grad-accum 2 --out-dir "$PWD/other" : \
    -n 1 -wdir b "$maskgrad" train --data text --grad-accum 2 --out-dir "$PWD/other" >other.out 2>other.err && fail "other data is taken"
one_sentence other "rank 1 has other data than rank 0"
timeout 60 mpirun -n 1 "$maskgrad" train "${flags[@]}" --grad-accum 2 --out-dir seeds : \
    -n 1 "$maskgrad" train "${flags[@]}" --grad-accum 2 --seed 5 --out-dir seeds >seeds.out 2>seeds.err && fail "other settings are taken"
one_sentence seeds "rank 1 has other settings"

# ---- A rank dies; a signal to one; and the rest by others ----
process_of() { # RANK FOLDER: the process id of that rank of the run in a folder
    local process
    for process in $(pgrep -f -- "train .*--out-dir $2\$"); do
        tr '\0' '\n' <"/proc/$process/environ" 2>/dev/null | grep -qx "OMPI_COMM_WORLD_RANK=$1" && echo "$process" && return
    done
}
interrupt() { # SIGNAL RANK FOLDER: once the run has a checkpoint; the exit status is mpirun's
    local job
    start 4 "$3" "${long[@]}" &
    job=$!
    for ((i = 0; i < 300; i++)); do
        [ "$(wc -l 2>/dev/null <"$3/log.csv")" -gt 30 ] 2>/dev/null && break
        sleep 0.1
    done
    kill -"$1" "$(process_of "$2" "$3")" || fail "rank $2 of $3 was not found"
    wait $job
}
long=("${flags[@]}" --grad-accum 4 --max-iters 100000 --save-interval 5 --eval-interval 1000)
for victim in 2 0; do
    interrupt KILL $victim dead$victim && fail "the run goes on without rank $victim"
    [ "$(grep -c "^maskgrad train: rank $victim (process .*) is gone" dead$victim.err)" = 1 ] || fail "$(cat dead$victim.err)"
    [ $victim = 0 ] || grep -q 'the checkpoint of step [0-9]* is kept' dead$victim.err || fail "$(cat dead$victim.err)"
    "$maskgrad" inspect --verify dead$victim/checkpoint.h5 >verified 2>&1 || fail "$(cat verified)"
done
interrupt TERM 3 asked
[ $? = 130 ] || fail "after a signal the status is not 130: $(cat asked.err)"
grep -q 'stopped at step' asked.err || fail "$(cat asked.err)"
for folder in dead2 asked; do
    steps=$(($("$maskgrad" inspect --json $folder/checkpoint.h5 | python3 -c 'import json, sys; print(json.load(sys.stdin)["train"]["step"])') + 10))
    "$maskgrad" train "${long[@]}" --max-iters $steps --lr-decay-iters 100000 --out-dir $folder.whole >whole.out 2>&1 || fail "$(tail -n 1 whole.out)"
    start 2 $folder --resume --max-iters $steps || fail "$folder: $(cat $folder.err)"
    same $folder $folder.whole
done
