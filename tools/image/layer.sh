#!/bin/sh
# Called by tools/image.sh and by the layer of rpi-image-gen:  layer.sh ROOT
# Makes a root with the car's packages a car that asks its questions at the first boot. It
# has no user and no password; a public key in authorized_keys on the card's first partition
# lets its owner in as root.
set -eu
root=$1
chroot "$root" fpvcar first-boot prepare
echo fpvcar >"$root/etc/hostname"
printf '127.0.0.1 localhost\n127.0.1.1 fpvcar\n::1 localhost ip6-localhost\n' >"$root/etc/hosts"
# Each card makes its own machine id and host keys. The file is empty, not absent: otherwise
# systemd would enable every unit.
: >"$root/etc/machine-id"
rm -f "$root/var/lib/dbus/machine-id" "$root"/etc/ssh/ssh_host_*
cat >"$root/etc/ssh/sshd_config.d/fpvcar.conf" <<'CONFIG'
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
AuthorizedKeysFile .ssh/authorized_keys /boot/firmware/authorized_keys
CONFIG
mkdir -p "$root/etc/systemd/system/ssh.service.d"
cat >"$root/etc/systemd/system/ssh.service.d/fpvcar.conf" <<'UNIT'
[Service]
ExecStartPre=
ExecStartPre=/usr/bin/ssh-keygen -A
ExecStartPre=/usr/sbin/sshd -t
UNIT
