#!/usr/bin/env bash
# `maskgrad train` from end to end: its folder, resuming bit for bit, stops, refusals.
set -euo pipefail
program=$1 source=$2
folder=$(mktemp -d)
trap '[ -z "${pid:-}" ] || kill -9 "$pid" 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"

data=$source/datasets/data/frases.csv
tiny=(--data "$data" --grammar-size 20000 --n-layer 1 --n-head 2 --n-embd 16 --block-size 8 --batch-size 4 --max-iters 60
    --eval-interval 20 --eval-iters 4 --lr 1e-2 --warmup-iters 5 --threads 1)

fail() {
    echo "FAILED: $*" >&2
    exit 1
}
train() { "$program" train "$@"; }
# status WANTED COMMAND…: what it says is in the file `said`, without the pointer to --help.
status() {
    local wanted=$1 got=0
    shift
    "$@" >out 2>all </dev/null || got=$?
    grep -v -e '^Try `' -e '^information\.$' all >said || true
    [ "$got" = "$wanted" ] || fail "status $got, not $wanted: $* $(cat all)"
}
says() { grep -qF -e "$1" said || fail "'$(cat said)' does not say '$1'"; }
one_sentence() { [ "$(wc -l <said)" = 1 ] || fail "more than one line: $(cat said)"; }
without_seconds() { cut -d, -f1-6 "$1/log.csv"; }
same_run() {
    cmp <(without_seconds "$1") <(without_seconds "$2") || fail "$1 and $2: the logs differ"
    cmp "$1/samples.txt" "$2/samples.txt" || fail "$1 and $2: the samples differ"
    cmp "$1/position.csv" "$2/position.csv" || fail "$1 and $2: the losses by position differ"
    cmp <("$program" logits "$1" --ids 1,2,3,4,5) <("$program" logits "$2" --ids 1,2,3,4,5) || fail "$1 and $2: logits"
    cmp "$1/checkpoint.h5" "$2/checkpoint.h5" || fail "$1 and $2: the checkpoints differ"
}

# ---- A run and its folder ----
status 0 train "${tiny[@]}" --out-dir full
grep -qE '^step 20: train loss [0-9]+\.[0-9]{4}, val loss [0-9]+\.[0-9]{4}, means over 16 windows$' out || fail "no line of an evaluation"
grep -qE '^iter 10: loss [0-9]+\.[0-9]{4}, time [0-9]+\.[0-9]{2}ms$' out || fail "no line of a step"
[ "$(head -n 1 full/log.csv)" = step,split,loss,lr,grad_norm,tokens,seconds ] || fail "the log's header"
[ "$(grep -c ,train, full/log.csv)" = 60 ] || fail "a row per step"
[ "$(grep ,val, full/log.csv | cut -d, -f1 | tr '\n' ' ')" = "0 20 40 60 " ] || fail "the evaluations"
[ "$(head -n 1 full/position.csv)" = position,loss,floor ] || fail "the header of position.csv"
[ "$(wc -l <full/position.csv)" = 9 ] || fail "a row per position"
python3 - <<'PY' || fail "run.json"
import json
run = json.load(open("full/run.json"))
s = run["settings"]
assert s["n_layer"] == 1 and s["lr"] == 0.01 and s["min_lr"] == 0.001 and s["lr_decay_iters"] == 60, s
assert s["scale"] is True and s["seed"] == 1337 and run["mask"] == "causal" and len(run["data"]["hash"]) == 16
assert run["machine"]["threads"] == 1
assert run["machine"]["blas"].startswith("OpenBLAS" if run["machine"]["arithmetic"] == "openblas" else "portable")
assert run["machine"]["precision"] == "float32" and run["machine"]["from_step"] == 0 and "earlier_machines" not in run
PY
train "${tiny[@]/--grammar-size/--grammar_size}" --n_layer=1 --out_dir twin >/dev/null 2>&1
same_run full twin
train "${tiny[@]}" --threads 2 --out-dir threads >/dev/null 2>&1
same_run full threads
train "${tiny[@]}" --eval-interval 7 --log-interval 1 --out-dir evaluated >/dev/null 2>&1
cmp <(without_seconds full | grep ,train,) <(without_seconds evaluated | grep ,train,) || fail "evaluating changed the run"

