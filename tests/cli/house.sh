#!/usr/bin/env bash
# The house rules of CONTRIBUTING.md, proven: an upward include does not compile, third-party headers are where its table
# says, and no include climbs out of its folder.
set -euo pipefail
build=$(dirname "$1")
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$source"
wrong=0

complain() {
    echo "$1" >&2
    wrong=1
}

compiler=$(sed -n 's/^CMAKE_C_COMPILER:.*=//p' "$build/CMakeCache.txt")
rooms=(lib/core lib/ops lib/nn lib/check datasets checkpoints trainers experiments)

include_path() { # ROOM: what its own files are compiled with
    local file
    file=$(printf '%s\n' "$1"/*.c | head -n 1)
    grep -F "\"command\"" "$build/compile_commands.json" | grep -F -- "-c $source/$file" | head -n 1 |
        grep -oE -- '-(I|isystem )[^ ]+' || true
}

compiles() { # HEADER INCLUDE-PATH...
    local header=$1
    shift
    echo "#include \"$header\"" >"$work/probe.c"
    # shellcheck disable=SC2068
    "$compiler" -std=c11 -D_POSIX_C_SOURCE=200809L -fsyntax-only $@ "$work/probe.c" 2>/dev/null
}

# A room sees its own headers and those of the rooms below it, and none from above. A header of a room above is
# represented by the first that the room has.
checked=0
for ((i = 0; i < ${#rooms[@]}; i++)); do
    flags=$(include_path "${rooms[$i]}")
    [ -n "$flags" ] || complain "no compile command for ${rooms[$i]}"
    for ((j = 0; j < ${#rooms[@]}; j++)); do
        for header in "${rooms[$j]}"/*.h; do
            [ -e "$header" ] || continue
            if [ "$j" -le "$i" ]; then
                compiles "$(basename "$header")" "$flags" || complain "${rooms[$i]} cannot include $header"
            elif compiles "$(basename "$header")" "$flags"; then
                complain "${rooms[$i]} can include $header, which is above it"
            fi
            checked=$((checked + 1))
            break
        done
    done
done
[ "$checked" -gt 50 ] || complain "only $checked pairs of rooms were tried"

# The same for one pair by name, so that what is tested can be read.
compiles gpt.h "$(include_path lib/core)" && complain "lib/core can include gpt.h"
compiles gpt.h "$(include_path lib/nn)" || complain "lib/nn cannot include gpt.h"

# Third parties: the rows of CONTRIBUTING.md that mention a header name its rooms, and behind "shared with" a file elsewhere.
for header in cblas.h pthread.h Random123 csv.h pcre2.h hdf5.h jansson.h argp.h; do
    name=${header//./\\.}
    rows=$(grep -E "^\| [a-z/]+ \|.*\b$name" CONTRIBUTING.md) || complain "CONTRIBUTING.md has no room for $header"
    allowed="$(cut -d'|' -f2 <<<"$rows" | sed 's,[ ]*$,/,') $(sed -nE "s,.*$name \(shared with ([a-z/_]+).*,\1,p" <<<"$rows")"
    users=$(grep -rlE "#include <$name" --include='*.[ch]' lib datasets checkpoints trainers experiments main.c) ||
        complain "$header is included nowhere: CONTRIBUTING.md is out of date"
    for user in $users; do
        fits=0
        for place in $allowed; do [[ $user == "$place"* ]] && fits=1; done
        [ "$fits" = 1 ] || complain "$user includes $header, whose place is elsewhere"
    done
done

if grep -rnE '#include "[^"]*/' --include='*.[ch]' lib datasets checkpoints trainers experiments main.c; then
    complain "headers are included by their bare name"
fi

[ "$wrong" -eq 0 ] && echo "$checked pairs of rooms, and eight third-party headers, are in order"
exit "$wrong"
