#!/bin/sh
# Called by root.py in namespaces of its own:  enter.sh ROOT SHARE WORDS...
# SHARE is /mnt in ROOT, read and written. QEMU runs programs of another processor.
set -eu
root=$1 share=$2
shift 2
# shellcheck source=tools/binfmt.sh
. "$(dirname "$0")/../../tools/binfmt.sh"
mount --bind "$share" "$root/mnt"
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/tmp"
mount -t tmpfs tmpfs "$root/run"
ip link set lo up 2>/dev/null || true # with the host's network it is
# Byte code is kept: to compile is what takes longest on an emulated processor.
# shellcheck disable=SC2016 # the inner shell's
# Not exec: process 1 of a namespace is not like others.
chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
    LANG=C.UTF-8 PYTHONPYCACHEPREFIX=/var/cache/byte-code \
    sh -c 'cd /mnt && exec "$@"' sh "$@"
