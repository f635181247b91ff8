#!/usr/bin/env bash
# The screenshots of a report in README, made from a run of `lab leak --quick`: docs/img/report-influence.png.
set -euo pipefail
cd "$(dirname "$0")/.."
maskgrad=${1:-build/release/maskgrad}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$maskgrad" lab leak --quick --out-dir "$work/leak" >/dev/null
node tests/browser/pictures.mjs chromium "$work/profile" "$work/leak/report.html" docs/img
ls -l docs/img/report-influence.png
