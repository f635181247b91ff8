#!/usr/bin/env bash
# Portuguese: the same files, byte for byte, and the same exit status in both languages; English without a catalog; ASCII
# without UTF-8; and a catalog that is whole.
maskgrad=$1 source=$2
most_untranslated=40 # sentences that po/pt_BR.po may lack: new ones that wait for a translation
. "$source/tests/tools/lab.bash"
build=$(dirname "$maskgrad")
catalog=$build/locale/pt_BR/LC_MESSAGES/maskgrad.mo
[ -e "$catalog" ] || { echo "gettext's msgfmt was not there when maskgrad was built" >&2; exit 77; }
unset LANGUAGE LC_MESSAGES LANG MASKGRAD_BREAK
export LC_ALL=C.UTF-8

in_both() { # STATUS NAME COMMAND…: in folders en and pt, and {} is the folder
    local expected=$1 name=$2 language status
    shift 2
    for language in en pt-BR; do
        mkdir -p "${language%-*}"
        status=0
        (cd "${language%-*}" && "$maskgrad" --language "$language" "$@" >"$name.out" 2>"$name.err") || status=$?
        [ "$status" -eq "$expected" ] || fail "$name in $language: status $status: $(cat "${language%-*}/$name.err")"
    done
}
same_files() { # PATTERN LEAST: of the two folders; log.csv has times
    local n=0 file
    for file in $(cd en && find . -name "$1" ! -name log.csv | sort); do
        cmp "en/$file" "pt/$file" >&2 || fail "$file is not the same in both languages"
        n=$((n + 1))
    done
    [ "$n" -ge "$2" ] || fail "only $n files are called $1"
}
says() { # FILE TEXT
    grep -qF -- "$2" "$1" || fail "$1 does not say '$2': $(head -n 20 "$1")"
}

# Files for programs.
small=(--n-layer 1 --n-head 2 --n-embd 8 --block-size 8 --batch-size 4 --max-iters 6 --eval-interval 3 --eval-iters 1 --threads 1)
in_both 0 train train --data "$source/datasets/data/frases.csv" "${small[@]}" --out-dir run
in_both 0 mask lab mask --quick --out-dir mask
in_both 0 proof lab proof --quick --out-dir proof
in_both 0 logits logits run/checkpoint.h5 --ids 1,2,3
in_both 0 compare compare run run
in_both 0 inspect inspect run/checkpoint.h5
in_both 0 json inspect run/checkpoint.h5 --json
same_files '*.csv' 12
same_files checkpoint.h5 1
same_files samples.txt 1
for file in logits.out json.out; do cmp "en/$file" "pt/$file" >&2 || fail "$file is not the same in both languages"; done
cut -d, -f1-6 en/run/log.csv >en/log && cut -d, -f1-6 pt/run/log.csv >pt/log
cmp en/log pt/log >&2 || fail "log.csv is not the same in both languages"

# Exit codes, and sentences.
in_both 2 unknown trian
in_both 2 usage train --data x --n-layer 0
in_both 1 missing inspect nothing.h5
in_both 2 bare train
in_both 0 help help train
in_both 0 labs lab
says en/mask.out Hypotheses
says pt/mask.out Hipóteses
says pt/mask/report.html '<html lang="pt-BR">'
says pt/mask/report.html Hipóteses
says pt/mask/summary.csv ,pass
# No English is left in a report, but the titles of papers, in their list, and the command to repeat it.
sed -E '/<style>/,/<\/style>/d; /<script/,/<\/script>/d; s/<(pre|code)[^>]*>[^<]*<\/(pre|code)>//g; s/<[^>]*>/ /g; s/“[^”]*”//g' \
    pt/mask/report.html | grep -wniE 'the|and|with|which|is|are|what|row|weight' >english && fail "English in the report: $(head -n 5 english)"
# Names are no words: of commands, of flags, of labs.
for command in train evaluate generate sweep "lab mask" "lab heads"; do
    # shellcheck disable=SC2086
    diff <("$maskgrad" $command --help | grep -oE -- '--[a-z-]+' | sort -u) \
        <("$maskgrad" --language pt $command --help | grep -oE -- '--[a-z-]+' | sort -u) >&2 || fail "$command: other flags in Portuguese"
    # shellcheck disable=SC2086
    "$maskgrad" --language pt $command --usage >asked.out
    says asked.out "maskgrad $command ["
