#!/bin/sh
# Called by mmdebstrap for tools/image.sh:  debian.sh ROOT OUT
# Prepares a root of Debian's packages for a card, and writes OUT/fpvcar.img.
set -eu
here=$(dirname "$0") root=$1 out=$2
"$here/layer.sh" "$root"
cat >"$root/etc/fstab" <<'FSTAB'
LABEL=RASPIROOT / ext4 noatime,errors=remount-ro,x-systemd.growfs 0 1
LABEL=RASPIFIRM /boot/firmware vfat noatime 0 2
FSTAB
# The settings of config.txt and cmdline.txt, which are written anew at each update of the
# kernel. A Pi 4 does not boot with CMA.
printf '%s\n' ROOTPART=LABEL=RASPIROOT CMA=0 >>"$root/etc/default/raspi-firmware"
chroot "$root" env DEB_MAINT_PARAMS=configure /etc/kernel/postinst.d/z50-raspi-firmware
rm -f "$root/etc/resolv.conf" "$root"/var/cache/apt/*.bin
# The builder's own packages are not on any mirror.
sed -i '/copy:/d' "$root/etc/apt/sources.list"
rm -rf "$root"/var/lib/apt/lists/*
# mmdebstrap removes these only after this program: upgrades would restart no service.
rm -f "$root/usr/sbin/policy-rc.d" "$root/usr/sbin/start-stop-daemon.REAL"
# A plain bind shows none of the file systems that are mounted in the root.
mkdir -p "$out/root" "$out/input" "$out/genimage"
mount --bind "$root" "$out/root"
genimage --config "$here/genimage.cfg" --rootpath "$out/root" --inputpath "$out/input" \
    --outputpath "$out" --tmppath "$out/genimage"
umount "$out/root"
