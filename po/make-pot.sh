#!/usr/bin/env bash
# All that the program can say, as GNU gettext's template: the same file for the same source.
#
#     po/make-pot.sh SOURCE maskgrad.pot
#
# A sentence is found as an argument of the functions below. So that labs and tables need no marks, these strings are
# marked on the way: members of structs that hold texts, the two sides of ?:, what a function returns, and all that has
# a blank between two words. A single word in an array needs N_("…"). What the audit sees is evidence, which its JSON
# holds, too: English.
set -euo pipefail
source=$1
pot=$(realpath -m "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$source"

find main.c language experiments commands trainers datasets checkpoints lib -name '*.[ch]' |
    grep -vE '/frame/(dashes|plot_|gnuplot|report_style)' | LC_ALL=C sort >"$work/files"
mkdir "$work/src"
xargs cp --parents -t "$work/src" <"$work/files"
cd "$work/src"
xargs perl -0777 -pi -e '
    my $members = "help|doc|stray|question|title|x|y|unit|rows|columns|text|why|what|label";
    my $other_use = qr/alloc|CHECK|mg_fail|mg_count|mg_given_any|mg_warn_idle|#include|need_memory|N_\(|\.also|str[a-z]*cmp\(|(?<!mg_)\bf?printf\(|fputs\(/;
    my $literal = qr/"(?:[^"\\\n]|\\.)*"/;
    s{(/\*.*?\*/|\x27(?:[^\x27\\\n]|\\.)+\x27)|((?:[?:]|\breturn|\.(?:$members)\s=)\s+)?($literal(?:\s+(?:PRI\w+|$literal))*)}{
        my ($other, $before, $text) = ($1, $2 // "", $3);
        my $start = $-[0];
        my $statement = substr($_, $start > 400 ? $start - 400 : 0, $start > 400 ? 400 : $start);
        $statement =~ s/.*[;{}]//s;
        my $is_skipped = $ARGV =~ m{sweep/jobs|run/suggest|check/(audit_|causality|influence)};
        my $is_prose = defined $text && $text =~ /[a-zé,:%\x27] [a-zA-Z%]/ && $statement !~ $other_use;
        defined $other ? $other : $is_skipped ? "$before$text" : $before || $is_prose ? "${before}N_($text)" : $text;
    }gsex' <"$work/files"

# FUNCTION:ARGUMENT. xgettext takes one argument of a function at a time, so there are as many passes as a function has
# texts.
first=(N_ mg_error_set:3 mg_usage_error:2 mg_say:2 mg_tell:2 mg_printf:1 mg_fprintf:2 mg_print_wrapped:5 mg_warn_idle:4
    mg_refuse_empty:3 mg_h5_failed:2 mg_h5_error:2 mg_weights_error:2 refuse:2 warn:2 notice:2 print_fate:2
    lab_hypothesis:2 lab_guess:4 lab_did:2 lab_setting:2 lab_note:2 lab_exercise:2 lab_source:2 lab_progress:2
    lab_check_zero:2 lab_check_below:2 lab_check_at_most:2 lab_check_above:2 lab_check_at_least:2 lab_check_near:2
    lab_check_between:2 lab_check_count:2 lab_check_same_text:2 lab_undecided:2 lab_check_mean_below:2
    lab_check_mean_at_least:2
    lab_figure_begin:3 lab_line:3 lab_band:3 lab_errors:3 lab_points:3 lab_named_points:3 lab_bars:3 lab_fit_power:3
    lab_floor:2 lab_vertical:2 lab_figure_end:2 lab_heatmap_begin:3 lab_heatmap_end:2 lab_table_begin:3 lab_table_row:2
    lab_table_end:2 lab_texts:2 lab_training_figure:4 lab_format:2 lab_print_wrapped:2 lab_print_heading:2 print_beside:2 mg_snprintf:3 element:3
    prose:3 table_cell:3 write_list:2 judge:7)
second=(refuse:3 mg_print_wrapped:3 lab_guess:3 lab_setting:3 lab_progress:5 lab_check_zero:4 lab_check_below:5
    lab_check_at_most:5 lab_check_above:5 lab_check_at_least:5 lab_check_near:6 lab_check_between:6 lab_check_count:5
    lab_undecided:5 lab_check_mean_below:6 lab_check_mean_at_least:6 lab_table_begin:4 lab_print_wrapped:4 table_cell:4
    judge:8)
third=(lab_undecided:4)
extract() { # KEYWORD…
    xgettext --files-from="$work/files" --language=C --from-code=UTF-8 --keyword "${@/#/--keyword=}" --sort-output \
        --add-location=file --add-comments=Translators: --package-name=maskgrad --no-wrap --join-existing \
        --output="$work/all.pot" 2>"$work/said" || { cat "$work/said" >&2; exit 1; }
}
: >"$work/all.pot"
extract "${first[@]}"
extract "${second[@]}"
extract "${third[@]}"

# A noun of mg_count has two forms.
xgettext --files-from="$work/files" --language=C --from-code=UTF-8 --keyword --keyword=mg_count:2 --sort-output --no-wrap \
    --omit-header --output=- 2>/dev/null |
    sed -nE 's/^msgid "(.+)"$/\n#, c-format\nmsgid "%lld \1"\nmsgid_plural "%lld \1s"\nmsgstr[0] ""\nmsgstr[1] ""/p' >"$work/nouns"
cat "$work/nouns" >>"$work/all.pot"

# What has no word in it ("%s: %d", "-") needs no translation, nor what is a path, a flag, a tag, an identifier or a word
# for another program. No date, or each run would differ.
codes='td|th|center|left|right|linespoints|png|svg|zip|szip|en|es|io|n-bit|scale-offset|csv|stdin|float32|float64'
msgcat --no-wrap --sort-output "$work/all.pot" 2>/dev/null |
    awk -v codes="^\"($codes)\"\$" 'BEGIN {RS = ""; ORS = "\n\n"}
         {
             text = $0
             sub(/^(#[^\n]*\n)*/, "", text)
             is_header = text ~ /^msgid ""\nmsgstr/
             if (is_header) gsub(/#[^\n]*\n/, "")
             sub(/\nmsgstr.*/, "", text)
             gsub(/msgid(_plural)? /, "", text)
             is_code = text ~ /^"[{[]s[bios ]/ || (text !~ / / && text ~ /[_<>=\/%]|^"--|\(null\)/ && text !~ /\\t/)
             if (!is_header && (is_code || text ~ codes)) next
             gsub(/%[-+ #0-9.*]*(<[^>]*>|[hlzjt]*[a-zA-Z])/, "", text)
             gsub(/\\[a-z]/, " ", text)
             if (is_header || text ~ /[A-Za-z][A-Za-z]/) print
         }' |
    sed -E '/^"POT-Creation-Date/d; s/charset=CHARSET/charset=UTF-8/' >"$pot"
