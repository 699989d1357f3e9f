#!/usr/bin/env bash
# Builds a card image for a Raspberry Pi into DIR (build/image): Debian Trixie for arm64, the
# car's packages, and a page that asks board, name and country at the first boot. Writes
# fpvcar.img.xz, and fpvcar.json for Raspberry Pi Imager.
#   tools/image.sh [DIR]
# DEBS=DIR: the car's packages, instead of building them.
# URL=https://...: folder of the download, in fpvcar.json; without it that of this computer.
# MIRROR=..., SECURITY=...: addresses of Debian's packages, instead of those of this computer's
# apt. The image keeps them for its own updates.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(mkdir -p "${1:-build/image}" && cd "${1:-build/image}" && pwd)
temporary=$(mktemp -d "$out/work.XXXXXX")
trap 'as_root rm -rf "$temporary"' EXIT
packages=(
    # of a Raspberry Pi
    linux-image-arm64 raspi-firmware firmware-brcm80211 wireless-regdb initramfs-tools zstd
    cloud-initramfs-growroot
    # of a system with Wi-Fi and ssh
    systemd-sysv systemd-timesyncd udev dbus polkitd network-manager wpasupplicant dnsmasq-base
    nftables iw avahi-daemon libnss-mdns libnss-myhostname openssh-server ca-certificates
    iproute2 tzdata
    fpvcar
)

say() { printf '  image: %s\n' "$*" >&2; }

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# Show the output of a program if it fails.
logged() {
    "$@" >"$temporary/log" 2>&1 || {
        tail -n 40 "$temporary/log" >&2
        return 1
    }
}

# Print the address of Debian's packages, or with "security" of its security updates, that this
# computer's apt uses.
source_of() {
    # shellcheck disable=SC2016 # apt's, not the shell's
    apt-get indextargets --format '$(ORIGIN) $(REPO_URI)' |
        awk -v wanted="${1:-}" '$1 == "Debian" && ($2 ~ /-security/) == (wanted != "") { uri = $2 }
            END { print uri }'
}

# Run a command as root; where this computer is no arm64, QEMU runs programs of one.
emulated() {
    if [ "$(dpkg --print-architecture)" = arm64 ]; then
        as_root "$@"
    else
        # QEMU's default processor signs each return address, and is slow at it.
        as_root env QEMU_CPU=cortex-a53 tools/image/namespace.sh "$@"
    fi
}

debs=${DEBS:-}
if [ -z "$debs" ]; then
    debs=$temporary/debs
    say "building the car's packages"
    BUILD=all tools/deb.sh "$debs" >/dev/null
fi
mkdir "$temporary/repository"
cp "$debs"/{fpvcar,python3-fpvcar}_*.deb "$temporary/repository"
(cd "$temporary/repository" && dpkg-scanpackages . >Packages 2>/dev/null)
mirror=${MIRROR:-$(source_of)} security=${SECURITY:-$(source_of security)}
[ -n "$mirror" ] || {
    say "no Debian mirror in the apt of this computer: give one, MIRROR=http://..."
    exit 1
}
say "installing Debian Trixie for arm64: 5 to 20 minutes where QEMU runs its programs"
include=$(IFS=,; echo "${packages[*]}")
logged emulated env TMPDIR="$temporary" mmdebstrap --mode=root --skip=check/qemu \
    --variant=apt --format=null --architectures=arm64 --include="$include" \
    --keyring=/usr/share/keyrings --aptopt='APT::Install-Recommends "false"' \
    --dpkgopt=path-exclude=/usr/share/{doc,info,locale,man}/'*' \
    --dpkgopt=path-include=/usr/share/doc/'*'/copyright \
    --customize-hook="tools/image/debian.sh \"\$1\" \"$temporary\"" \
    trixie /dev/null "deb $mirror trixie main non-free-firmware" \
    ${security:+"deb $security trixie-security main non-free-firmware"} \
    "deb [trusted=yes] copy:$temporary/repository ./"
say "compressing"
mv "$temporary/fpvcar.img" "$out"
xz --threads=0 --keep --force -3 "$out/fpvcar.img"
# A file for Raspberry Pi Imager (App options, content repository): the format of its
# doc/json-schema/os-list-schema.json.
url=${URL:-file://$out}
cp web/icon.svg "$out"
cat >"$out/fpvcar.json" <<JSON
{
  "os_list": [
    {
      "name": "fpvcar $(sed -n 's/^__version__ = "\(.*\)"$/\1/p' pi/fpvcar/__init__.py)",
      "description": "A robot car; a page asks for its board, name and country",
      "icon": "$url/icon.svg",
      "url": "$url/fpvcar.img.xz",
      "extract_size": $(stat --format %s "$out/fpvcar.img"),
      "extract_sha256": "$(sha256sum <"$out/fpvcar.img" | cut -d' ' -f1)",
      "image_download_size": $(stat --format %s "$out/fpvcar.img.xz"),
      "image_download_sha256": "$(sha256sum <"$out/fpvcar.img.xz" | cut -d' ' -f1)",
      "release_date": "$(date --utc +%F)",
      "devices": ["pi3-64bit", "pi4-64bit"],
      "architecture": "armv8"
    }
  ]
}
JSON
say "the key of the car's own Wi-Fi is in fpvcar-wifi-key.txt on the card's first partition"
printf '  %s\n' "$out/fpvcar.img.xz" "$out/fpvcar.json"
