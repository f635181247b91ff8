#!/usr/bin/env bash
# train --config: flags in a file, and the settings of a run that is repeated by its own folder.
maskgrad=$1 source=$2
. "$source/tests/tools/lab.bash"
train() { "$maskgrad" train "$@" >out 2>err </dev/null || fail "train $*: $(cat err)"; }
refused() { # WORDS ARGUMENT...
    local words=$1 got=0
    shift
    "$maskgrad" train "$@" >out 2>err </dev/null || got=$?
    [ "$got" = 2 ] || fail "status $got, not 2: $* $(cat err)"
    grep -qF -e "$words" err || fail "'$(cat err)' does not say '$words'"
}
setting() { python3 -c 'import json, sys; print(json.dumps(json.load(open(sys.argv[1] + "/run.json"))["settings"][sys.argv[2]]))' "$@"; }
same() { cmp <(cut -d, -f1-6 "$1/log.csv") <(cut -d, -f1-6 "$2/log.csv") || fail "$1 and $2 differ"; }
for i in $(seq 80); do echo "o gato $i viu a casa # $i"; done >'my text.txt'
cat >tiny.conf <<'END'
# As nanoGPT's users write it.
data = 'my text.txt'      # in quotes
batch_size = 2
--block-size 8
n_layer=1
n-head	1

n_embd = 8
learning_rate = 1e-2   # another spelling
eval_interval = 4
eval-iters 2
max_iters = 4
scale = False
force = false
threads = 1
log-attention
END
train --config tiny.conf --out-dir a
[ "$(setting a lr) $(setting a scale) $(setting a data)" = '0.01 false "my text.txt"' ] && [ -e a/attention.csv ] || fail "a: $(cat a/run.json)"
# The command line wins, for lists and for what two flags set, too.
cp 'my text.txt' other.txt
printf 'mask = none\n' >>tiny.conf
train --lr 1e-3 --data other.txt --config tiny.conf --lookahead 0 --out-dir b
[ "$(setting b lr) $(setting b data) $(setting b lookahead) $(setting b n_embd)" = '0.001 "other.txt" "0" 8' ] || fail "b: $(cat b/run.json)"
# A run is repeated by its folder or its run.json, bit for bit.
train --config a --out-dir c
same a c
train --config a/run.json --out-dir d --max-iters 6
[ "$(setting d max_iters) $(setting d scale)" = '6 false' ] || fail "d"
echo more >>'my text.txt'
train --config a --out-dir e
grep -qF 'the data is not that of the run in a' err || fail "changed data is not named: $(cat err)"
# Mistakes are named with their line.
printf '\n# c\nblock_sze = 8\n' >bad.conf
refused "bad.conf, line 3: unrecognized option '--block-sze': did you mean --block-size?" --config bad.conf
printf 'batch_size = many\n' >bad.conf
refused "bad.conf, line 1: --batch-size takes a whole number" --config bad.conf
printf 'data = x\nbatch_size\n' >bad.conf
refused 'batch-size' --config bad.conf
printf 'mask none\nlookahead 0\n' >bad.conf
refused 'contradict each other' --config bad.conf
printf 'config tiny.conf\n' >bad.conf
refused 'cannot name another one' --config bad.conf
refused 'give one' --config a --resume --out-dir a
refused '--config is given twice: give it once' --config tiny.conf --config a
echo "a file of flags, and a run, are configurations"
