#!/usr/bin/env bash
# --help of every command fits 80 columns and is a table: all texts begin in one column.
set -euo pipefail
program=$1
help=$(mktemp)
trap 'rm -f "$help"' EXIT
export LC_ALL=C.UTF-8
failures=0
fail() {
    echo "FAILED: $*" >&2
    failures=$((failures + 1))
}

spellings() { # of all flags of a --help: -b, --name, and --other of "; also --other"
    sed -zE 's/\n {11,}/ /g' | grep -oE '^ +(-., )?--[^ =]+|; also --.*$' | grep -oE -e '-[^ ,]+'
}
commands=$("$program" --help | sed -nE 's/^  ([a-z]+) +[A-Z].*/\1/p')
labs=$("$program" lab | sed -nE 's/^  ([a-z]+) +[A-Z].*/lab \1/p')
n=0
while read -r command; do
    n=$((n + 1))
    # shellcheck disable=SC2086
    "$program" $command --help >"$help" || fail "$command --help: status $?"
    awk 'length($0) > 80' "$help" | grep . && fail "$command --help: wider than 80 columns"
    grep -q ' $' "$help" && fail "$command --help: blanks at the end of a line"
    options=$(grep -cE '^(  |      )-' "$help")
    [ "$(grep -cE '^(  -.,|     ) --[^ ]+ ' "$help")" -eq "$options" ] || fail "$command --help: an option has no text beside it"
    [ "$(grep -E '^(  |      )-' "$help" | grep -cE '^.{28} [^ ]')" -eq "$options" ] || fail "$command --help: texts in other columns"
    # One spelling, one flag: letters, names and other names.
    twice=$(spellings <"$help" | sort | uniq -d)
    [ -z "$twice" ] || fail "$command --help: of two flags: $twice"
done < <(printf '%s\n%s\nlab all\n' "$commands" "$labs")
grep -qx -e --ctx-size <<<"$("$program" train --help | spellings)" || fail "the other spellings are not read"
[ "$n" -ge 19 ] || fail "only $n commands and labs"
# Help that could not be written is not a success.
if [ -w /dev/full ]; then
    while read -r command; do
        status=0
        # shellcheck disable=SC2086
        "$program" $command >/dev/full 2>"$help" || status=$?
        [ "$status" -eq 1 ] && grep -q 'the output cannot be written: No space left on device$' "$help" ||
            fail "$command to a full disk: status $status: $(cat "$help")"
    done < <(printf '%s --help\n' $commands "lab leak" "lab all" "" && printf '%s\n' "train --usage" "train -h" --version lab)
fi
# All commands take the same range of seeds.
for command in "train --data x" "generate x" "evaluate x" "lab mask" "lab leak" "lab all"; do
    # shellcheck disable=SC2086
    "$program" $command --seed -1 2>"$help" >&2 && fail "$command --seed -1"
    grep -q -e '--seed takes a whole number from 0 to 9200000000000000000, not' "$help" || fail "$command: $(cat "$help")"
done
# On a narrower terminal, help is as narrow.
while read -r command; do
    # shellcheck disable=SC2086
    COLUMNS=40 "$program" $command >"$help" || fail "$command: status $? in 40 columns"
    grep -E '^.{41,}' "$help" && fail "$command: wider than 40 columns"
done < <(printf '%s --help\n' $commands "lab all" && echo "lab" && echo "--help")
grep -qe '--learning-rate' <<<"$("$program" train --help)" || fail "other spellings are not shown"
grep -q 'Exit status: 0 done' <<<"$("$program" --help)" || fail "the exit status is not shown"
awk 'length($0) > 80' <<<"$("$program" --help)" | grep . && fail "--help: wider than 80 columns"
exit $((failures > 0))
