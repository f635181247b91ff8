#!/usr/bin/env bash
# What the system may deny: memory, stack, open descriptors, a reader, a wide terminal. The program ends with a
# sentence and status 1 or 130, or works; it never hangs, and never writes where it must not.
set -euo pipefail
program=$1 source=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
tiny=(--data "$source/datasets/data/frases.csv" --grammar-size 2000 --n-layer 1 --n-head 2 --n-embd 16 --block-size 8
    --batch-size 4 --max-iters 3 --eval-iters 1 --log-interval 1)

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

# ---- Standard descriptors that are closed: none of the run's files gets their numbers ----
"$program" train "${tiny[@]}" --out-dir open >/dev/null 2>&1 || fail "status $?"
"$program" train "${tiny[@]}" --out-dir out >&- 2>/dev/null || fail "closed stdout: status $?"
"$program" train "${tiny[@]}" --out-dir err >/dev/null 2>&- || fail "closed stderr: status $?"
"$program" train "${tiny[@]}" --out-dir all <&- >&- 2>&- || fail "all closed: status $?"
for run in out err all; do
    [ ! -s $run/.lock ] || fail "$run: output in the lock file"
    cmp <(cut -d, -f1-6 open/log.csv) <(cut -d, -f1-6 $run/log.csv) || fail "$run: output in log.csv"
    cmp open/checkpoint.h5 $run/checkpoint.h5 && cmp open/samples.txt $run/samples.txt || fail "$run: other files"
done

# ---- A reader that goes away: the work so far is saved ----
("$program" train "${tiny[@]}" --max-iters 1000000 --out-dir pipe 2>pipe.err || echo $? >pipe.status) | head -n 3 >/dev/null
[ "$(cat pipe.status)" = 130 ] || fail "train | head: status $(cat pipe.status)"
grep -q 'the reader of the output is gone: stopped at step [0-9]*, saved in pipe/checkpoint.h5' pipe.err ||
    fail "train | head: $(cat pipe.err)"
[ -s pipe/checkpoint.h5 ] || fail "train | head saved nothing"
"$program" generate pipe --max-new-tokens 100000 2>generate.err | head -c 10 >/dev/null || true # SIGPIPE
[ ! -s generate.err ] || fail "generate | head: $(cat generate.err)"

# ---- Widths, and memory full of blanks: help is the same, whatever was in memory ----
for width in 0 1 5 19 20 23 39 40 41 61 64 73 79 80 400 99999999999999999999 x; do
    for command in train "lab leak"; do
        # shellcheck disable=SC2086
        MALLOC_PERTURB_=223 COLUMNS=$width "$program" $command --help >help || fail "COLUMNS=$width $command: status $?"
        # shellcheck disable=SC2086
        MALLOC_PERTURB_=1 COLUMNS=$width "$program" $command --help | cmp - help || fail "COLUMNS=$width $command: help varies"
        grep -q -- --seed help || fail "COLUMNS=$width $command: $(cat help)"
    done
done
ARGP_HELP_FMT=rmargin=9 "$program" train --help >/dev/null || fail "ARGP_HELP_FMT: status $?"

# ---- Descriptors, from too few to enough: what is refused is the system's doing, not the file's ----
needed=0
for descriptors in 5 6 7 8 9 10 11 12; do
    for command in "inspect open" "generate open --max-new-tokens 3" "train ${tiny[*]} --force --out-dir few" "lab mask --quick --out-dir lab"; do
        status=0
        # shellcheck disable=SC2086
        sh -c "ulimit -n $descriptors; exec \"\$@\"" sh "$program" $command >few.out 2>few.err || status=$?
        [ $status -eq 0 ] || [ $status -eq 1 ] && ! grep -q damaged few.err ||
            fail "$descriptors descriptors, $command: status $status: $(cat few.err)"
        [ $status -eq 0 ] || needed=$descriptors
    done
done
[ $needed -ge 4 ] && [ $needed -lt 12 ] || fail "$needed descriptors are too few: these limits test nothing"

# ---- Address space and stack, from too little to enough ----
if grep -q '^MASKGRAD_SANITIZE:.*=ON' "$(dirname "$program")/CMakeCache.txt"; then
    echo "SKIPPED: the sanitizer takes more address space than these limits leave"
    exit 0
fi
limited() { # LIMIT COMMAND...: it works, or says why not
    local status=0 limit=$1
    shift
    (
        ulimit $limit
        exec timeout -s KILL 20 "$program" "$@" >said.out 2>said.err
    ) || status=$?
    case $status in
    0) return 0 ;;
    1) grep -q 'out of memory\|cannot be allocated\|stack limit' said.err || fail "ulimit $limit $1: no sentence: $(cat said.err)" ;;
    127) grep -q 'error while loading shared libraries' said.err || fail "ulimit $limit $1: $(cat said.err)" ;;
    *) fail "ulimit $limit $1: status $status: $(cat said.err)" ;;
    esac
    return 1
}
worked=0 refused=0
for limit in 60000 80000 130000 200000 300000 340000 380000 420000 460000 500000 700000 1000000; do
    if limited "-v $limit" --version; then worked=$((worked + 1)); else refused=$((refused + 1)); fi
    rm -rf run
    limited "-v $limit" train "${tiny[@]}" --threads 2 --out-dir run || true
done
[ $worked -gt 0 ] && [ $refused -gt 0 ] || fail "$worked worked, $refused were refused: these limits test nothing"
limited "-v 4000000" train "${tiny[@]}" --out-dir run4 || fail "4 GB are too little: $(cat said.err)"
limited "-s 64" --version && fail "64 KiB of stack are enough for --version, it seems"
for stack in 256 512; do
    limited "-s $stack" train "${tiny[@]}" --out-dir stack$stack || fail "$stack KiB of stack are too little: $(cat said.err)"
    limited "-s $stack" lab mask --quick --out-dir lab$stack || fail "$stack KiB of stack are too little: $(cat said.err)"
done
