#!/usr/bin/env bash
# maskgrad audit: programs in three languages, checkpoints, programs that misbehave, and the matrix of planted faults.
set -euo pipefail
maskgrad=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python=/usr/bin/python3

fail() {
    echo "$1" >&2
    exit 1
}

ends() { # STATUS COMMAND...: runs it, keeps what it says in out and err
    local expected=$1 status=0
    shift
    "$@" >out 2>err || status=$?
    [ "$status" = "$expected" ] || { cat out err >&2; fail "status $status instead of $expected: $*"; }
}

says() { # FILE TEXT
    tr -s ' \n' ' ' <"$1" | grep -qF -- "$2" || { cat "$1" >&2; fail "$1 does not say \"$2\""; }
}

# ---- C, which speaks text ----

compiler=$(sed -n 's/^CMAKE_C_COMPILER:.*=//p' "$(dirname "$maskgrad")/CMakeCache.txt")
"$compiler" -std=c11 -Wall -Wextra -Werror "$source/adapters/examples/average.c" -o average
ends 0 "$maskgrad" audit -- ./average
says out "mask pass none of 120 pairs"
says err "calls of the model; at this pace about"
ends 1 "$maskgrad" audit -- ./average broken
says out "mask FAIL position 0 moves with token 1"
says out "begin with \`mask\`"

# Where the results go: a file, a page, only standard output.
ends 1 "$maskgrad" audit --json verdicts.json --out-dir page -- ./average broken
[ -s page/report.html ] && [ -s page/map.csv ] || fail "no page"
says page/report.html "position 0 moves with token 1"
says verdicts.json '"first":"mask"'
ends 1 "$maskgrad" audit --json - -- ./average broken
[ "$(wc -l <out)" = 1 ] || fail "--json - prints more than the JSON"
ends 0 "$maskgrad" audit --length 3 --seed 5 --sequences 1 --ids 1,2,3 -- ./average
says out "2 sequences of 3 tokens"

# ---- Checkpoints of ours ----

for mask in causal none; do
    "$maskgrad" train --data "$source/datasets/data/frases.csv" --mask $mask --max-iters 1 --eval-interval 1 \
        --eval-iters 1 --n-layer 1 --n-embd 16 --n-head 2 --block-size 8 --out-dir run-$mask >/dev/null 2>&1
done
ends 0 "$maskgrad" audit run-causal
says out "cache pass"
says out "shift pass"
ends 1 "$maskgrad" audit run-none
says out "mask FAIL position 0 moves with token 1"
says out "cache not offered"

# ---- Programs that misbehave, each with its sentence ----

