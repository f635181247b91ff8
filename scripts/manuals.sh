#!/usr/bin/env bash
# Makes the man pages from --help: maskgrad(1), and one per command, such as maskgrad-train(1). Needs help2man.
#
#     scripts/manuals.sh build/release/maskgrad build/release/man
set -euo pipefail
program=${1:?the program} folder=${2:?where the pages go}
export LC_ALL=C.UTF-8 LANGUAGE=en COLUMNS=80
version=$("$program" --version | sed -nE 's/^maskgrad ([0-9.]+).*/\1/p')
rm -rf "$folder"
mkdir -p "$folder"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# help2man calls a page what it runs, and runs it with --help.
page() { # NAME PURPOSE COMMAND...
    local name=$1 purpose=$2
    shift 2
    printf '#!/bin/sh\nexec "%s" %s --help\n' "$program" "$*" >"$work/$name"
    chmod +x "$work/$name"
    help2man --no-info --no-discard-stderr --version-string="$version" --source="maskgrad $version" \
        --manual='User Commands' --name="$purpose" --include="$work/also" "$work/$name" |
        gzip -9n >"$folder/$name.1.gz"
}
"$program" help | sed -nE 's/^  ([a-z]+) +(.*)/\1\t\2/p' >"$work/commands"
[ "$(wc -l <"$work/commands")" -gt 10 ] || { echo "$program lists no commands" >&2; exit 1; }

{ echo '[SEE ALSO]'; sed -E 's/^([a-z]+).*/.BR maskgrad-\1 (1),/; $s/,$//' "$work/commands"; } >"$work/also"
page maskgrad 'trains a tiny GPT with and without the causal mask'
printf '[SEE ALSO]\n.BR maskgrad (1)\n' >"$work/also"
while IFS=$'\t' read -r command purpose; do
    page "maskgrad-$command" "$purpose" "$command" </dev/null
done <"$work/commands"
