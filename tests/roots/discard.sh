#!/bin/sh
# Called by root.py as root, in a mount namespace:  discard.sh ROOT SHARE WORDS...
# As enter.sh, but with this computer's users and network; what is written to ROOT is
# forgotten. SHARE is read only.
set -eu
root=$1 share=$2
shift 2
layers=$(mktemp -d)
mount -t tmpfs tmpfs "$layers"
mkdir "$layers/upper" "$layers/work" "$layers/root"
mount -t overlay -o "lowerdir=$root,upperdir=$layers/upper,workdir=$layers/work" \
    overlay "$layers/root"
root=$layers/root
mount --bind "$share" "$root/mnt"
mount -o remount,bind,ro "$root/mnt"
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/run"
cp /etc/resolv.conf "$root/etc/resolv.conf"
# Whatever stands between this computer and the packages is trusted in there, too.
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
chroot "$root" /usr/bin/env -i HOME=/root LANG=C.UTF-8 \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PIP_CERT=/etc/ssl/certs/ca-certificates.crt PIP_DEFAULT_TIMEOUT=180 "$@"