# Samples during training change nothing else; a resumed run draws those of its steps.
train "${tiny[@]}" --sample-interval 25 --out-dir sampled >printed 2>said || fail "--sample-interval"
cmp <(without_seconds full) <(without_seconds sampled) || fail "sampling changed the run"
cmp full/checkpoint.h5 sampled/checkpoint.h5 || fail "sampling changed the checkpoint"
cmp full/samples.txt sampled/samples.txt || fail "other samples at the end"
[ "$(grep -E '^step [0-9]+: sample$' printed | tr -d '\n')" = 'step 25: samplestep 50: sample' ] || fail "samples at: $(grep sample printed)"
train "${tiny[@]}" --sample-interval 25 --max-iters 40 --lr-decay-iters 60 --out-dir sampled-part >before 2>said
train --resume --out-dir sampled-part --max-iters 60 >after 2>said || fail "$(cat said)"
cmp full/checkpoint.h5 sampled-part/checkpoint.h5 || fail "sampling changed the resumed run"
cmp <(sed -n '/: sample/,/^---/p' printed) <(cat before after | sed -n '/: sample/,/^---/p') || fail "other samples after resuming"
train "${tiny[@]}" --sample-interval 25 --max-iters 26 --lr-decay-iters 60 --out-dir sampled-file >printed 2>said
[ "$(sed -n '/: sample/,/^---/p' printed | wc -l)" = 3 ] || fail "a sample and its two lines, not $(cat printed)"
status 2 train "${tiny[@]}" --sample-interval -1 --out-dir negative

# ---- All defaults are in the folder ----
status 0 train --data "$data" --grammar-size 2000 --max-iters 2 --eval-iters 1 --out-dir defaults
! grep -q alarm all || fail "an alarm after two steps: $(cat all)"
status 0 train --resume --out-dir defaults --max-iters 3
[ "$(grep -c ,train, defaults/log.csv)" = 3 ] || fail "two steps and one more"

# ---- The alarm ----
leaky=("${tiny[@]}" --lookahead 1 --batch-size 16 --max-iters 150)
status 0 train "${leaky[@]}" --out-dir leaky
[ "$(grep -c 'alarm at step' all)" = 1 ] || fail "one alarm, not: $(cat all)"
says "its mask is not causal"
step=$(sed -n 's/.*alarm at step \([0-9]*\):.*/\1/p' said)
[ "$(head -n 1 leaky/alarms.csv)" = step,evidence,windows,first,bound,last,mean,entropy,cause ] || fail "alarms.csv"
[ "$(sed 1d leaky/alarms.csv | cut -d, -f1,9)" = "$step,mask" ] || fail "$(cat leaky/alarms.csv), at step $step"
status 0 train "${leaky[@]}" --on-alarm off --out-dir unwatched
! grep -q 'alarm at step' all || fail "an alarm that is off"
[ ! -e unwatched/alarms.csv ] || fail "alarms.csv of an alarm that is off"
same_run leaky unwatched
status 1 train "${leaky[@]}" --on-alarm stop --out-dir stopped
says "ends the run"
[ "$(tail -n 1 stopped/log.csv | cut -d, -f1)" = "$step" ] || fail "it did not stop at step $step"
status 0 train --resume --out-dir stopped # and continues when asked to
! grep -q 'alarm at step' all || fail "accused twice: $(cat all)"
same_run leaky stopped
cmp leaky/alarms.csv stopped/alarms.csv || fail "another alarm after a stop"
status 0 train "${tiny[@]}" --max-iters 10 --out-dir leaky --force
[ ! -e leaky/alarms.csv ] || fail "the alarm of the run that was replaced"
[ ! -e full/alarms.csv ] || fail "an alarm at an honest model"
status 2 train "${tiny[@]}" --on-alarm shout --out-dir unfit
says "--on-alarm is say, stop or off, not 'shout'"

