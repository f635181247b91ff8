# What the tests of labs begin with: an empty folder to work in, gone at the end, and the ways to fail. The caller has
# $maskgrad.
set -u
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
cd "$folder" || exit 1
fail() {
    echo "FAIL: $*" >&2
    exit 1
}
all_pass() { # FOLDER: its summary has verdicts, and none but pass
    local passed
    passed=$(grep -c ',pass$' "$1/summary.csv")
    [ "${passed:-0}" -ge 1 ] && [ "$passed" -eq $(($(wc -l <"$1/summary.csv") - 1)) ] ||
        fail "$1: $(grep -v ',pass$' "$1/summary.csv" | tail -n +2)"
}
