#!/usr/bin/env bash
# Lists what nothing uses outside the tests: functions with external linkage that no other file of the program refers to
# and their own does not either, and macros and inline functions of headers whose name appears once. Prints nothing and
# exits 0 if there is none.
#
#     tests/tools/unused.sh build/dev .
#
# Functions in the tables of docs/library.md are for users. So are macros of the public headers. What a header declares
# under a comment that begins "For tests" is for tests.
set -euo pipefail
build=$1 source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$source"
sources=(lib datasets checkpoints trainers language experiments commands main.c)

without_comments() { # FILE...
    perl -0pe 's{/\*.*?\*/}{ }gs; s{//[^\n]*}{}g' "$@"
}
mapfile -t c_files < <(find "${sources[@]}" -name '*.c')
mapfile -t headers < <(find "${sources[@]}" -name '*.h')
count_words() { grep -oE '[A-Za-z_][A-Za-z0-9_]*' | sort | uniq -c | awk '{print $2, $1}' | sort; }
without_comments "${c_files[@]}" | count_words >"$work/in_c"
without_comments "${c_files[@]}" "${headers[@]}" | count_words >"$work/anywhere"

grep -E '^\| [a-zA-Z, ]+ \| `mg_' docs/library.md | grep -o 'mg_[a-z0-9_]*' | sort -u >"$work/public"
perl -0ne 'while (m{/\* For tests.*?\*/(.*?)(?:\n\n|\z)}gs) { print "$1\n" }' "${headers[@]}" |
    grep -oE 'mg_[a-z0-9_]+|[a-z0-9_]+' | sort -u >"$work/hooks"
# A function of the C library that the program replaces is called by libraries.
sed -nE 's/^MG_API [^(]*[ *]([a-z_0-9]+)\(.*/\1/p' "${c_files[@]}" | sort -u - "$work/hooks" -o "$work/hooks"

nm -A --defined-only "$build"/libmg_*.a 2>/dev/null | awk 'NF > 2 && $(NF - 1) == "T" {print $NF}' |
    grep -v '[.]' | sort -u >"$work/functions"
nm -A --undefined-only "$build"/libmg_*.a 2>/dev/null | awk '{print $NF}' | sort -u >"$work/referenced"
[ "$(wc -l <"$work/functions")" -gt 500 ] || { echo "only $(wc -l <"$work/functions") functions were found in $build" >&2; exit 2; }

comm -23 "$work/functions" "$work/referenced" | comm -23 - "$work/public" | comm -23 - "$work/hooks" |
    join -a 1 -e 0 -o 0,2.2 - "$work/in_c" | awk '$2 < 2 {print $1 ": no caller outside the tests"}' >"$work/unused"

without_comments "${headers[@]}" | sed -nE 's/^#define ([A-Za-z_0-9]+).*/\1/p; s/^(MG_INLINE|static inline) [^(]*\b([a-z_0-9]+)\(.*/\2/p' |
    sort -u | comm -23 - "$work/public" | comm -23 - "$work/hooks" | join - "$work/anywhere" |
    awk '$2 < 2 && $1 !~ /_H$/ {print $1 ": defined in a header, used nowhere"}' >>"$work/unused"

cat "$work/unused"
[ ! -s "$work/unused" ]
