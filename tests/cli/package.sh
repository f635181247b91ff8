#!/usr/bin/env bash
# The Debian package: unpacked into an empty folder, with no source tree, the program works from /, with its grammars, man
# pages and completion; what it depends on is named; and dpkg removes all of it.
set -u
build=$(dirname "$1") source=$2
. "$source/tests/tools/lab.bash"
for tool in cpack dpkg-deb dpkg-shlibdeps perl; do
    command -v "$tool" >/dev/null || { echo "skipped: $tool is not installed (apt-get install cmake dpkg-dev perl)"; exit 77; }
done
cmake --build "$build" --target manuals >out 2>&1 || fail "the target manuals: $(tail -n 5 out)"
cpack -G DEB --config "$build/CPackConfig.cmake" -B "$folder/packages" >out 2>&1 || fail "cpack: $(tail -n 5 out)"
deb=$(echo "$folder"/packages/*.deb)
[ -s "$deb" ] || { fail "no package"; exit 1; }
for library in libc6 libcsv3 libhdf5 libjansson4 libpcre2 zlib1g; do
    dpkg-deb -f "$deb" Depends | grep -q "$library" || fail "it does not depend on $library"
done

dpkg-deb -x "$deb" "$folder/root"
prefix=$(dirname "$(dirname "$(find "$folder/root" -type f -path '*/bin/maskgrad')")")
maskgrad=$prefix/bin/maskgrad
for file in share/maskgrad/frases.csv share/maskgrad/adapters/maskgrad_audit.py include/maskgrad/maskgrad.h \
    share/bash-completion/completions/maskgrad share/zsh/vendor-completions/_maskgrad share/fish/vendor_completions.d/maskgrad.fish \
    share/doc/maskgrad/copyright share/doc/maskgrad/changelog.Debian.gz share/doc/maskgrad/docs/course.md share/doc/maskgrad/examples; do
    [ -e "$prefix/$file" ] || fail "the package has no $file"
done
find "$prefix" -name maskgrad.pc | grep -q . || fail "the package has no maskgrad.pc"
find "$prefix" -name maskgrad-config.cmake | grep -q . || fail "the package has no maskgrad-config.cmake"
if command -v help2man >/dev/null; then
    for command in $("$maskgrad" help | sed -nE 's/^  ([a-z]+) .*/\1/p'); do
        [ -s "$prefix/share/man/man1/maskgrad-$command.1.gz" ] || fail "no man page of $command"
    done
fi

away=$(printf '%s' "$source" | tr -c / x) # a path of the same length that is nowhere
from=$source to=$away perl -0777 -pi -e 's/\Q$ENV{from}\E/$ENV{to}/g' "$maskgrad"
small=(--n-layer 1 --n-head 2 --n-embd 16 --block-size 8)
cd / || exit 1
"$maskgrad" lab leak --quick "${small[@]}" --max-iters 20 --out-dir "$folder/leak" >"$folder/out" 2>&1
[ -e "$folder/leak/report.html" ] || fail "lab leak: $(tail -n 3 "$folder/out")"
"$maskgrad" lab mask --quick --out-dir "$folder/mask" >"$folder/out" 2>&1 || fail "lab mask: $(tail -n 3 "$folder/out")"
"$maskgrad" train --data "$prefix/share/maskgrad/frases.csv" --grammar-size 2000 "${small[@]}" --max-iters 5 \
    --out-dir "$folder/run" >"$folder/out" 2>&1 || fail "train: $(tail -n 3 "$folder/out")"
"$maskgrad" generate "$folder/run" --max-new-tokens 5 >"$folder/out" 2>&1 || fail "generate: $(cat "$folder/out")"

# Installed into an empty root and removed, nothing is left but dpkg's own folder.
if [ "$(id -u)" -eq 0 ]; then
    mkdir -p "$folder/empty/var/lib/dpkg/"{info,updates} && touch "$folder/empty/var/lib/dpkg/"{status,available}
    dpkg --root="$folder/empty" --force-depends --force-script-chrootless --log=/dev/null -i "$deb" >"$folder/out" 2>&1 ||
        fail "dpkg -i: $(tail -n 3 "$folder/out")"
    [ -n "$(find "$folder/empty" -path '*/bin/maskgrad')" ] || fail "nothing was installed"
    dpkg --root="$folder/empty" --log=/dev/null -P maskgrad >"$folder/out" 2>&1 || fail "dpkg -P: $(tail -n 3 "$folder/out")"
    left=$(find "$folder/empty" -mindepth 1 -not -path "$folder/empty/var*")
    [ -z "$left" ] || fail "removing leaves $left"
fi
if command -v lintian >/dev/null && grep -q 'CMAKE_BUILD_TYPE:STRING=Release' "$build/CMakeCache.txt" &&
    grep -q 'CMAKE_INSTALL_PREFIX:PATH=/usr$' "$build/CMakeCache.txt"; then
    lintian --fail-on error --allow-root "$deb" >"$folder/out" 2>&1 || fail "lintian: $(cat "$folder/out")"
fi
exit 0
