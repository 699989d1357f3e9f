#!/usr/bin/env bash
# Builds the packages into DIR (build/deb): fpvcar, fpvcar-bench, rdpipe.
#   tools/deb.sh [DIR]
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(mkdir -p "${1:-build/deb}" && cd "${1:-build/deb}" && pwd)
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
# The tree stays clean, and what is in no commit yet is built, too.
tree=$temporary/fpvcar
mkdir "$tree"
git ls-files -z --cached --others --exclude-standard |
    while IFS= read -r -d '' file; do
        [ ! -e "$file" ] && [ ! -L "$file" ] || printf '%s\0' "$file"
    done | tar -c --null -T - | tar -x -C "$tree"
cd "$tree"
# Bookworm's python3 builds what Trixie's runs: it is pure Python.
if ! env -u VIRTUAL_ENV PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    dpkg-buildpackage --build="${BUILD:-binary}" --no-sign \
    >"$temporary/log" 2>&1; then
    tail -n 40 "$temporary/log" >&2
    exit 1
fi
[ -z "${LOG:-}" ] || cp "$temporary/log" "$LOG"
mv "$temporary"/*.deb "$out"
for deb in "$out"/*.deb; do printf '  %s\n' "$deb"; done
