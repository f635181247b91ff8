# report.html in a browser: every picture is there, and it needs neither the network nor another file.
maskgrad=$1
set -u
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || {
    echo "SKIP: no chromium to open the report with"
    exit 77
}
command -v gnuplot >/dev/null || {
    echo "SKIP: no gnuplot to draw pictures with"
    exit 77
}
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
fail() {
    echo "FAIL: $*" >&2
    exit 1
}
"$maskgrad" lab mask --out-dir "$folder/run" >/dev/null || fail "lab mask: status $?"
mkdir "$folder/alone" && cp "$folder/run/report.html" "$folder/alone/"

# In a folder of its own, with a script that writes what the browser made of it.
cat >"$folder/probe.html" <<'END'
<script>
window.addEventListener('load', () => {
    const images = [...document.images];
    document.title = ['loaded', images.filter(i => i.complete && i.naturalWidth > 0).length, 'of', images.length,
        'requests', performance.getEntriesByType('resource').filter(r => !r.name.startsWith('data:')).length,
        'without-text', images.filter(i => i.alt.length < 20).length,
        'wider', document.documentElement.scrollWidth > window.innerWidth ? 1 : 0].join(' ');
});
</script>
END
cat "$folder/probe.html" >>"$folder/alone/report.html"
look() { # look WIDTH: the title that the probe set
    timeout 120 "$browser" --headless --no-sandbox --disable-gpu --disable-background-networking --no-first-run \
        --user-data-dir="$folder/profile" --window-size="$1,900" --virtual-time-budget=5000 --dump-dom \
        "file://$folder/alone/report.html" 2>"$folder/browser.txt" | sed -n 's/.*<title>\(.*\)<\/title>.*/\1/p'
}
for width in 390 1920; do
    title=$(look $width)
    [ "$title" = "loaded 5 of 5 requests 0 without-text 0 wider 0" ] || fail "$width pixels wide: '$title'"
done
grep -i 'net::ERR\|Failed to load' "$folder/browser.txt" && fail "something did not load"
grep -qE '(src|href)="(https?:)?//|https?:' "$folder/run/report.html" && fail "the report points outside of itself"

command -v node >/dev/null || {
    echo "SKIP: no node to touch the report with"
    exit 77
}
source=$(cd "$(dirname "$0")/../.." && pwd)
"$maskgrad" lab leak --quick --out-dir "$folder/leak" >/dev/null 2>&1 || fail "lab leak: status $?"
node "$source/tests/browser/report.mjs" "$browser" "$folder/profile2" "$folder/leak" || fail "the report does not answer"