# ---- The default folder; another run is not overwritten ----
status 0 train "${tiny[@]}" --mask none
[ -f runs/frases-none/checkpoint.h5 ] || fail "the default folder"
status 2 train "${tiny[@]}" --mask none
says --resume; says --force; one_sentence
status 0 train "${tiny[@]}" --mask none --force

status 2 train "${tiny[@]}" --lr inf
says 'a finite number above 0'

# ---- Other people's files ----
for name in run.json log.csv position.csv samples.txt checkpoint.h5; do
    rm -rf theirs && mkdir theirs && echo precious >theirs/$name
    status 2 train "${tiny[@]}" --out-dir theirs
    says --force; one_sentence
    [ "$(ls -A theirs) $(cat theirs/$name)" = "$name precious" ] || fail "someone else's $name: $(ls -A theirs)"
done
rm -rf theirs && mkdir theirs && touch theirs/notes.txt theirs/notes.tmp.2024 theirs/checkpoint.h5.tmp.7
status 0 train "${tiny[@]}" --out-dir theirs
[ -e theirs/notes.txt ] && [ -e theirs/notes.tmp.2024 ] && [ -e theirs/checkpoint.h5.tmp.7 ] || fail "$(ls -A theirs)"
same_run full theirs
rm theirs/checkpoint.h5 # as a run that was stopped before it saved
status 0 train "${tiny[@]}" --out-dir theirs
status 0 train "${tiny[@]}" --out-dir theirs --force
for name in log.csv position.csv samples.txt run.json; do
    rm theirs/$name && mkfifo theirs/$name
    status 1 timeout 20 "$program" train --resume --out-dir theirs
    says $name; one_sentence
    status 1 timeout 20 "$program" train "${tiny[@]}" --out-dir theirs --force
    says $name; one_sentence
    rm theirs/$name
    status 0 train "${tiny[@]}" --out-dir theirs --force
done

# ---- Resuming ----
for stop in 1 19 20 37 59; do
    rm -rf part
    status 0 train "${tiny[@]}" --out-dir part --max-iters $stop --lr-decay-iters 60
    status 0 train --resume --out-dir part --max-iters 60 --threads $((stop % 2 + 1))
    same_run full part
done
status 0 train --init-from resume --out-dir part # a finished run: nothing to do, nothing changed
! grep -q dropped all || fail "$(cat all)"
same_run full part

refused() {
    status 2 train --resume --out-dir part "$@"
    says "$1"
    one_sentence
}
refused --seed 5
refused --lr 0.5
refused --batch-size 5
refused --n-layer 2
refused --beta2 0.5
refused --lookahead all
refused --mask none
status 2 train --resume --force --out-dir part
says --force; one_sentence
refused --grammar-size 30000
refused --max-iters 10
refused --lr-decay-iters 100
sed 's/,2$/,3/; s/,1$/,2/' "$data" >other.csv
cmp -s "$data" other.csv && fail "the other grammar is the same"
status 2 train --resume --out-dir part --data other.csv
says "the data other.csv is not what the run in part was started with"
cp -r part moved
sed -i 's|"data": "/|"data": "elsewhere/|' moved/run.json
status 1 train --resume --out-dir moved
says --data; says elsewhere; one_sentence
status 2 train --resume --out-dir nowhere
says "no run to resume in nowhere"
[ ! -e nowhere ] || fail "a refused resume made a folder"
same_run full part

