#!/usr/bin/env bash
# Installs maskgrad into an empty prefix, builds the examples against it with find_package and one with pkg-config, and
# checks what they print. The installed headers must compile by themselves, without a third party's beside them.
set -euo pipefail
build=$(dirname "$1")
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix

fail() {
    echo "$1" >&2
    exit 1
}

says() { # FILE TEXT
    grep -qF -- "$2" "$1" || { cat "$1" >&2; fail "$1 does not say \"$2\""; }
}

flags=()
if grep -q '^MASKGRAD_SANITIZE:.*=ON' "$build/CMakeCache.txt"; then flags=(-fsanitize=address,undefined); fi
double=
if grep -q '^MASKGRAD_DOUBLE:.*=ON' "$build/CMakeCache.txt"; then double=-DMG_DOUBLE; fi
compiler=$(sed -n 's/^CMAKE_C_COMPILER:.*=//p' "$build/CMakeCache.txt")

cmake --install "$build" --prefix "$prefix" >/dev/null
"$prefix/bin/maskgrad" --help >/dev/null || fail "the installed program does not run"

# The headers: each by itself, as strict C11, with nothing on the include path but the prefix.
for header in "$prefix"/include/maskgrad/*.h; do
    echo "#include <maskgrad/$(basename "$header")>" >"$work/alone.c"
    "$compiler" -std=c11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I"$prefix/include" "$work/alone.c" ||
        fail "$(basename "$header") does not compile by itself"
done
# As C++ too: every declaration has C linkage, and the macros that name the caller's line work.
cat >"$work/linkage.cc" <<'EOF'
#include <maskgrad/maskgrad_ops.h>
int main() {
    mg_tape *tape;
    if (mg_tape_new(&tape, nullptr)) return 1;
    const ptrdiff_t dim[] = {2, 3};
    mg_tensor *x = mg_leaf(tape, 2, dim), *y = mg_sum(tape, mg_exp(tape, mg_add(tape, x, x)), MG_ALL_AXES);
    mg_backward(tape, y);
    bool right = x->grad[0] == 2 && y->data[0] == 6;
    mg_tape_free(tape);
    return right ? 0 : 1;
}
EOF
if command -v g++ >/dev/null; then
    g++ -std=c++17 -Wall -Wextra -Wpedantic -Werror ${flags[@]+"${flags[@]}"} $double -I"$prefix/include" -c "$work/linkage.cc" \
        -o "$work/linkage.o" || fail "the headers are not C++"
    # shellcheck disable=SC2046
    g++ ${flags[@]+"${flags[@]}"} "$work/linkage.o" -o "$work/linkage" \
        $(PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name maskgrad.pc)") pkg-config --static --libs maskgrad) ||
        fail "C++ does not link"
fi
[ -f "$(find "$prefix/share" -name library.md)" ] || fail "the documentation is not installed"
[ -f "$(find "$prefix/share" -name tiny_gpt.c)" ] || fail "the examples are not installed"
if grep -lE '#include [<"](hdf5|csv|cblas|omp|jansson|pcre2|Random123)' "$prefix"/include/maskgrad/*.h; then
    fail "a public header needs a third party's"
fi

# find_package, and its version.
cmake -S "$source/examples" -B "$work/examples" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$compiler" \
    -DCMAKE_C_FLAGS="${flags[*]:-} -Wall -Wextra -Werror" >"$work/log" || { cat "$work/log"; fail "find_package"; }
cmake --build "$work/examples" >"$work/log" || { cat "$work/log"; fail "the examples do not build"; }
mkdir "$work/newer"
printf 'cmake_minimum_required(VERSION 3.25)\nproject(newer C)\nfind_package(maskgrad 99.0 REQUIRED)\n' \
    >"$work/newer/CMakeLists.txt"
if cmake -S "$work/newer" -B "$work/newer/build" -DCMAKE_PREFIX_PATH="$prefix" >/dev/null 2>&1; then
    fail "find_package takes this version for 99.0"
fi

# pkg-config, wherever it is in the prefix.
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name maskgrad.pc)")
export PKG_CONFIG_PATH
# shellcheck disable=SC2046
"$compiler" -std=c11 "${flags[@]}" "$source/examples/attention.c" -o "$work/attention" \
    $(pkg-config --static --cflags --libs maskgrad) || fail "pkg-config's flags do not build attention.c"

if find "$prefix" -name 'libmaskgrad.so*' | grep -q .; then
    LD_LIBRARY_PATH=$(dirname "$(find "$prefix" -name libmaskgrad.so)")
    export LD_LIBRARY_PATH
fi
for i in $(seq 30); do echo "she sells sea shells by the sea shore ."; done >"$work/text.txt"
for example in tiny_gpt fit_curve attention from_parts my_operation; do
    [ "$(wc -l <"$source/examples/$example.c")" -lt 80 ] || fail "$example.c is longer than an example should be"
    "$work/examples/$example" "$work/text.txt" >"$work/$example.txt"
done
[ "$(wc -l <"$source/examples/tiny_gpt.c")" -le 25 ] || fail "the first program of a student is short"
"$work/attention" | cmp - "$work/attention.txt" || fail "the two builds of attention.c differ"

awk '/step 1000/ { exit !($NF < 0.001) }' "$work/fit_curve.txt" || { cat "$work/fit_curve.txt"; fail "no fit"; }
says "$work/attention.txt" "query 0  1.00    .    .    .    .    ."
says "$work/attention.txt" "mg_attention agrees: yes"
awk '/^query/ { for (i = 3; i <= NF; i++) if (($i == ".") != (i > NR + 2)) exit 1 }' "$work/attention.txt" ||
    fail "the map is not a triangle"
grep -q 'd output 2 .* 0.00 0.00 0.00$' "$work/attention.txt" || fail "a gradient from the future"
says "$work/from_parts.txt" "of 496 pairs (query, later key), none has any influence"
says "$work/from_parts.txt" "she sells sea shells by the sea"
says "$work/tiny_gpt.txt" "she sells sea shells"
says "$work/my_operation.txt" "(2, 3)"
echo "the installed library builds and runs the examples"