done
says pt/missing.err 'nothing.h5'
grep -q 'No such file' pt/missing.err && fail "what the system says is English: $(cat pt/missing.err)"

# Where the language comes from.
for asked in "--language pt" "--language=pt_BR.UTF-8" "--language pt-PT"; do
    # shellcheck disable=SC2086
    "$maskgrad" lab mask --help $asked >asked.out || fail "$asked: status $?"
    says asked.out Semente
done
language_of() { # VARIABLE=VALUE…: pt or en
    env -u LC_ALL "$@" "$maskgrad" lab mask --help >asked.out || fail "$*: status $?"
    grep -q Semente asked.out && echo pt || echo en
}
[ "$(language_of LANGUAGE=pt_BR)" = pt ] || fail "LANGUAGE alone is not enough"
[ "$(language_of LANGUAGE=fr:pt_BR:en)" = pt ] || fail "the second of LANGUAGE is not used"
[ "$(language_of LANGUAGE=en:pt_BR)" = en ] || fail "LANGUAGE=en:pt_BR is not English"
[ "$(language_of LANG=pt_BR.UTF-8)" = pt ] || fail "LANG is not read"
[ "$(language_of LC_MESSAGES=pt_BR.UTF-8)" = pt ] || fail "LC_MESSAGES is not read"
[ "$(language_of LC_ALL=C LANGUAGE=pt_BR)" = en ] || fail "LC_ALL=C does not win"
[ "$(language_of LANG=en_US.UTF-8)" = en ] || fail "English is not English"
"$maskgrad" lab mask --language 2>asked.err && fail "--language without a language"
[ $? -eq 2 ] || fail "--language without a language: not a usage error"

# Without a catalog: English, and no error.
cp "$maskgrad" ./alone
./alone --language pt-BR lab mask --quick --out-dir alone-lab >alone.out 2>alone.err || fail "without a catalog: status $?"
says alone.out Hypotheses
says alone.err "there is no translation into 'pt-BR': English is used"
LANGUAGE=pt_BR ./alone lab >alone.out 2>alone.err || fail "without a catalog: status $?"
grep -q translation alone.err && fail "a language of the environment is missed aloud"
# A damaged one.
mkdir -p locale/pt_BR/LC_MESSAGES
for damage in "head -c 20" "head -c 5000" "head -c 200000" "head -c -1" "tr a-m x" "tr % q"; do
    $damage <"$catalog" >locale/pt_BR/LC_MESSAGES/maskgrad.mo
    for command in "help train" "lab" "inspect en/run"; do
        # shellcheck disable=SC2086
        ./alone --language pt-BR $command >alone.out 2>alone.err || fail "$damage: $command: status $?"
    done
done

# Without UTF-8.
LC_ALL=C "$maskgrad" --language pt-BR lab mask --quick --out-dir ascii >ascii.out 2>ascii.err || fail "in ASCII: status $?"
LC_ALL=C "$maskgrad" --language pt-BR help bench >>ascii.out
LC_ALL=C grep -n '[^ -~]' ascii.out ascii.err >&2 && fail "the locale C gets more than ASCII"
says ascii.out Hipoteses
says ascii/report.html Hipóteses

# The catalog: whole, without guesses, and how much is missing.
command -v msgfmt >/dev/null && command -v xgettext >/dev/null || { echo "gettext is not installed" >&2; exit 77; }
msgfmt --check-format --check-domain --output-file=/dev/null "$source/po/pt_BR.po" 2>said || fail "$(cat said)"
[ -z "$(msgattrib --only-fuzzy --no-obsolete "$source/po/pt_BR.po")" ] || fail "pt_BR.po has fuzzy translations"
"$source/po/make-pot.sh" "$source" one.pot 2>/dev/null || fail "make-pot.sh: status $?"
[ "$(grep -c ^msgid one.pot)" -gt 1500 ] || fail "the sentences of the source were not found"
cp "$source/po/pt_BR.po" merged.po
"$source/po/merge.sh" one.pot merged.po 2>/dev/null
missing=$(msgattrib --untranslated merged.po | grep -c '^msgid "' || true)
if [ "$missing" -gt "$most_untranslated" ]; then
    msgattrib --untranslated --no-wrap merged.po >&2
    fail "$missing sentences have no Portuguese, $most_untranslated may: see above. \
\`cmake --build --preset dev --target po\` brings them into po/pt_BR.po, to be translated"
fi
echo "pt_BR.po lacks $missing of $(grep -c '^msgid "' one.pot) sentences"