# ---- A learning rate that does not fit the run: one line, and none where it fits ----
rates() { grep -cE 'learning rate|--min-lr' all || true; }
rate_says() {
    says "$1"
    [ "$(rates)" = 1 ] || fail "more than one line about the learning rate: $(cat all)"
}
rm -rf rate && status 0 train "${tiny[@]}" --out-dir rate
[ "$(rates)" = 0 ] || fail "$(cat all)"
status 0 train --resume --out-dir rate
[ "$(rates)" = 0 ] || fail "$(cat all)"
status 0 train --resume --out-dir rate --max-iters 70
rate_says "all 10 steps from here run at --min-lr 0.001: --lr-decay-iters is 60, and a resumed run cannot change it"
rm -rf rate && status 0 train "${tiny[@]}" --out-dir rate --warmup-iters 60
rate_says "the learning rate never reaches --lr 0.01: --warmup-iters is 60, and the run has 60 steps"
rm -rf rate && status 0 train "${tiny[@]}" --out-dir rate --warmup-iters 59
[ "$(rates)" = 0 ] || fail "$(cat all)"
rm -rf rate && status 0 train "${tiny[@]}" --out-dir rate --lr-decay-iters 59
rate_says "from step 59 on, the learning rate stays at --min-lr 0.001: --lr-decay-iters is below --max-iters 60"
rm -rf rate && status 0 train "${tiny[@]}" --out-dir rate --lr-decay-iters 5
rate_says "the learning rate drops to --min-lr 0.001 right after the warm-up"
rm -rf rate && status 0 train "${tiny[@]}" --out-dir rate --lr-decay-iters 30 --min-lr 1e-2
[ "$(rates)" = 0 ] || fail "a rate that does not change: $(cat all)"

# ---- run.json is not trusted ----
# edit EXPRESSION: part/run.json, changed by Python, in `edited`
edit() {
    rm -rf edited && cp -r part edited
    python3 - "$1" <<'PY'
import json, sys
run = json.load(open("edited/run.json"))
s = run["settings"]
exec(sys.argv[1])
json.dump(run, open("edited/run.json", "w"), indent=2)
PY
}
rejected() { # EXPRESSION SAYS
    edit "$1"
    status 1 train --resume --out-dir edited
    says "$2"; one_sentence
}
# Each setting that defines the run: another value of it is not the checkpoint's run. Of a grammar, delimiter and special
# change nothing, and train says so (cli.data).
for key in $(python3 -c 'import json; print(*json.load(open("part/run.json"))["settings"])'); do
    case $key in
    data | merges | encoding | delimiter | special | max_iters | eval_interval | eval_iters | log_interval | save_interval | sample_interval | threads | name | on_alarm) continue ;;
    scale | output_projection | positions) value="False" ;;
    lookahead) value="'all'" ;;
    leak) value="'0.1:1'" ;;
    tokens) value="'char'" ;;
    column) value="'word'" ;;
    n_layer | n_head | n_embd | block_size | batch_size | grad_accum | warmup_iters | seed | grammar_size) value="s['$key'] * 2" ;;
    lr_decay_iters) value="70" ;;
    *) value="s['$key'] * 0.9 + 0.0013" ;;
    esac
    edit "s['$key'] = $value"
    status 2 train --resume --out-dir edited
    one_sentence
