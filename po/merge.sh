#!/usr/bin/env bash
# Brings a template's sentences into catalogs: new ones are empty, those that are gone are removed, and no translation is
# guessed.
#
#     po/merge.sh maskgrad.pot po/pt_BR.po…
set -euo pipefail
template=$1
shift
for catalog; do
    msgmerge --quiet --no-fuzzy-matching --no-location --no-wrap --sort-output "$catalog" "$template" |
        msgattrib --no-obsolete --no-location --no-wrap --sort-output --output-file="$catalog"
    printf '%s: ' "$(basename "$catalog")"
    msgfmt --check-format --statistics --output-file=/dev/null "$catalog" 2>&1 | tail -n 1
done
