#!/usr/bin/env bash
# The pages in docs/pt-BR: each names the English page that it is of, as git names its content, and its links lead
# somewhere. The pages that have fallen behind are named.
set -euo pipefail
source=$2
cd "$source"
most_behind=5 # pages whose English has changed since: new ones that wait for a translation
fail() {
    echo "FAIL: $*" >&2
    exit 1
}
hash_of() { # as `git hash-object` has it
    (printf 'blob %d\0' "$(wc -c <"$1")" && cat "$1") | sha1sum | cut -c1-12
}
behind=0 n=0
for page in docs/pt-BR/*.md; do
    for link in $(grep -oE '\]\([^)# ]+' "$page" | cut -c3- | grep -vE '^https?:'); do
        [ -e "docs/pt-BR/$link" ] || fail "$page links to $link, which is not there"
    done
    [ "$page" = docs/pt-BR/glossario.md ] && continue # the glossary is of no page
    read -r _ english hash _ <"$page"
    [ -f "$english" ] || fail "$page does not begin with <!-- docs/PAGE.md HASH -->"
    n=$((n + 1))
    [ "$(hash_of "$english")" = "$hash" ] && continue
    behind=$((behind + 1))
    echo "$page is of an older $english, which is $(hash_of "$english") now" >&2
done
[ "$n" -ge 18 ] || fail "only $n pages"
[ "$behind" -le "$most_behind" ] || fail "$behind pages are behind, $most_behind may be: see above"
echo "$n pages, $behind behind"
