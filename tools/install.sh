#!/usr/bin/env bash
# Installs the car on Raspberry Pi OS Bookworm. Its Python packages are too old for the deb:
# this makes a virtual environment in /opt/fpvcar from requirements-car.lock, and the units.
#   sudo tools/install.sh             again for an update; the old version runs until the end
#   sudo tools/install.sh --remove    removes all but profile, codes and recordings
set -euo pipefail
cd "$(dirname "$0")/.."
here=/opt/fpvcar
program=/usr/local/bin/fpvcar
units=/etc/systemd/system

say() { printf '  install: %s\n' "$*" >&2; }

fail() {
    say "$*"
    exit 1
}

# In a test's VM, or on a card that is not booted, no systemd runs.
if [ -d /run/systemd/system ]; then running=1; else running=; fi

# Print the source and the destination of each of our files.
files() {
    local path
    for path in systemd/fpvcar*.service systemd/fpvcar*.socket systemd/*.service.d/*.conf; do
        printf '%s %s\n' "$path" "$units/${path#systemd/}"
    done
    for path in systemd/portal/* systemd/mqtt/*; do
        printf '%s %s\n' "$path" "$units/${path##*/}"
    done
    printf '%s %s\n' systemd/fpvcar.sysusers /etc/sysusers.d/fpvcar.conf \
        systemd/fpvcar.tmpfiles /etc/tmpfiles.d/fpvcar.conf \
        systemd/fpvcar.udev /etc/udev/rules.d/60-fpvcar.rules \
        systemd/system.conf.d/fpvcar.conf /etc/systemd/system.conf.d/fpvcar.conf \
        systemd/fpvcar-network.rules /etc/polkit-1/rules.d/fpvcar-network.rules
}

remove() {
    [ ! -x "$program" ] || "$program" setup --undo || true
    files | while read -r _ path; do
        rm -f "$path"
        case $path in
        *.service.d/* | */system.conf.d/*) rmdir "${path%/*}" 2>/dev/null || true ;;
        esac
    done
    rm -rf "$program" "$here" "$here".*
    rm -rf /run/fpvcar
    [ -z "$running" ] || systemctl daemon-reload
    say "removed; profile, codes and recordings stay: /etc/fpvcar, /var/lib/fpvcar"
}

packages() {
    local wanted=(python3-venv openssl util-linux) one
    # Build the wheels that PyPI lacks for a 32-bit Pi.
    case $(dpkg --print-architecture) in
    armhf) wanted+=(gcc libc6-dev python3-dev) ;;
    esac
    # Packages of Raspberry Pi OS only; on other systems the car reports the missing ones.
    for one in pigpio python3-picamera2 avahi-daemon dnsmasq-base libnss-myhostname; do
        ! apt-cache show "$one" >/dev/null 2>&1 || wanted+=("$one")
    done
    say "Debian packages: ${wanted[*]}"
    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
        "${wanted[@]}" >/dev/null
}

# The environment includes the distribution's packages, as picamera2 is on no index.
environment() {
    new=$(mktemp -d "$here.XXXXXX")
    chmod 755 "$new"
    trap 'rm -rf "$new"' EXIT
    say "Python packages from requirements-car.lock, into $new"
    python3 -m venv --system-site-packages "$new"
    "$new/bin/python" -m pip install --quiet --disable-pip-version-check \
        --require-hashes -r requirements-car.lock ||
        fail "pip refuses requirements-car.lock, and says why above: nothing is" \
            "changed; with the network and files of one version, call $0 again"
    # The build writes into its own folder: use a copy, not the caller's folder.
    mkdir -p "$new/source/base-station"
    cp -R pyproject.toml README.md LICENSE pi web hardware "$new/source"
    cp -R base-station/fpvstation "$new/source/base-station"
    "$new/bin/python" -m pip install --quiet --disable-pip-version-check \
        --no-deps --no-build-isolation "$new/source"
    rm -rf "$new/source"
    "$new/bin/fpvcar" --version >/dev/null
}

# Install the units of the package, with the paths of this installation.
install_files() {
    files | while read -r from to; do
        mkdir -p "$(dirname "$to")"
        sed "s#/usr/bin/fpvcar#$here/bin/fpvcar#; s#/usr/lib/fpvcar/pins-off#$here/pins-off#" \
            "$from" >"$to"
        chmod 644 "$to"
    done
}

switch() {
    local old was=
    old=$(readlink "$here" || true)
    [ -z "$old" ] || was=$("$old/bin/fpvcar" --version || true)
    ln -s "$("$new/bin/python" -c \
        'import fpvcar.devices.linux.pins_off as helper; print(helper.__file__)')" \
        "$new/pins-off"
    ln -sfn "$new" "$here"
    trap - EXIT
    ln -sf "$here/bin/fpvcar" "$program"
    install_files
    systemd-sysusers
    systemd-tmpfiles --create fpvcar.conf
    if [ -n "$running" ]; then
        systemctl daemon-reload
        udevadm control --reload
        # Restart the units that setup has enabled, with the new version.
        systemctl try-restart 'pigpiod*.service' 'fpvcar*.service'
    fi
    [ -z "$old" ] || rm -rf "$old"
    say "$("$program" --version) is installed${was:+, in place of $was}"
}

[ "$(id -u)" = 0 ] || fail "it writes system files: sudo $0 $*"
case "${1:-}" in
"") ;;
--remove)
    remove
    exit 0
    ;;
*) fail "usage: sudo tools/install.sh [--remove]" ;;
esac
command -v apt-get >/dev/null || fail "not a Debian system: make deb, or .venv by hand"
! dpkg-query -W -f '${Status}' fpvcar 2>/dev/null | grep -q ' installed' ||
    fail "the package fpvcar is installed: sudo apt remove fpvcar, first"
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$(python3 --version) is too old: 3.11 or newer is needed (Bookworm)"
packages
environment
switch
[ -e /etc/fpvcar/car.toml ] || say "next, sudo fpvcar setup"