done
edit "s['validation'] = 0"
status 2 train --resume --out-dir edited
says validation
rejected "s['data'] = None" "'data'"
rejected "s['data'] = ''" "'data'"
rejected "s['data'] = 3" "'data'"
rejected "s['lookahead'] = None" "'lookahead'"
rejected "s['n_head'] = '2'" "'n_head': it should be a whole number"
rejected "s['n_head'] = 2.0" "'n_head'"
rejected "s['n_head'] = 0" "'n_head'"
rejected "s['lr'] = True" "'lr'"
rejected "s['scale'] = 1" "'scale'"
rejected "s['seed'] = -1" "'seed'"
rejected "s['name'] = 'a/b'" "'name'"
rejected "s['n_heads'] = 2" "'n_heads'"
rejected "del s['beta1']" "'beta1'"
rejected "run['settings'] = []" "'settings'"
rejected "run['data'] = None" "'data'"
rejected "run['data']['hash'] = '0x12'" "'hash'"
rejected "run['data']['vocab_size'] = -1" "'vocab_size'"
rejected "run['data']['characters_a_token'] = 'x'" "'characters_a_token'"
rejected "run['machine']['blas'] = 3" "'blas'"
rejected "run['earlier_machines'] = [3]" "earlier_machines"
rejected "run['extra'] = 1" "'extra'"
edit "run['data']['hash'] = '0' * 16"
status 2 train --resume --out-dir edited
# Another machine: one line, and both are on record. In portable arithmetic the compiler and BLAS do not matter.
rm -rf edited; train "${tiny[@]}" --out-dir edited --max-iters 30 --lr-decay-iters 60 >/dev/null 2>&1
key=blas
[[ $("$maskgrad" --version) != *", portable arithmetic" ]] || key=arithmetic
sed -i "s/\"$key\": \"[^\"]*\"/\"$key\": \"OpenBLAS of another\"/; s/\"compiler\": \"[^\"]*\"/\"compiler\": \"tcc\"/" edited/run.json
status 0 train --resume --out-dir edited --max-iters 40
[ "$(grep -c 'warning: .*last bits.*OpenBLAS of another' all)" = 1 ] || fail "$(cat all)"
status 0 train --resume --out-dir edited --max-iters 60
! grep -q 'last bits' all || fail "$(cat all)"
python3 - "$key" <<'PY' || fail "the record of machines"
import json, sys
run = json.load(open("edited/run.json"))
assert [m[sys.argv[1]] for m in run["earlier_machines"]] == ["OpenBLAS of another"] and run["machine"]["from_step"] == 30, run
PY
same_run full edited

# ---- A name that is not UTF-8 ----
cp "$data" $'caf\xe9.csv'
status 2 train --data $'caf\xe9.csv' --grammar-size 20000 --max-iters 1 --out-dir latin
says --data; says '\xE9'; one_sentence
[ ! -e latin ] || fail "a refused run left $(ls -A latin)"

# ---- A torn log, a lost log ----
rm -rf torn
train "${tiny[@]}" --out-dir torn --max-iters 30 --lr-decay-iters 60 >/dev/null 2>&1
printf '30,train,2.5' >>torn/log.csv
status 0 train --resume --out-dir torn --max-iters 60
grep -q "ends within a row" all || fail "the torn row went unnoticed"
[ "$(grep -c ^step torn/log.csv)" = 1 ] || fail "one header"
same_run full torn

# ---- Interruption ----
rm -rf stopped
"$program" train "${tiny[@]}" --max-iters 1000000 --lr-decay-iters 1000000 --out-dir stopped >/dev/null 2>stop.err &
pid=$!
until [ -s stopped/log.csv ] && [ "$(wc -l <stopped/log.csv)" -gt 50 ]; do sleep 0.02; done
status 1 train --resume --out-dir stopped # while the first is at work
says "another maskgrad process"; one_sentence
kill -INT $pid
got=0
wait $pid || got=$?
pid=
[ $got = 130 ] || fail "interrupted: status $got"
grep -q "stopped at step" stop.err || fail "$(cat stop.err)"
at=$(grep -o 'stopped at step [0-9]*' stop.err | grep -o '[0-9]*$')
[ "$(tail -n 1 stopped/log.csv | cut -d, -f1)" = $((at - 1)) ] || fail "the log ends elsewhere than the checkpoint"
status 0 train --resume --out-dir stopped --max-iters $((at + 5))
train "${tiny[@]}" --max-iters $((at + 5)) --lr-decay-iters 1000000 --out-dir unstopped >/dev/null 2>&1
same_run unstopped stopped

# In the first evaluation, where there is no step to finish
rm -rf early
"$program" train "${tiny[@]}" --eval-iters 1000000 --out-dir early >/dev/null 2>stop.err &
pid=$!
until [ -s early/run.json ]; do sleep 0.02; done
kill -INT $pid
got=0
wait $pid || got=$?
pid=
[ $got = 130 ] || fail "interrupted in an evaluation: status $got"
grep -q "Ctrl-C again stops at once" stop.err || fail "$(cat stop.err)"
grep -q "stopped at step 0, saved in early/checkpoint.h5" stop.err || fail "$(cat stop.err)"
status 0 train --resume --out-dir early --eval-iters 4
same_run full early

