#!/usr/bin/env bash
# Trains the same models with several compilers and on several processors, in portable arithmetic, and compares hashes of
# their weights and of what they write. The table is docs/portable.md's.
#
#     scripts/portable-hashes.sh                                      all that there are, 300 steps
#     scripts/portable-hashes.sh --steps 40 --sizes toy gcc clang wasm
#
# Exits with 1 if two differ, or if a compiler or an emulator is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
steps=300 sizes='toy char' folder=build/portable-hashes
while [ $# -gt 0 ]; do
    case $1 in
    --steps) steps=$2 ;;
    --sizes) sizes=$2 ;;
    --build) folder=$2 ;;
    --*) echo "no option $1" >&2 && exit 2 ;;
    *) break ;;
    esac
    shift 2
done
variants=("$@")
[ $# -gt 0 ] || variants=(gcc gcc-O1 clang aarch64 wasm wasm-scalar)

run() { # VARIANT ARGUMENT...
    local variant=$1 emulator=() program=$folder/$1
    shift
    case $variant in
    aarch64) emulator=(qemu-aarch64) package=qemu-user ;;
    wasm*) emulator=(node tests/portable/wasi.mjs) package=nodejs ;;
    esac
    if [ ${#emulator[@]} -gt 0 ] && ! command -v "${emulator[0]}" >/dev/null; then
        echo "$variant runs under ${emulator[0]}, which is not installed (Debian: $package)" >&2
        return 1
    fi
    "${emulator[@]}" "$program" "$@"
}

mkdir -p "$folder"
for variant in "${variants[@]}"; do scripts/portable-build.sh "$variant" "$folder/$variant" tests/portable/hash.c; done
echo "| model, mask, steps | built by | weights | text |"
echo "|---|---|---|---|"
wrong=0
for size in $sizes; do
    for mask in causal none; do
        first=
        for variant in "${variants[@]}"; do
            line=$(run "$variant" "$size" "$mask" "$steps")
            hashes=$(sed -nE 's/.* weights ([0-9a-f]{16}) text ([0-9a-f]{16})$/`\1` | `\2`/p' <<<"$line")
            [ -n "$hashes" ] || { echo "$variant printed no hashes: $line" >&2; exit 1; }
            echo "| $size, $mask, $steps | $variant | $hashes |"
            [ "$hashes" = "${first:=$hashes}" ] || { echo "$variant differs from ${variants[0]}" >&2; wrong=1; }
        done
    done
done
exit $wrong
