#!/usr/bin/env bash
# The playground's page, opened from disk: both models train, the weights are those of a native build in portable
# arithmetic, and it asks for nothing and complains of nothing. Without the page's data there is one sentence.
set -u
maskgrad=$1 source=$2
. "$source/tests/tools/lab.bash"

"$maskgrad" playground --out page.html --data "$source/LICENSE" >log 2>&1 && fail "a licence is no grammar"
grep -q 'is not a grammar' log || fail "$(cat log)"
[ ! -e page.html ] || fail "a refused page was written"
for tool in clang wasm-ld node chromium; do
    command -v $tool >/dev/null || { echo "SKIPPED: playground needs $tool (scripts/install-deps.sh --tests)"; exit 77; }
done
"$maskgrad" playground --out page.html --data "$source/datasets/data/sentences.csv" >log 2>&1 || fail "$(cat log)"
[ "$(wc -c <page.html)" -lt 500000 ] || fail "the page has $(wc -c <page.html) bytes"
grep -qE '(src|href)="|https?://|>DATA<|>LIBRARY<|^SCRIPT' page.html && fail "the page points outside of itself, or has a gap"

steps=12
node "$source/tests/browser/until.mjs" chromium profile "file://$PWD/page.html#stop=$steps" \
    "models.every((m) => m.step === $steps && m.hash && !running)" \
    'models.map((m) => [m.hash, m.losses.length, m.maps.filter((w, i) => i % T > Math.floor(i / T) % T && w !== 0).length].join(" ")).join(";")' \
    >found || fail "in the browser: $(cat found)"

grep -o '"ids":"[^"]*"' page.html | cut -d'"' -f4 | base64 -d >ids
native=$(dirname "$maskgrad")/portable
mkdir -p "$native"
CFLAGS=-Iexperiments/playground "$source/scripts/portable-build.sh" gcc "$native/playground" \
    experiments/playground/playground.c tests/portable/playground.c >log 2>&1 || fail "$(cat log)"
causal=$("$native/playground" ids 29 causal $steps) none=$("$native/playground" ids 29 none $steps)
[ "$causal" != "$none" ] || fail "the mask changes nothing"
[[ $(cat found) == "\"$causal $steps 0;$none $steps "[1-9]*\" ]] || fail "native $causal and $none, in the browser $(cat found)"
echo "two models of $steps steps in a browser: $causal and $none, as natively"
