#!/usr/bin/env bash
# Builds the packages into DIR (build/deb): fpvcar, fpvcar-bench, fpvstation; rdpipe for
# this computer, and for the Raspberry Pi's arm64 and armhf with Trixie's cross compilers.
#   tools/deb.sh [DIR]
# BUILD=all: without rdpipe; BUILD=any: only rdpipe. ARCHES='arm64': only this Pi architecture.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(mkdir -p "${1:-build/deb}" && cd "${1:-build/deb}" && pwd)
temporary=$(mktemp -d)
trap 'as_root rm -rf "$temporary"' EXIT
build=${BUILD:-binary}

say() { printf '  deb: %s\n' "$*" >&2; }

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# Show the output of dpkg-buildpackage if it fails; append it to LOG if that is set.
logged() {
    "$@" >"$temporary/log" 2>&1 || {
        tail -n 40 "$temporary/log" >&2
        exit 1
    }
    [ -z "${LOG:-}" ] || cat "$temporary/log" >>"$LOG"
}

# Make a Debian Trixie with cross compilers in the user's cache folder. This computer's own
# system may be unsuitable: Bookworm's armhf has other library names, and a 32-bit time.
cross_root() {
    local cache=${XDG_CACHE_HOME:-$HOME/.cache}/fpvcar names list mirror
    names=(build-essential debhelper dh-python crossbuild-essential-{arm64,armhf}
        lib{ibverbs,rdmacm,ssl,xxhash}-dev:{arm64,armhf})
    list=$(IFS=,; echo "${names[*]}")
    root=$cache/deb-$(echo "$list" | sha256sum | cut -c 1-16)
    mkdir -p "$cache"
    exec 9>"$cache/deb-lock"
    flock 9
    [ ! -d "$root" ] || return 0
    # shellcheck disable=SC2016 # apt's, not the shell's
    mirror=$(apt-get indextargets --format '$(ORIGIN) $(REPO_URI)' |
        awk '$1 == "Debian" && !/-security/ { uri = $2 } END { print uri }')
    if [ -z "$mirror" ]; then
        say "apt has no source of Debian's: the rdpipe packages for the Pi need one"
        exit 1
    fi
    say "making a Debian Trixie with cross compilers, 3 to 6 minutes, in $root"
    as_root rm -rf "$cache"/deb-[0-9a-f]*
    logged as_root mmdebstrap --variant=apt --include="$list" \
        --keyring=/usr/share/keyrings \
        --architectures="$(dpkg --print-architecture),arm64,armhf" \
        --aptopt='APT::Install-Recommends "false"' trixie "$root.new" \
        "deb $mirror trixie main"
    as_root mv "$root.new" "$root"
}

# Build in a chroot with our folder mounted in it: the results are written to our folder.
cross() {
    local arch=$1 folder=$temporary/$1
    mkdir "$folder"
    cp -a "$tree" "$folder/fpvcar"
    # shellcheck disable=SC2016 # the inner shell's
    logged as_root unshare --mount --pid --fork --kill-child sh -euc '
        mount --bind "$2" "$1/mnt"
        mount -t proc proc "$1/proc"
        exec chroot "$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 sh -euc \
            "cd /mnt/fpvcar && exec dpkg-buildpackage --build=any --host-arch=$3 --no-sign"
    ' sh "$root" "$folder" "$arch"
    cp "$folder"/*.deb "$out"
}

# Build in a copy: the tree stays clean, and uncommitted files are included.
tree=$temporary/fpvcar
mkdir "$tree"
git ls-files -z --cached --others --exclude-standard |
    while IFS= read -r -d '' file; do
        [ ! -e "$file" ] && [ ! -L "$file" ] || printf '%s\0' "$file"
    done | tar -c --null -T - | tar -x -C "$tree"

# Build rdpipe for the Pi's architectures; this computer may have one of them.
if [ "$build" != all ]; then
    cross_root
    for arch in ${ARCHES-arm64 armhf}; do
        [ "$arch" = "$(dpkg --print-architecture)" ] || cross "$arch"
    done
fi
cd "$tree"
# Packages built by Bookworm's python3 run on Trixie's: they are pure Python.
logged env -u VIRTUAL_ENV PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    dpkg-buildpackage --build="$build" --no-sign
mv "$temporary"/*.deb "$out"
for deb in "$out"/*.deb; do printf '  %s\n' "$deb"; done
