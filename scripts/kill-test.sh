#!/usr/bin/env bash
# Kills training runs (SIGKILL) at random moments, half of them while a checkpoint is being written, resumes them, and
# requires each to end with the same bits as the run that was never killed.
#
#     scripts/kill-test.sh [KILLS] [PROGRAM]    20 kills of build/release/maskgrad
set -euo pipefail
kills=${1:-20}
source=$(cd "$(dirname "$0")/.." && pwd)
program=$(realpath "${2:-$source/build/release/maskgrad}")
folder=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill -9 "$pid" 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"

run=(--data "$source/datasets/data/frases.csv" --grammar-size 20000 --n-layer 1 --n-head 2 --n-embd 16 --block-size 8
    --batch-size 4 --max-iters 400 --eval-interval 50 --save-interval 10 --eval-iters 2 --lr 1e-2 --threads 1)

fail() {
    echo "FAILED: $*" >&2
    exit 1
}
without_seconds() { cut -d, -f1-6 "$1/log.csv"; }
# Where there is a run to resume, resume it; before that, begin.
command_for() {
    if [ -f "$1/run.json" ]; then echo --resume; else printf '%s\n' "${run[@]}"; fi
}

began=$(date +%s%N)
"$program" train "${run[@]}" --out-dir whole >/dev/null 2>&1
milliseconds=$((($(date +%s%N) - began) / 1000000))

done_kills=0 at_save=0 finished=0
rm -rf killed
while [ "$done_kills" -lt "$kills" ]; do
    mapfile -t arguments < <(command_for killed)
    "$program" train "${arguments[@]}" --out-dir killed >killed.out 2>&1 &
    pid=$!
    sleep "$(printf '0.%03d' $((RANDOM % (milliseconds < 900 ? milliseconds + 50 : 950))))"
    if [ $((done_kills % 2)) = 1 ]; then # wait for a checkpoint that is being written
        while kill -0 $pid 2>/dev/null && ! compgen -G 'killed/.maskgrad-tmp-*-checkpoint.h5' >/dev/null; do :; done
    fi
    kill -9 $pid 2>/dev/null || true
    status=0
    wait $pid 2>/dev/null || status=$?
    pid=
    case $status in
    137)
        done_kills=$((done_kills + 1))
        # Its temporary file shows that it was writing a checkpoint. The next run removes it.
        ! compgen -G 'killed/.maskgrad-tmp-*-checkpoint.h5' >/dev/null || at_save=$((at_save + 1))
        ;;
    0) # it finished before the kill: compare, and begin another
        finished=$((finished + 1))
        cmp <(without_seconds whole) <(without_seconds killed) || fail "the log of a run that was killed differs"
        rm -rf killed
        [ "$finished" -lt $((10 * kills)) ] || fail "the runs end before they can be killed"
        continue
        ;;
    *) fail "status $status: $(cat killed.out)" ;;
    esac
    [ ! -f killed/checkpoint.h5 ] || "$program" inspect --verify killed/checkpoint.h5 >/dev/null ||
        fail "after a kill the checkpoint is damaged"
done

mapfile -t arguments < <(command_for killed)
"$program" train "${arguments[@]}" --out-dir killed >killed.out 2>&1 || fail "the last resumption: $(cat killed.out)"
cmp <(without_seconds whole) <(without_seconds killed) || fail "the logs differ"
cmp whole/samples.txt killed/samples.txt || fail "the samples differ"
cmp whole/position.csv killed/position.csv || fail "the losses by position differ"
h5diff whole/checkpoint.h5 killed/checkpoint.h5 || fail "the checkpoints differ"
echo "$done_kills kills, $at_save of them while a checkpoint was being written, in $((finished + 1)) runs: all the same bits"
