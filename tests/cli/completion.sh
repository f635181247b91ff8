#!/usr/bin/env bash
# Shell completion and man pages, made from the program's own tables: bash proposes what the program accepts.
set -u
program=$1 source=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0
fail() { echo "FAILED: $*" >&2; failures=$((failures + 1)); }

for shell in bash zsh fish; do
    "$source/scripts/completion.sh" "$shell" "$program" >"$folder/$shell" || fail "completion.sh $shell"
    command -v "$shell" >/dev/null || { echo "not checked: $shell is not installed"; continue; }
    "$shell" -n "$folder/$shell" || fail "$shell cannot read its completion"
done
cd "$folder" || exit 1
mkdir run && touch model.h5 text.txt

cat >ask.sh <<'END'
. ./bash
compopt() { :; } # outside of a completion it has nothing to act on
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_maskgrad
printf '%s\n' "${COMPREPLY[@]}" | sort | tr '\n' ' '
END
proposes() { # WANTED WORDS...
    local wanted=$1 got
    shift
    got=$(bash ask.sh maskgrad "$@")
    [ "${got% }" = "$wanted" ] || fail "'maskgrad $*' is completed with '$got', not '$wanted'"
}
proposes '--block-size' train --bl
proposes 'train' tra
proposes 'saturation' lab sat
proposes 'leak' lab le
proposes '--block-size' lab leak --bl
proposes '--quick' lab all --qu
proposes 'model.h5 run' generate ''
proposes 'model.h5 run' train --init-from ''
proposes 'char gpt2 word' train --tokens ''
proposes 'char' train --tokens = ch
proposes 'pt-BR' train --language p
proposes 'say stop' train --on-alarm s
proposes 'text.txt' train --data te
proposes 'text.txt' train --data = te
proposes 'run' train --out-dir ''
proposes '' train --lr ''
proposes 'export' help exp
proposes '--help' evaluate --he

# Every flag that is proposed is one: --help lists it. And every flag of --help is proposed.
commands=$(bash ask.sh maskgrad '' | tr ' ' '\n' | grep -vE '^(-|help|version|lab)')
[ "$(wc -w <<<"$commands")" -gt 10 ] || fail "few commands: $commands"
for command in $commands; do
    bash ask.sh maskgrad "$command" -- | tr ' ' '\n' | grep . | sort >proposed
    "$program" "$command" --help | grep -oE '^  (   |-.,) --[a-z0-9-]+' | sed 's/.*--/--/' | grep -v '^--usage$' | sort >listed
    cmp -s proposed listed || fail "$command: $(diff proposed listed)"
done
# What completion names for a flag is what the flag takes.
for mask in $(bash ask.sh maskgrad train --mask ''); do
    case $mask in *:) mask=${mask}2 ;; esac
    "$program" train --data nowhere --mask "$mask" 2>&1 | grep -q "'nowhere'" || fail "--mask $mask is proposed"
done
for words in 'tokens gpt2' 'on-alarm off'; do
    # shellcheck disable=SC2086
    "$program" train --data nowhere --${words% *} "${words#* }" 2>&1 | grep -qE "nowhere|merges" || fail "--$words is proposed"
done

if command -v help2man >/dev/null; then
    "$source/scripts/manuals.sh" "$program" man || fail "manuals.sh"
    for command in $commands lab; do
        [ -s "man/maskgrad-$command.1.gz" ] || fail "no man page of $command"
    done
    zcat man/maskgrad-train.1.gz >train.1
    grep -q 'block\\-size' train.1 ||
        fail "maskgrad-train(1) does not list --block-size"
    if command -v man >/dev/null; then
        man --warnings -l train.1 >/dev/null 2>warnings
        [ ! -s warnings ] || fail "man warns: $(cat warnings)"
    fi
else
    echo "not checked: the man pages, because help2man is not installed"
fi
exit $((failures > 0))
