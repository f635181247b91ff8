#!/usr/bin/env bash
# Did you mean …? Slips of the keys, and other programs' names, are answered with what is meant; help and version are
# commands, too.
maskgrad=$1 source=$2
. "$source/tests/tools/lab.bash"
asks() { # WORDS ARGUMENT...
    local words=$1 got=0
    shift
    "$maskgrad" "$@" >out 2>err </dev/null || got=$?
    [ "$got" = 2 ] || fail "status $got, not 2: $*"
    [ ! -s out ] || fail "$*: $(cat out)"
    grep -qF -e "$words" err || fail "$*: '$(cat err)' does not say '$words'"
}
silent() { # ARGUMENT...: nothing is near
    "$maskgrad" "$@" >out 2>err </dev/null && fail "no failure: $*"
    grep -q 'did you mean' err && fail "$*: $(cat err)"
    return 0
}
asks "there is no command 'trian': did you mean train?" trian
asks 'did you mean generate?' genrate x
asks 'did you mean inspect?' Inspect x
asks 'did you mean help?' hepl
asks 'did you mean version?' versoin
silent xyzzy
silent zz
asks "there is no lab 'laek': did you mean leak?" lab laek
asks 'did you mean saturation?' lab saturaton
asks 'did you mean train?' help trian

flag() { asks "unrecognized option '--${2%%=*}': did you mean --$3?" "$1" "--$2"; }
flag train block-sze=8 block-size
flag train max_itres=8 max-iters
flag train Lr=8 lr
flag train max-steps=5 max-iters
flag train n_layers=2 n-layer
flag train num_hidden_layers n-layer
flag train d_model=8 n-embd
flag train context_length=8 block-size
flag train n_ctx=8 block-size
flag train batch_sz=8 batch-size
flag train warmup_steps=8 warmup-iters
flag train max_grad_norm=1 grad-clip
flag train output_dir=x out-dir
flag train sep=x delimiter
flag generate max_tokens=3 max-new-tokens
flag generate num_return_sequences=3 num-samples
flag evaluate bs=3 batch-size
flag inspect jsn json
asks 'max-iters counts steps' train --epochs 3
asks 'everything runs on the processor' train --device=cuda
asks 'the optimizer is always AdamW' train --optimizer sgd
silent train --quantum-entanglement
silent generate --d_model 3 # not a flag of generate
# What getopt takes stays: values that look like flags, the beginnings of names, other spellings, what follows --.
silent generate nowhere --prompt --block-sze
grep -q nowhere err || fail "a value is not a flag: $(cat err)"
silent train --data nowhere --learning_rate 1e-3 --block-s 8 --steps 3
grep -q nowhere err || fail "$(cat err)"
silent generate -p --top nowhere
grep -q nowhere err || fail "$(cat err)"
# An argument too many is told where it belongs.
asks 'unexpected argument: book.txt (data is given as --data FILE)' train book.txt
asks 'unexpected argument: book.txt (data is given as --data FILE)' train --max-iters 3 book.txt
asks 'unexpected argument: x.csv (data is given as --data FILE)' playground x.csv
asks 'unexpected argument: run (a checkpoint is given as --checkpoint FILE)' bench run
asks 'unexpected argument: mask=none (values are given as --set FLAG=A,B, and data as -- --data FILE)' sweep mask=none
asks 'unexpected argument: model.py (a program is given as -- PROGRAM ARG...)' audit python3 model.py
echo 'force yes' >flags.txt
asks 'flags.txt, line 1: unexpected argument: yes' train --config flags.txt
grep -q 'given as' err && fail "a file of flags: $(cat err)"

for command in train 'lab leak' compare; do
    # shellcheck disable=SC2086
    cmp <("$maskgrad" help $command) <("$maskgrad" $command --help) || fail "help $command"
done
cmp <("$maskgrad" help) <("$maskgrad" --help) || fail "help"
cmp <("$maskgrad" version) <("$maskgrad" --version) || fail "version"
echo "what was meant is named"