greeting='{"maskgrad-audit":1,"vocab":2,"context":2,"rows":1,"can":["logits"]}'
misbehaves() { # STATUS TEXT SHELL-SCRIPT
    ends "$1" "$maskgrad" audit -- sh -c "$3"
    says err "$2"
}
# For a program that goes silent after what it does: on a busy machine it needs longer to come so far.
goes_silent() { # TEXT SHELL-SCRIPT: in TEXT, LIMIT is the time limit
    local limit
    for limit in 0.5 4 32; do
        ends 1 "$maskgrad" audit --timeout $limit -- sh -c "$2"
        tr -s ' \n' ' ' <err | grep -qF -- "${1//LIMIT/$limit}" && return
    done
    says err "${1//LIMIT/$limit}"
}
answer() { # what to do after the first question
    printf "echo '%s'; read -r question; %s" "$greeting" "$1"
}
goes_silent "the program did not greet within LIMIT s (--timeout)" "exec sleep 60"
misbehaves 1 "ended with status 3 before it greeted" "exit 3"
misbehaves 1 "ended by signal 11 (Segmentation fault) before it greeted" 'kill -SEGV $$'
misbehaves 1 "the program closed its standard output" "exec >&-; exec sleep 60"
misbehaves 1 "wrote 'loading the model' where a JSON object was expected" "echo loading the model"
misbehaves 1 "has no end of line" "exec head -c 3000000 /dev/zero"
misbehaves 1 "speaks protocol 2, and this maskgrad protocol 1" 'echo "{\"maskgrad-audit\":2}"'
misbehaves 1 "has no number \"maskgrad-audit\"" 'echo "{}"'
misbehaves 1 "has no \"vocab\"" 'echo "{\"maskgrad-audit\":1}"'
misbehaves 1 "has no \"context\"" 'echo "{\"maskgrad-audit\":1,\"vocab\":7,\"context\":0}"'
misbehaves 1 "does not offer \"logits\"" 'echo "{\"maskgrad-audit\":1,\"vocab\":7,\"context\":7,\"can\":[\"loss\"]}"'
misbehaves 1 "offers 'mind'" 'echo "{\"maskgrad-audit\":1,\"vocab\":7,\"context\":7,\"can\":[\"mind\"]}"'
misbehaves 1 "dtype 'int8'" 'echo "{\"maskgrad-audit\":1,\"vocab\":7,\"context\":7,\"dtype\":\"int8\",\"can\":[]}"'
goes_silent "did not answer within LIMIT s (--timeout) when asked for logits of 1 x 2 tokens" "$(answer 'exec sleep 60')"
misbehaves 1 "ended with status 0 when asked for logits" "$(answer true)"
goes_silent "stopped in its answer after 6 bytes" \
    "$(answer 'echo "{\"shape\":[1,2,2]}"; printf 123456; exec sleep 60')"
misbehaves 1 "the shape [1, 2] when asked for logits of 1 x 2 tokens: it has to be [1, 2, 2]" \
    "$(answer 'echo "{\"shape\":[1,2]}"')"
misbehaves 1 "no shape" "$(answer 'echo "{}"')"
misbehaves 1 "line 2 of the program's answer has no number 2" \
    "$(answer 'echo "{\"shape\":[1,2,2],\"text\":true}"; echo 1 2; echo 1')"
misbehaves 1 "has a superfluous number 3" "$(answer 'echo "{\"shape\":[1,2,2],\"text\":true}"; echo 1 2 3')"
misbehaves 1 "has a bad number 1 ('one 2')" "$(answer 'echo "{\"shape\":[1,2,2],\"text\":true}"; echo one 2')"
misbehaves 1 "wrote 'and more" "echo '$greeting'; echo and more; exec sleep 60"
ends 1 "$maskgrad" audit -- sh -c "$(answer 'echo "{\"shape\":[1,2,2],\"text\":true}"; echo 1 nan; echo 1 2; exit 0')"
ends 1 "$maskgrad" audit -- sh -c "echo '$greeting'; while read -r question; do echo '{\"error\":\"not today\"}'; done"
says out "repeat inconclusive the model refused: not today"
says out "The model answered nothing"
says err "the model answered none of"
ends 1 "$maskgrad" audit -- sh -c "echo '$greeting'; while read -r question; do
    echo '{\"shape\":[1,2,2],\"text\":true}'; echo 1 nan; echo 1 2; done"
says out "repeat FAIL a logit is NaN (position 0 of 2)"
ends 1 "$maskgrad" audit -- sh -c "$(answer 'echo "{\"shape\":[1,2,2],\"text\":true}"; echo 1 2; echo 1 2; exit 0')"
says out "The audit was not finished: \`repeat\` and what is below it are undecided"
grep -q "No probe fails" out && fail "an audit that broke off has a conclusion"
grep -q " $" out && fail "spaces at the end of a line"
ends 1 "$maskgrad" audit -- ./no-such-program
says err "'./no-such-program' cannot be started: No such file or directory"

# No process is left over: not after a time limit, not after Ctrl-C, whatever the program thinks of signals.
for limit in 0.5 4 32; do
    ends 1 "$maskgrad" audit --timeout $limit -- sh -c 'trap "" TERM; echo $$ >pid; while :; do sleep 0.1; done'
    [ ! -s pid ] || break # it came so far
done
[ -s pid ] || fail "a program was not started in $limit s"
kill -0 "$(cat pid)" 2>/dev/null && fail "a program that ignores SIGTERM lives on"
rm pid
set -m # gives the audit a process group, and with it Ctrl-C
"$maskgrad" audit -- sh -c 'echo $$ >pid; trap "" INT; exec sleep 60' >out 2>err &
audit=$!
set +m
until [ -s pid ]; do sleep 0.05; done
kill -INT -$audit
status=0
wait $audit || status=$?
[ $status = 130 ] || fail "Ctrl-C ends with $status"
kill -0 "$(cat pid)" 2>/dev/null && fail "a program outlives Ctrl-C"

# ---- The conversation in docs/audit.md is one that takes place ----

cat >replay.sh <<'END'
exec 3<&0
sed -n 's/^    \([»«] .*\)/\1/p' "$1" >said
while IFS= read -r line; do
    case $line in
    "» "*) printf '%s\n' "${line#» }" ;;
    "« "*)
        expected=${line#« }
        IFS= read -r question <&3
        case $question in "${expected%%…*}"*) ;; *) echo "asked $question instead of $expected" >&2 ;; esac
        ;;
    esac
done <said
END
ends 0 "$maskgrad" audit --sequences 1 -- sh replay.sh "$source/docs/audit.md"
grep -q "instead of" err && { cat err >&2; fail "the conversation in docs/audit.md is another one"; }
says out "mask pass"

# Where results cannot be written is said before the audit.
touch file
for flags in "--json file/verdicts" "--json no-such-folder/verdicts" "--out-dir file" "--out-dir file/report"; do
    ends 1 "$maskgrad" audit $flags -- sh -c 'echo begun >begun'
    [ ! -e begun ] || fail "$flags is tried after the audit"
done

# ---- Usage ----

ends 2 "$maskgrad" audit
says err "missing argument"
ends 2 "$maskgrad" audit --
ends 2 "$maskgrad" audit run-causal -- ./average
ends 2 "$maskgrad" audit --stdio --json -
ends 2 "$maskgrad" audit --ids 1,12 -- ./average
says err "'12' is not a token id"
ends 2 "$maskgrad" audit --ids 1 -- ./average
ends 2 "$maskgrad" audit --length 1 -- ./average
says err "2"
ends 2 "$maskgrad" audit --length 17 -- ./average
says err "the context is 16"

# ---- Python ----

$python -c 'import sys; from importlib.util import find_spec as find
sys.exit(not (find("numpy") and find("torch")))' 2>/dev/null || { echo "python3-numpy or python3-torch is missing"; exit 77; }
export MASKGRAD=$maskgrad PYTHONPATH=$source/adapters:$source/tests/audit OMP_NUM_THREADS=1
examples=$source/adapters/examples
for example in numpy_rnn pytorch_attention; do
    ends 0 "$maskgrad" audit -- $python "$examples/$example.py"
    ends 1 "$maskgrad" audit -- $python "$examples/$example.py" --broken
    says out "mask FAIL position 0 moves with token 1"
done
$python "$source/tests/audit/adapter.py" || fail "the adapter"
$python "$source/tests/audit/matrix.py" >matrix || { grep -v ^green matrix >&2; fail "the matrix is red"; }
tail -n 1 matrix