# ---- From the weights of another run ----
status 0 train --data "$data" --grammar-size 20000 --init-from full --max-iters 5 --mask none --out-dir tuned
grep -q '"mask": "none"' tuned/run.json || fail "the mask of the tuned run"
[ "$(sed -n 2p tuned/log.csv | cut -d, -f1)" = 0 ] || fail "weights start at step 0"
status 2 train --data "$data" --init-from full --n-layer 3 --out-dir tuned2
says --n-layer; one_sentence
status 1 train --data "$data" --init-from nofile.h5 --out-dir tuned3
says nofile.h5; one_sentence

# ---- Without position embeddings: its own version of the file, and a context that can change ----
status 0 train "${tiny[@]}" --no-positions --max-iters 20 --out-dir placeless
grep -q '"positions": false' placeless/run.json || fail "run.json does not say that there are no positions"
"$program" inspect placeless | grep -q 'format version *2$' || fail "$("$program" inspect placeless)"
"$program" inspect full | grep -q 'format version *1$' || fail "today's settings need a newer program"
cmp <("$program" generate placeless -n 20 --seed 1) <("$program" generate placeless -n 20 --seed 1 --no-kv-cache) ||
    fail "without positions, cached is not uncached"
status 0 train "${tiny[@]}" --init-from placeless --block-size 12 --max-iters 5 --out-dir longer
status 2 train "${tiny[@]}" --init-from full --block-size 12 --out-dir longer2
says "--block-size 8"; one_sentence
# A run from before there was such a setting resumes.
cp -r placeless older && sed -i '/"positions"/d' older/run.json
status 2 train --resume --out-dir older --max-iters 25 # its checkpoint has none, and its settings say so no more
says no-positions
rm -rf older && cp -r full older && sed -i '/"positions"/d' older/run.json
status 0 train --resume --out-dir older --max-iters 65

# ---- Weights that cannot be computed with: a sentence, and the work so far stays ----
status 1 train "${tiny[@]}" --lr 1e6 --warmup-iters 0 --max-iters 3 --out-dir far
grep -qE "too large to compute with|not a number|infinite" said || fail "a run that diverged says: $(cat said)" # which one depends on bits
grep -qE "step [0-9]+: the (loss|gradient's norm) is " said || fail "a run that diverged names no step: $(cat said)"
[ -s far/run.json ] && [ -s far/log.csv ] || fail "a run that diverged: $(ls -A far)"
status 2 train "${tiny[@]}" --dropout 0.999999999999 --out-dir dropped
says dropout; one_sentence
[ ! -e dropped ] || fail "a dropout of 1 made a folder"

# ---- A loss that is not a number ----
status 1 train "${tiny[@]}" --lr 1e30 --out-dir diverged
says "not a number"; says "step "
status 1 train "${tiny[@]}" --lr 1e30 --warmup-iters 40 --save-interval 1 --out-dir diverged2
says "is kept in diverged2/checkpoint.h5"
"$program" inspect diverged2 --verify >/dev/null || fail "the kept checkpoint does not load"

# ---- Flags that cannot act ----
status 0 train "${tiny[@]}" --max-iters 1 --name other --out-dir named
says "--name changes nothing"
status 0 train --data "$data" --grammar-size 20000 --init-from full --init-std 1 --max-iters 1 --out-dir idle
says "--init-std changes nothing"
status 2 train "${tiny[@]}" --merges merges.txt --out-dir merged
says "only gpt2 tokens need merges"; one_sentence

