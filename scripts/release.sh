#!/usr/bin/env bash
# Makes the files of a release and their checksums: a package for Debian and its relatives, and an archive. Both are
# checked: the package by lintian where it is installed, the checksums by sha256sum.
#
#     scripts/release.sh          into dist
#     scripts/release.sh DIR
set -euo pipefail
cd "$(dirname "$0")/.."
dist=${1:-dist}
version=$(sed -nE 's/^project\(maskgrad VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)
grep -q "^## $version" CHANGELOG.md || { echo "CHANGELOG.md has no section '## $version'" >&2; exit 1; }
command -v help2man >/dev/null || { echo "help2man is missing, which makes the man pages: apt-get install help2man" >&2; exit 1; }

export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
cmake --preset package >/dev/null
cmake --build --preset package | tail -n 1
mkdir -p "$dist"
rm -f "$dist"/maskgrad[_-]"$version"* "$dist/SHA256SUMS"
for generator in DEB TGZ; do
    cpack -G "$generator" --config build/package/CPackConfig.cmake -B build/package/packages >/dev/null
done
cp build/package/packages/maskgrad[_-]"$version"*.{deb,tar.gz} "$dist"
(cd "$dist" && sha256sum maskgrad[_-]"$version"* >SHA256SUMS && sha256sum --check --quiet SHA256SUMS)
if command -v lintian >/dev/null; then
    lintian --fail-on error --tag-display-limit 0 "$dist"/maskgrad_"$version"*.deb
else
    echo "not checked: lintian is not installed"
fi
ls -l "$dist"
