#!/usr/bin/env bash
# Our ids against tiktoken's, with OpenAI's own merges, both from npm. Exits 77 (skipped) where npm cannot provide them.
set -euo pipefail
program=$1 source=$2

skip() {
    echo "skipped: $1" >&2
    exit 77
}
command -v node >/dev/null || skip "node is missing"
command -v npm >/dev/null || skip "npm is missing"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
npm install --prefix "$folder" --no-save --no-audit --no-fund --ignore-scripts --fetch-retries 1 \
    tiktoken@1.0.22 gpt-3-encoder@1.1.4 >"$folder/npm.log" 2>&1 ||
    skip "npm could not install tiktoken@1.0.22 and gpt-3-encoder@1.1.4: $(head -n 3 "$folder/npm.log" | tr '\n' ' ')"

node "$source/tests/reference/tiktoken_ids.mjs" "$folder" "$(dirname "$program")/tests/encode" "$source"
