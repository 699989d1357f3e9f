#!/bin/sh
# make check-arm64, check-armhf: the tools for a Raspberry Pi, built by Debian's cross
# compiler against that architecture's own libraries, and tested under QEMU's user mode.
# armhf is our code for the ARMv6 of a Pi Zero W, with 32-bit words; Debian's libraries
# below it are ARMv7, so that the processor underneath is one, too.
#   tests/cross.sh arm64|armhf PYTHON TESTS...
set -eu
arch=$1 python=$2
shift 2
case $arch in
arm64) triplet=aarch64-linux-gnu qemu=qemu-aarch64-static machine= ;;
armhf) triplet=arm-linux-gnueabihf qemu=qemu-arm-static machine='-march=armv6+fp -marm' ;;
*) exit 2 ;;
esac

missing=
command -v "$triplet-gcc" >/dev/null || missing="$missing gcc-$triplet"
command -v "$qemu" >/dev/null || missing="$missing qemu-user-static"
command -v mmdebstrap >/dev/null || missing="$missing mmdebstrap"
if [ -n "$missing" ]; then
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        echo "note: not installed:$missing: not built for $arch"
        exit 0
    fi
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    # shellcheck disable=SC2086 # several names
    apt-get install -qq -y --no-install-recommends $missing >/dev/null
fi

build=$PWD/build-$arch
root=$build/root
if [ ! -e "$build/root.made" ]; then
    rm -rf "$root"
    mkdir -p "$build"
    release=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
    # From where this machine has its own; without the updates, which are not run.
    # shellcheck disable=SC2016 # apt fills these in
    mirror=$(apt-get indextargets --format '$(CODENAME) $(COMPONENT) $(REPO_URI)' \
        "Created-By: Packages" | sed -n "s/^$release main //p" | head -n 1)
    mmdebstrap --quiet --variant=extract --architectures="$arch" \
        --include=libc6-dev,libssl-dev,libxxhash-dev,librdmacm-dev,libibverbs-dev,libatomic1 \
        "$release" "$root" ${mirror:+"deb $mirror $release main"}
    touch "$build/root.made"
fi
make -s BUILD="build-$arch" VERBS=1 CC="$triplet-gcc --sysroot=$root $machine" \
    AR="$triplet-ar" programs \
    "build-$arch/units" "build-$arch/units_verbs"

mkdir -p "$build/run"
for tool in rdsend rdrecv rdpipe rdcp; do
    printf '#!/bin/sh\nexec %s -L %s %s "$@"\n' "$qemu" "$root" "$build/$tool" \
        >"$build/run/$tool"
    chmod +x "$build/run/$tool"
done
"$qemu" -L "$root" "$build/units" ../../tests/vectors/rdma_records.txt
"$qemu" -L "$root" "$build/units_verbs"
cd ../.. && RDMA_TOOLS=$build/run exec "$python" -m pytest -q -p no:cacheprovider "$@"
