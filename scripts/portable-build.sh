#!/usr/bin/env bash
# Builds a program on the library (lib/core, lib/ops, lib/nn) in portable arithmetic, without CMake, for a compiler or a
# processor that the build folder is not for:
#
#     scripts/portable-build.sh VARIANT OUT FILE.c...
#
# VARIANT is gcc, gcc-O1, clang, aarch64, wasm, or wasm-scalar (WebAssembly without its vectors). What has not changed
# since the last time is not compiled again: the objects are in OUT.objects. CFLAGS and LDFLAGS come last.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -ge 3 ] || { echo "usage: $0 VARIANT OUT FILE.c..." >&2; exit 2; }
variant=$1 out=$2
shift 2

need() { # COMMAND PACKAGES
    command -v "$1" >/dev/null && return
    echo "$variant needs $1, which is not installed (Debian: $2)" >&2
    exit 1
}

optimize=-O3 link=(-pthread -lm) without='^lib/core/(gemm|random123)\.c$' folders=(lib/core lib/core/portable lib/ops lib/nn)
wasm='clang lld wasi-libc libclang-rt-14-dev-wasm32'
case $variant in
gcc) need gcc gcc && compiler=(gcc) ;;
gcc-O1) need gcc gcc && compiler=(gcc) && optimize=-O1 ;;
clang) need clang clang && compiler=(clang) ;;
aarch64)
    need aarch64-linux-gnu-gcc 'gcc-aarch64-linux-gnu libc6-dev-arm64-cross'
    compiler=(aarch64-linux-gnu-gcc) && link+=(-static)
    ;;
wasm | wasm-scalar)
    need clang "$wasm" && need wasm-ld "$wasm"
    [ -d /usr/include/wasm32-wasi ] || { echo "$variant needs wasi-libc, which is not installed (Debian: $wasm)" >&2; exit 1; }
    compiler=(clang --target=wasm32-wasi -Ilib/core/wasi)
    [ "$variant" = wasm-scalar ] || compiler+=(-msimd128)
    link=(-Wl,-z,stack-size=1048576) without='^lib/core/(gemm|random123|parallel)\.c$' folders+=(lib/core/wasi)
    ;;
*) echo "no variant '$variant': it is gcc, gcc-O1, clang, aarch64, wasm or wasm-scalar" >&2 && exit 2 ;;
esac

flags=(-std=c11 "$optimize" -ffp-contract=off -fno-trapping-math -fno-math-errno -D_POSIX_C_SOURCE=200809L -DMG_PORTABLE
    -DMG_LIBRARY -Wall -Wextra -Wno-unknown-pragmas -Werror)
for folder in "${folders[@]}"; do flags+=("-I$folder"); done
read -ra more <<<"${CFLAGS:-}"
read -ra link_more <<<"${LDFLAGS:-}"
sources=()
for folder in "${folders[@]}"; do
    for file in "$folder"/*.c; do
        [[ $file =~ $without ]] || sources+=("$file")
    done
done

objects=$out.objects
mkdir -p "$objects"
newest=$(find lib "$0" \( -name '*.h' -o -name '*.sh' \) -newer "$objects/begun" -print -quit 2>/dev/null || echo none)
[ -z "$newest" ] || rm -f "$objects"/*.o # a header has changed, or this is the first time
touch "$objects/begun"
linked=() compile=()
for file in "${sources[@]}" "$@"; do
    object=$objects/${file//\//-}.o
    linked+=("$object")
    [ "$object" -nt "$file" ] || compile+=("-o$object" "$file")
done
[ ${#compile[@]} -eq 0 ] ||
    printf '%s\0' "${compile[@]}" | xargs -0 -n 2 -P "$(nproc)" "${compiler[@]}" "${flags[@]}" "${more[@]}" -c
"${compiler[@]}" "${more[@]}" -o "$out" "${linked[@]}" "${link[@]}" "${link_more[@]}"
