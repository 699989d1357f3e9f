#!/bin/sh
# Called by testkit/vm/image.py:  customize.sh ROOT OUT FOLDER..
# Each FOLDER/system.sh says what the VM starts.
# Makes vmlinuz, its version, initrd and root.ext4 in OUT from a fresh root.
set -eu
root=$1 out=$2
shift 2
version=$(ls "$root/lib/modules")
modules=$root/lib/modules/$version

# What no test of ours loads is most of the kernel.
for part in gpu net/ethernet scsi iio staging hid input ata usb mmc md \
    isdn platform message target thunderbolt bluetooth mtd power infiniband/hw; do
    rm -rf "$modules/kernel/drivers/$part"
done
rm -rf "$modules"/kernel/drivers/net/wireless/[!v]* # but the virtual ones
rm -rf "$modules/kernel/sound" "$root/usr/share/doc" "$root/usr/share/locale" \
    "$root/var/cache/apt" "$root/var/lib/apt/lists"
depmod -b "$root" "$version"
needs() { modprobe -d "$root" -S "$version" --show-depends "$1" | sed -n 's/^insmod //p'; }
for name in rdma_rxe rdma_ucm crc32_generic i2c-stub i2c-dev vivid sch_netem sch_tbf \
    9p 9pnet_virtio virtio_net virtio_rng; do
    modprobe -d "$root" -S "$version" --show-depends "$name" >/dev/null
done

# The initrd: a static busybox and the modules of the root file system, in order.
initrd=$out/initrd.d
mkdir -p "$initrd/bin" "$initrd/modules" "$initrd/root" "$initrd/proc" "$initrd/dev"
cp "$root/bin/busybox" "$initrd/bin/busybox"
{
    printf '#!/bin/busybox sh\n'
    printf '/bin/busybox mount -t devtmpfs dev /dev\n'
    for name in virtio_pci virtio_blk ext4 crc32c_generic; do needs "$name"; done |
        awk '!seen[$0]++' | while read -r file; do
        cp "$file" "$initrd/modules/"
        printf '/bin/busybox insmod /modules/%s\n' "$(basename "$file")"
    done
    printf '/bin/busybox mount -t ext4 -o noatime /dev/vda /root\n'
    printf '/bin/busybox umount /dev\n'
    printf 'exec /bin/busybox switch_root /root /sbin/init\n'
} >"$initrd/init"
chmod +x "$initrd/init"
(cd "$initrd" && find . | "$root/bin/busybox" cpio -o -H newc 2>/dev/null) >"$out/initrd"
rm -r "$initrd"
cp "$root/boot/vmlinuz-$version" "$out/vmlinuz"
echo "$version" >"$out/version"

# What it starts, and who may come in.
features=
for folder; do
    # shellcheck source=/dev/null
    . "$folder/system.sh"
done
install -D -m 600 "$out/host_key" "$root/etc/ssh/vm_host_key"
mkdir -p "$root/root/.ssh" "$root/share"
cp "$out/user_key.pub" "$root/root/.ssh/authorized_keys"
# The VMs of a pair reach each other as the tests reach them.
cp "$out/user_key" "$root/root/.ssh/id_ed25519"
chmod 600 "$root/root/.ssh/id_ed25519"
sed 's/^/10.0.0.* /; s/ [^ ]*$//' "$out/host_key.pub" >"$root/root/.ssh/known_hosts"
echo vm >"$root/etc/hostname"
rm -rf "${root:?}/boot"

# What is mounted in the root (/proc, /sys, /dev) stays out: a plain bind shows none of it.
mkdir "$out/plain"
mount --bind "$root" "$out/plain"
# shellcheck disable=SC2086
mke2fs -q -t ext4 $features -m 0 -d "$out/plain" "$out/root.ext4" 1200M
umount "$out/plain"
rmdir "$out/plain"
