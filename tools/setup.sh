#!/usr/bin/env bash
# Installs the dependencies of a make target, logs each step, and is silent if all are present.
#   tools/setup.sh run | test | test-all | benchmark | check | pipes | deb | image
set -euo pipefail
cd "$(dirname "$0")/.."
trap 'exit 130' INT # else Ctrl-C ends one command, and its failure installs a package

say() { printf '  setup: %s\n' "$*" >&2; }

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        return 1
    fi
}

# Install Debian packages; on other distributions only list the missing ones.
packages() {
    local missing=() installed
    if ! command -v dpkg-query >/dev/null; then
        say "not a Debian system; please install by hand: $*"
        return
    fi
    installed=$(dpkg-query -W -f '${binary:Package} ${Status}\n' "$@" 2>/dev/null || true)
    for name in "$@"; do
        grep -qE "^$name(:[a-z0-9]+)? .* installed$" <<<"$installed" || missing+=("$name")
    done
    [ ${#missing[@]} -eq 0 ] && return
    say "installing Debian packages: ${missing[*]}"
    as_root true || {
        say "this user may not install packages; as root: apt install ${missing[*]}"
        return 1
    }
    as_root apt-get update -qq >/dev/null || say "apt-get update failed in part; continuing"
    (   # Start no daemon of the new packages: the tests start their own sshd.
        policy=/usr/sbin/policy-rc.d
        if [ ! -e "$policy" ]; then
            # Clean up in every case: otherwise no service could be started here again.
            trap 'as_root rm -f "$policy"' EXIT
            trap 'exit 1' INT TERM HUP
            printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
            as_root chmod +x "$policy"
        fi
        as_root env DEBIAN_FRONTEND=noninteractive \
            apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
    ) || {
        say "apt-get has not installed ${missing[*]}: check the network, then run this again"
        return 1
    }
}

pip_install() {
    .venv/bin/python -m pip install --quiet --quiet --disable-pip-version-check "$@"
}

# Make a virtual environment with exactly the packages of the lock file.
environment() {
    local lock=$1 python=${PYTHON:-python3} stamp=.venv/installed compile=()
    local wanted
    wanted=$(cat "$lock" pyproject.toml | sha256sum)
    # The development lock file includes the packages of the bench's.
    if [ "$lock" = requirements-bench.lock ] && [ -e "$stamp" ] &&
        [ "$(cat "$stamp")" = "$(cat requirements-dev.lock pyproject.toml | sha256sum)" ]; then
        return
    fi
    [ -e "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ] && return
    command -v "$python" >/dev/null || packages python3 python3-venv
    command -v "$python" >/dev/null || {
        say "$python not found: Python 3.11 or newer is needed, as PYTHON=python3.12"
        exit 1
    }
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
        say "$("$python" --version) is too old: Python 3.11 or newer is needed, as PYTHON=python3.12"
        exit 1
    }
    "$python" -c 'import ensurepip, venv' 2>/dev/null || packages python3-venv
    [ -x .venv/bin/pip ] || { # the last file of an environment
        say "making a virtual environment in .venv"
        "$python" -m venv .venv || {
            say "$python cannot make an environment: sudo apt install ${python##*/}-venv"
            exit 1
        }
    }
    # Most modules are never imported; Python compiles the others at their first import.
    [ "$lock" = requirements-bench.lock ] && [ -z "${PYTHONDONTWRITEBYTECODE:-}" ] &&
        compile=(--no-compile)
    say "installing Python packages from $lock"
    if ! { pip_install --require-hashes "${compile[@]}" -r "$lock" &&
        pip_install --no-deps --no-build-isolation --editable .; }; then
        say "pip has not installed the packages: check the network, then run this again"
        exit 1
    fi
    printf '%s\n' "$wanted" >"$stamp"
}

# Install the real picamera2 for tests, without its dependencies: libcamera is a fake.
picamera2() {
    local lock=requirements-picamera2.lock stamp=.venv/installed-picamera2
    cmp -s "$lock" "$stamp" && return
    say "installing Python packages from $lock"
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps \
        --require-hashes -r "$lock"
    cp "$lock" "$stamp"
}

# Install programs that judge datasets, apart from .venv, whose programs must not use them.
validators() {
    local lock=requirements-validators.lock stamp=.venv/installed-validators
    cmp -s "$lock" "$stamp" && return
    say "installing Python packages from $lock"
    rm -rf .venv/validators
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps \
        --require-hashes --target .venv/validators -r "$lock"
    cp "$lock" "$stamp"
}

# Node packages are for checks and tests only; the page has no dependencies.
node_packages() {
    { command -v node && command -v npm; } >/dev/null || packages nodejs npm
    local stamp=node_modules/.installed wanted
    wanted=$(sha256sum <package-lock.json)
    [ -e "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ] && return
    say "installing Node packages for checks and tests"
    npm ci --silent --no-audit --no-fund
    printf '%s\n' "$wanted" >"$stamp"
}

# Packages to build the pipe tools in C; to test them over a private sshd.
compilers=(gcc make libssl-dev libxxhash-dev librdmacm-dev libibverbs-dev)
pipes=("${compilers[@]}" openssh-server)
# Packages to fuzz the pipe tools, and to compare them with rsync.
fuzzers=(clang libclang-rt-dev groff-base rsync)
# Packages to build the Debian packages of the car and of the pipes.
debs=(build-essential dpkg-dev debhelper dh-python pybuild-plugin-pyproject python3-all
    python3-hatchling)
# Packages that write the manual pages. Bookworm has not all of them.
manual=(python3-aiohttp python3-argparse-manpage python3-msgspec)
manual_pages() {
    if apt-cache show python3-msgspec >/dev/null 2>&1; then
        packages "${manual[@]}"
    else
        environment requirements-bench.lock
    fi
}
# Packages to make the Debian of cross compilers.
cross=(mmdebstrap debian-archive-keyring)
# Packages for a VM with modules that this kernel lacks: Soft-RoCE, i2c-stub, vivid.
vm=(qemu-system-x86 qemu-system-arm mmdebstrap kmod e2fsprogs openssh-client)
# Packages for Debian roots of other architectures: tests/roots.
roots=(qemu-user-static)
# Packages to build the card image, and to boot it.
image=(qemu-user-static mmdebstrap genimage mtools dosfstools e2fsprogs xz-utils)
# A file system with clones: a power cut is simulated by a copy of the card.
cards=(btrfs-progs e2fsprogs mount)
# Name server and firewall of fpvsites.
sites=(dnsmasq-base nftables)
# The broker that the station publishes to, and its command line.
broker=(mosquitto mosquitto-clients)
# Reverse proxies in front of a car, with the lines of docs/ways-out/remote.md.
proxies=(nginx caddy)
# The tools that the station runs: hourly snapshots, and the measurement of a disk.
station=(btrbk fio)
pictures=(libegl1 libgl1-mesa-dri libgles2 openssl)
# Programs of the tests: a browser, a camera's stream, network namespaces, checks of units.
programs=(chromium ffmpeg iproute2 systemd util-linux)

# Pages open in Chromium's shell, which costs less. Ubuntu does not have it.
shell() { packages chromium-headless-shell || say "tests use chromium instead"; }

# Python and Node packages of the tests.
libraries() {
    environment requirements-dev.lock
    picamera2
    validators
    # An independent reader of recordings.
    node_packages
}

case "${1:-}" in
run)
    packages "${pictures[@]}"
    environment requirements-bench.lock
    ;;
test)
    packages "${pictures[@]}" "${pipes[@]}" "${sites[@]}" "${broker[@]}" fio "${programs[@]}"
    shell
    libraries
    ;;
test-all | benchmark)
    packages "${pictures[@]}" "${pipes[@]}" "${fuzzers[@]}" "${vm[@]}" "${roots[@]}" \
        "${cards[@]}" "${sites[@]}" "${broker[@]}" "${proxies[@]}" "${station[@]}" "${image[@]}" "${debs[@]}" \
        "${cross[@]}" "${programs[@]}"
    # An S3 server for tests is built from its source: testkit/network/versitygw.py.
    # So is the tuned WebRTC sender of benchmarks/baselines/rival.
    command -v go >/dev/null || packages golang-go
    # Tunnels between two hosts; wireguard-go is for kernels without WireGuard.
    packages openvpn wireguard-tools wireguard-go
    # Firefox decodes H.264 with the system's libavcodec, WebKitGTK with GStreamer's.
    packages firefox-esr libavcodec-extra webkit2gtk-driver gstreamer1.0-libav \
        gstreamer1.0-plugins-good xvfb
    # iperf3 and rclone are compared with the pipes.
    if [ "$1" = benchmark ]; then packages iperf3 rclone; else shell; fi
    libraries
    ;;
check)
    packages shellcheck cppcheck make
    environment requirements-dev.lock
    node_packages
    ;;
pipes)
    # More dependencies of the pipe tools' own check: see base-station/rdma/Makefile.
    packages "${pipes[@]}" "${fuzzers[@]}" valgrind cppcheck
    environment requirements-dev.lock
    ;;
deb)
    packages "${debs[@]}" ${ARCHES:+"${cross[@]}"}
    manual_pages
    packages "${compilers[@]}" || say "no compiler: rdpipe for this computer will be missing"
    ;;
image)
    packages "${debs[@]}" "${cross[@]}" "${image[@]}"
    manual_pages
    ;;
*)
    echo "usage: tools/setup.sh run|test|test-all|benchmark|check|pipes|deb|image" >&2
    exit 2
    ;;
esac
