#!/usr/bin/env bash
# Builds the packages of this computer into DIR (build/deb): the car's and the station's, in
# Python; rdpipe for its architecture. A build that fails stops no other one: it is named, and
# the exit status is 1.
#   tools/deb.sh [DIR]
# BUILD=all: without rdpipe; BUILD=any: only rdpipe.
# ARCHES='arm64 armhf': rdpipe also for these, with Trixie's cross compilers.
# MIRROR=http://...: address of Debian's packages, instead of that in this computer's apt.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(mkdir -p "${1:-build/deb}" && cd "${1:-build/deb}" && pwd)
temporary=$(mktemp -d)
trap 'as_root rm -rf "$temporary"' EXIT
build=${BUILD:-binary}
missing=()

say() { printf '  deb: %s\n' "$*" >&2; }

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# Show the output of a program if it fails; append it to LOG if that is set.
logged() {
    local status=0
    "$@" >"$temporary/log" 2>&1 || status=$?
    [ "$status" = 0 ] || tail -n 40 "$temporary/log" >&2
    [ -z "${LOG:-}" ] || cat "$temporary/log" >>"$LOG"
    return "$status"
}

# Run a build; if it fails, name its packages and continue. set -e has no effect in the build.
attempt() {
    local packages=$1
    shift
    "$@" || {
        say "warning: $packages not built; the reason is above"
        missing+=("$packages")
    }
}

# Move the packages in a folder to DIR, in place of older versions.
publish() {
    local deb name
    for deb in "$1"/*.deb; do
        name=${deb##*/}
        rm -f "$out/${name%%_*}"_*"_${name##*_}"
        mv "$deb" "$out" || return
        printf '  %s\n' "$out/$name"
    done
}

# Packages built by Bookworm's python3 run on Trixie's: they are pure Python.
# Bookworm lacks what writes the manual pages: it is in .venv.
native() {
    local path=/usr/sbin:/usr/bin:/sbin:/bin:$PWD/.venv/bin
    (cd "$tree" && logged env -u VIRTUAL_ENV PATH="$path" \
        dpkg-buildpackage --build="$1" --no-sign) && publish "$temporary"
}

# Make a Debian Trixie with cross compilers in the user's cache folder. This computer's own
# system may be unsuitable: Bookworm's armhf has other library names, and a 32-bit time. Each
# architecture has its own, as a broken index of one makes apt fail for all.
cross_root() {
    local arch=$1 cache=${XDG_CACHE_HOME:-$HOME/.cache}/fpvcar names list mirror
    names=(build-essential debhelper dh-python "crossbuild-essential-$arch"
        lib{ibverbs,rdmacm,ssl,xxhash}-dev:"$arch")
    list=$(IFS=,; echo "${names[*]}")
    root=$cache/deb-$arch-$(echo "$list" | sha256sum | cut -c 1-16)
    mkdir -p "$cache" || return
    exec 9>"$cache/deb-lock"
    flock 9
    [ ! -d "$root" ] || return 0
    # shellcheck disable=SC2016 # apt's, not the shell's
    mirror=${MIRROR:-$(apt-get indextargets --format '$(ORIGIN) $(REPO_URI)' |
        awk '$1 == "Debian" && !/-security/ { uri = $2 } END { print uri }')}
    say "making a Debian Trixie with cross compilers for $arch, 2 to 5 minutes, in $root"
    as_root rm -rf "$cache/deb-$arch-"* "$cache"/deb-????????????????
    # Without a mirror, as on Ubuntu, mmdebstrap uses Debian's own. Its hooks are run by dash,
    # which has no descriptor above 9: pass none of ours.
    logged as_root mmdebstrap --variant=apt --include="$list" \
        --keyring=/usr/share/keyrings \
        --architectures="$(dpkg --print-architecture),$arch" \
        --aptopt='APT::Install-Recommends "false"' trixie "$root.new" \
        ${mirror:+"deb $mirror trixie main"} 9>&- && as_root mv "$root.new" "$root"
}

# Build in a chroot with our folder mounted in it: the results are written to our folder.
cross() {
    local arch=$1 folder=$temporary/$1
    cross_root "$arch" && mkdir "$folder" && cp -a "$tree" "$folder/fpvcar" || return
    # shellcheck disable=SC2016 # the inner shell's
    logged as_root unshare --mount --pid --fork --kill-child sh -euc '
        mount --bind "$2" "$1/mnt"
        mount -t proc proc "$1/proc"
        exec chroot "$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 sh -euc \
            "cd /mnt/fpvcar && exec dpkg-buildpackage --build=any --host-arch=$3 --no-sign"
    ' sh "$root" "$folder" "$arch" && publish "$folder"
}

# Build in a copy: the tree stays clean, and uncommitted files are included.
tree=$temporary/fpvcar
mkdir "$tree"
git ls-files -z --cached --others --exclude-standard |
    while IFS= read -r -d '' file; do
        [ ! -e "$file" ] && [ ! -L "$file" ] || printf '%s\0' "$file"
    done | tar -c --null -T - | tar -x -C "$tree"
# The version is that of the program.
version=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' pi/fpvcar/__init__.py)
printf 'fpvcar (%s) trixie; urgency=medium\n\n  * See the commits.\n\n -- %s  %s\n' "$version" \
    "$(sed -n 's/^Maintainer: //p' debian/control)" "$(git log -1 --format=%cD)" \
    >"$tree/debian/changelog"

[ "$build" = any ] || attempt "the Python packages (fpvcar, fpvstation, ...)" native all
if [ "$build" != all ]; then
    attempt "rdpipe for this computer" native any
    for arch in ${ARCHES:-}; do
        # this computer may have one of the Pi's architectures
        [ "$arch" = "$(dpkg --print-architecture)" ] || attempt "rdpipe for $arch" cross "$arch"
    done
fi
if [ ${#missing[@]} -gt 0 ]; then
    printf -v list "%s, " "${missing[@]}"
    say "not built: ${list%, }"
    exit 1
fi
