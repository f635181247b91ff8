#!/usr/bin/env bash
# The house rules of CONTRIBUTING.md, proven: an upward include does not compile, third-party headers are where its table
# says, no include climbs out of its folder, none is circular, the library keeps to itself, and all functions have users.
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
rooms=(lib/core lib/ops lib/nn lib/check datasets checkpoints trainers trainers/run trainers/launch trainers/sweep language experiments/frame
    experiments/shared
    experiments/labs commands)

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
[ "$checked" -gt 100 ] || complain "only $checked pairs of rooms were tried"

# The same for one pair by name, so that what is tested can be read.
compiles gpt.h "$(include_path lib/core)" && complain "lib/core can include gpt.h"
compiles gpt.h "$(include_path lib/nn)" || complain "lib/nn cannot include gpt.h"

# Third parties: the rows of CONTRIBUTING.md that mention a header name its rooms, and after "shared with" files elsewhere.
for header in cblas.h pthread.h Random123 csv.h pcre2.h iconv.h hdf5.h zlib.h jansson.h mpi.h argp.h libintl.h; do
    name=${header//./\\.}
    rows=$(grep -E "^\| [a-z/]+ \|.*\b$name" CONTRIBUTING.md) || complain "CONTRIBUTING.md has no room for $header"
    allowed="$(cut -d'|' -f2 <<<"$rows" | sed 's,[ ]*$,/,') $(sed -nE "s,.*$name \(shared with ([^)]+)\).*,\1,p" <<<"$rows" | tr -d ,)"
    users=$(grep -rlE "#include <$name" --include='*.[ch]' lib datasets checkpoints trainers language experiments commands main.c) ||
        complain "$header is included nowhere: CONTRIBUTING.md is out of date"
    for user in $users; do
        fits=0
        for place in $allowed; do [[ $user == "$place"* ]] && fits=1; done
        [ "$fits" = 1 ] || complain "$user includes $header, whose place is elsewhere"
    done
done

if grep -rnE '#include "[^"]*/' --include='*.[ch]' lib datasets checkpoints trainers language experiments commands main.c; then
    complain "headers are included by their bare name"
fi

# No two files include each other in a circle: tsort names the files of one.
includes=$(cd "$source" && grep -roE '^#include "[a-z0-9_]+\.h"' --include='*.h' lib datasets checkpoints trainers language experiments commands |
    sed -E 's,^.*/([a-z0-9_]+\.h):#include "(.*)",\1 \2,')
[ "$(wc -l <<<"$includes")" -gt 50 ] || complain "the includes of headers were not found"
tsort <<<"$includes" >/dev/null 2>"$work/circle" || complain "headers include each other in a circle: $(cat "$work/circle")"
# A bare name must belong to one file.
twice=$(git ls-files -- '*.h' ':!tests' 2>/dev/null | sed 's,.*/,,' | sort | uniq -d)
[ -z "$twice" ] || complain "two headers have one name: $twice"

# Nothing in the library prints, exits, asks the terminal or parses a command line. (The default failure handler says why
# it aborts, on stderr; mg_print prints to the caller's FILE.)
library=$build/libmaskgrad.a
[ -e "$library" ] || library=$build/libmaskgrad.so
nm -u -P "$library" 2>/dev/null | cut -d' ' -f1 | sort -u >"$work/symbols"
grep -qx malloc "$work/symbols" || grep -qx 'posix_memalign\|aligned_alloc\|mmap' "$work/symbols" || complain "no symbols read from $library"
# One file may call _exit and signal: those of the child process that it forks.
callers=$(grep -rlE '\b(_exit|signal)\(' --include='*.c' lib datasets checkpoints trainers/*.c)
[ "$callers" = checkpoints/h5_child.c ] || complain "_exit or signal is called in: $callers"
if grep -E '^(argp_.*|getopt.*|exit|_Exit|quick_exit|stdout|printf|puts|putchar|perror|isatty|ioctl|tc[gs]etattr|sigaction)(@|$)' "$work/symbols"; then
    complain "the library uses these, which only the program may"
fi

# The public interface is small, and docs/library.md lists all of it: what is declared in the installed headers, and what
# the shared library would export.
sed -nE 's/^\| [a-zA-Z, ]+ \| (`mg_.*)\|$/\1/p' docs/library.md | grep -o 'mg_[a-z0-9_]*' | sort >"$work/listed"
awk '/^(MG_API|static inline)/ {
    declaration = $0
    while (declaration !~ /[;{]/) { getline; declaration = declaration " " $0 }
    if (match(declaration, /mg_[a-z0-9_]+\(/)) print substr(declaration, RSTART, RLENGTH - 1)
}' "$build"/include/maskgrad.h "$build"/include/maskgrad_ops.h | sort >"$work/public"
[ "$(wc -l <"$work/public")" -gt 90 ] || complain "the public functions were not found"
[ "$(wc -l <"$work/public")" -le 115 ] || complain "$(wc -l <"$work/public") public functions: at most 115 are meant to be"
cmp "$work/public" "$work/listed" || complain "docs/library.md lists other functions than the installed headers: $(diff "$work/public" "$work/listed")"
readelf -sW "$library" 2>/dev/null | awk '$5 == "GLOBAL" && $6 == "DEFAULT" && $7 != "UND" && $8 ~ /^mg_/ {print $8}' | sort -u >"$work/exported"
strangers=$(comm -13 "$work/public" "$work/exported")
[ -s "$work/exported" ] || complain "no exported symbols were found in $library"
[ -z "$strangers" ] || complain "exported, but in no installed header: $strangers"

# What has no user outside the tests goes.
bash tests/tools/unused.sh "$build" . >"$work/unused" || complain "nothing but tests uses these: $(cat "$work/unused")"

[ "$wrong" -eq 0 ] && echo "$checked pairs of rooms, and eleven third-party headers, are in order"
exit "$wrong"