# ---- Usage errors: one sentence that names the flag, status 2, and nothing is made ----
wrong() {
    status 2 train "${tiny[@]}" --out-dir wrong "$@"
    one_sentence
    says "$1"
    [ ! -e wrong ] || fail "$* made a folder"
}
wrong --n-layer 0
wrong --n-layer x
wrong --batch-size -3
wrong --lr 0
wrong --lr nan
wrong --lr 1e-3x
wrong --max-iters 1e3
wrong --dropout 1
wrong --mask maybe
wrong --lookahead -1
wrong --leak 0
wrong --leak 0.0:0
wrong --mask none --lookahead 3
wrong --lookahead 0 --mask none
wrong --name ""
wrong --name ../b
wrong --name a/b
wrong --min-lr 1
wrong --seed -1
wrong --threads 0.5
wrong --bogus
wrong --batch-size 1000000 --grad-accum 1000000
wrong --batch-size 1000000 --block-size 1000
says "GiB"
wrong --grad-accum 1000000 --batch-size 1000000
status 2 train "${tiny[@]}" --out-dir wrong --n-head 3
says n_head; one_sentence
status 2 train "${tiny[@]}" --out-dir wrong --leak 0.7
says "head 7"; one_sentence
status 2 train "${tiny[@]}" --out-dir wrong --block-size 30000
says 30001; one_sentence
status 2 train "${tiny[@]}" --out-dir ""
says "--out-dir is empty"; one_sentence
status 2 train
says --data; one_sentence
status 1 train --data nofile.csv
says nofile.csv; one_sentence
status 1 train "${tiny[@]}" --out-dir /dev/null/run
says /dev/null; one_sentence
touch file
status 1 train "${tiny[@]}" --out-dir file
says file; one_sentence
status 0 train --help
grep -q -e --block-size out || fail "--help"

# ---- compare ----
status 0 "$program" compare full twin evaluated
grep -q "60 steps in common, all equal" out || fail "equal runs differ: $(cat out)"
status 0 "$program" compare full runs/frases-none
tr -s '\n ' ' ' <out | grep -q "the first difference is at step 0" || fail "$(cat out)"
[ "$(sed -n '/^Settings that differ/,/^$/p' out | awk '{print $NF}' | tr '\n' ' ')" = 'differ: --mask causal none  ' ] ||
    fail "the setting that differs: $(cat out)"
cp -r full 'ação é'
status 0 "$program" compare full 'ação é' runs/frases-none
python3 - out <<'PY' || fail "a crooked table: $(cat out)"
import re, sys
table = open(sys.argv[1], encoding="utf-8").read().splitlines()[:4]
assert len(table) == 4 and len({re.search(" (mask|causal|none)  ", row).start() for row in table}) == 1, table
PY
status 0 train --data "$data" --grammar-size 20000 --tokens char --max-iters 2 --eval-iters 1 --out-dir 漢字
status 0 "$program" compare full 漢字
grep -q "The tokens differ, so these losses cannot be compared" out || fail "other tokens: $(cat out)"
python3 - out <<'PY' || fail "wide characters, or bits per character: $(cat out)"
import math, re, sys, unicodedata
head, full, other = open(sys.argv[1], encoding="utf-8").read().splitlines()[:3]
def column(row, at): return sum(1 + (unicodedata.east_asian_width(c) == "W") for c in row[:at])
assert column(full, full.index("causal")) == column(other, other.index("causal")) == head.index("mask")
# One token is one character; and the same text in words has several characters a word.
assert abs(float(other.split()[-1]) - float(other.split()[4]) / math.log(2)) < 2e-4, other
assert 4 < float(full.split()[4]) / math.log(2) / float(full.split()[-1]) < 8, full
PY
status 1 "$program" compare full nowhere
says nowhere; one_sentence
# Of a log without rows there is nothing to compare, and no picture is drawn; a damaged one says what helps.
cp -r full empty
for size in 0 20 44; do # nothing, a torn header, the header
    head -c $size full/log.csv >empty/log.csv
    status 1 "$program" compare full empty --out-dir pictures
    says "empty/log.csv has no rows"; one_sentence
    [ ! -e pictures ] || fail "a picture of nothing"
done
cp full/log.csv empty/log.csv
echo garbage >>empty/log.csv
status 1 "$program" compare full empty
says "'garbage'; keep a copy, delete this line and those after it"; one_sentence
sed -i '$d' empty/log.csv
status 0 "$program" compare full empty
