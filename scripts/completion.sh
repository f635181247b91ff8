#!/usr/bin/env bash
# Prints what lets a shell complete maskgrad's command lines: commands, labs, flags, and files by kind. All of it comes
# from the program's own tables.
#
#     scripts/completion.sh bash build/release/maskgrad >maskgrad
#     scripts/completion.sh zsh build/release/maskgrad >_maskgrad
#     scripts/completion.sh fish build/release/maskgrad >maskgrad.fish
set -euo pipefail
shell=${1:?bash, zsh or fish} program=${2:?the program}
export LC_ALL=C LANGUAGE=en COLUMNS=80

names() { # COMMAND...: the names in a list of names and texts
    "$program" "$@" | sed -nE 's/^  ([a-z]+) .*/\1/p' | tr '\n' ' '
}
commands=$(names help) labs="$(names lab)all "
[ "$(wc -w <<<"$commands")" -gt 10 ] && [ "$(wc -w <<<"$labs")" -gt 10 ] || { echo "$program lists no commands" >&2; exit 1; }

# Rows: where, name, letter, value, help. The row without a name is that of a command's arguments.
rows() {
    local command
    for command in $commands; do "$program" "$command" --flag-table | sed "s/^/$command\t/"; done
    for command in $labs; do
        [ "$command" = all ] || "$program" lab "$command" --flag-table | sed "s/^/lab $command\t/"
    done
}

