#!/usr/bin/env bash
# Builds the playground's page, but for its data, which `maskgrad playground` puts in: page.html with page.js and the
# library as WebAssembly inside.
#
#     scripts/playground-page.sh OUT.html
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: $0 OUT.html" >&2; exit 2; }
out=$(realpath "$1")
cd "$(dirname "$0")/../experiments/playground"
LDFLAGS='-mexec-model=reactor -Wl,--strip-all' CFLAGS='-Iexperiments/playground' \
    ../../scripts/portable-build.sh wasm "$out.wasm" experiments/playground/playground.c
base64 -w 0 "$out.wasm" >"$out.base64"
awk -v library="$out.base64" '
    /LIBRARY/ { getline text <library; sub(/LIBRARY.*/, ""); print $0 text "</script>"; next }
    /^SCRIPT$/ { while ((getline line <"page.js") > 0) print line; next }
    { print }' page.html >"$out.new"
rm "$out.base64"
mv "$out.new" "$out"