# What completes a value: words, or the kind of file.
kinds='
function kind(name, value) {
    if (name == "tokens") return "char word gpt2"
    if (name == "mask") return "causal none window: prefix: block: documents documents:run-on"
    if (name == "language") return "en pt-BR"
    if (name == "on-alarm") return "say stop off"
    if (name == "checkpoint" || name == "draft" || name == "init-from" || value ~ /^[{]?CHECKPOINT/) return "@checkpoint"
    if (value ~ /^(DIR|FOLDER|RUN)/) return "@folder"
    if (value ~ /^FILE/) return "@file"
    return ""
}
# The first clause of a help text, without what a shell would read.
function brief(help) {
    gsub(/[][\\\047"`$]/, "", help)
    if (length(help) > 60) sub(/[;:(,.] .*/, "", help)
    return help
}
BEGIN { FS = "\t" }'

in_bash() {
    cat <<END
# Completion of maskgrad for bash; made by scripts/completion.sh.
_maskgrad() {
    local cur=\${COMP_WORDS[COMP_CWORD]} flag=\${COMP_WORDS[COMP_CWORD - 1]} where=\${COMP_WORDS[1]} kind= flags=
    local commands='${commands}help version' labs='$labs'
    COMPREPLY=()
    if [ "\$cur" = = ]; then
        cur=
    elif [ "\$flag" = = ]; then
        flag=\${COMP_WORDS[COMP_CWORD - 2]}
    fi
    if [ "\$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "\$commands --help --version" -- "\$cur")
        return
    fi
    if [ "\$where" = help ]; then
        [ "\$COMP_CWORD" -gt 2 ] || mapfile -t COMPREPLY < <(compgen -W "\$commands" -- "\$cur")
        return
    fi
    if [ "\$where" = lab ]; then
        if [ "\$COMP_CWORD" -eq 2 ]; then
            mapfile -t COMPREPLY < <(compgen -W "\$labs --help" -- "\$cur")
            return
        fi
        where="lab \${COMP_WORDS[2]}"
        [ "\$where" != 'lab all' ] || where=lab
    fi
    case "\$where \$flag" in
END
    rows | awk "$kinds"'
        $2 != "" && $4 != "" { printf "    \047%s --%s\047", $1, $2
            if ($3 != "") printf " | \047%s -%s\047", $1, $3
            printf ") kind=\047%s\047 ;;\n", kind($2, $4) == "" ? "@none" : kind($2, $4) }'
    cat <<'END'
    esac
    if [ -z "$kind" ]; then
        case "$where" in
END
    rows | awk "$kinds"'
        function flush() { if (where != "") printf "        \047%s\047) kind=\047%s\047 flags=\047%s\047 ;;\n", where, argument, flags }
        $2 == "" { flush(); where = $1; argument = kind("", $4); flags = "--help"; next }
        { flags = flags " --" $2 }
        END { flush() }'
    cat <<'END'
        esac
        if [[ $cur == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$cur")
            return
        fi
    fi
    case "$kind" in
    '' | @none) ;;
    @checkpoint) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$cur"; compgen -f -X '!*.h5' -- "$cur") ;;
    @folder) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
    @file) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$kind" -- "$cur") ;;
    esac
}
complete -F _maskgrad maskgrad
END
}

in_zsh() {
    cat <<END
#compdef maskgrad
# Completion of maskgrad for zsh; made by scripts/completion.sh.
local -a commands=(${commands}help version) labs=($labs)
local where=\$words[2]
if (( CURRENT == 2 )); then compadd -- \$commands; return; fi
if [[ \$where == help ]]; then compadd -- \$commands; return; fi
if [[ \$where == lab ]]; then
    if (( CURRENT == 3 )); then compadd -- \$labs; return; fi
    [[ \$words[3] == all ]] || where="lab \$words[3]"
    shift words; (( CURRENT-- ))
fi
shift words; (( CURRENT-- ))
case \$where in
END
    rows | awk "$kinds"'
        function action(k) {
            if (k == "@checkpoint") return "_files -g \"*.h5(-.)\""
            if (k == "@folder") return "_files -/"
            if (k == "@file") return "_files"
            gsub(/:/, "\\:", k)
            return k == "" ? " " : "(" k ")"
        }
        function flush() { if (where != "") print "    \047*:" "argument:" rest "\047 ;;" }
        $2 == "" { flush(); where = $1; rest = action(kind("", $4)); printf "\047%s\047) _arguments \\\n", $1; next }
        { text = brief($5); gsub(/:/, "\\:", text)
          if ($4 == "") printf "    \047--%s[%s]\047 \\\n", $2, text
          else printf "    \047--%s=[%s]:%s:%s\047 \\\n", $2, text, $4, action(kind($2, $4)) }
        END { flush() }'
    echo esac
}

in_fish() {
    cat <<END
# Completion of maskgrad for fish; made by scripts/completion.sh.
complete -c maskgrad -f
complete -c maskgrad -n __fish_use_subcommand -a '${commands}help version'
complete -c maskgrad -n '__fish_seen_subcommand_from help' -a '$commands'
complete -c maskgrad -n '__fish_seen_subcommand_from lab; and not __fish_seen_subcommand_from $labs' -a '$labs'
END
    rows | awk "$kinds"'
        function action(k) {
            if (k == "@checkpoint") return "-a \047(__fish_complete_suffix .h5)\047"
            if (k == "@folder") return "-a \047(__fish_complete_directories)\047"
            if (k == "@file") return "-F"
            return k == "" ? "" : "-a \047" k "\047"
        }
        { split($1, word, " ")
          # A flag that every lab has is that of `lab`.
          if (word[2] != "" && ($2 == "" || ("lab" SUBSEP $2) in seen)) next
          seen[$1, $2] = 1
          where = "__fish_seen_subcommand_from " (word[2] != "" ? word[2] : word[1])
          if ($2 == "") { if (kind("", $4) != "") printf "complete -c maskgrad -n \047%s\047 %s\n", where, action(kind("", $4)); next }
          printf "complete -c maskgrad -n \047%s\047 -l %s%s%s -d \047%s\047 %s\n", where, $2, $3 != "" ? " -s " $3 : "",
                 $4 != "" ? " -r" : "", brief($5), $4 != "" ? action(kind($2, $4)) : "" }'
}

case $shell in
bash | zsh | fish) "in_$shell" ;;
*) echo "bash, zsh or fish, not '$shell'" >&2; exit 2 ;;
esac
