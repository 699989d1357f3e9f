# shellcheck shell=sh disable=SC2154,SC2034
# Sourced by customize.sh: systemd, the network by its own means, sshd.
features= # with a journal, as a card has one: its power is cut
# What a Pi has that drives, and a server has not, is not here: no initramfs, no fsck.
sed -i 's/^#*HostKey .*//' "$root/etc/ssh/sshd_config"
cat >"$root/etc/ssh/sshd_config.d/vm.conf" <<'CONFIG'
HostKey /etc/ssh/vm_host_key
UsePAM no
UseDNS no
PermitRootLogin yes
MaxStartups 100
MaxSessions 100
CONFIG
rm -f "$root"/etc/ssh/ssh_host_*
# QEMU's own address: the first card's, behind which the tests are.
cat >"$root/etc/systemd/network/ssh.network" <<'NETWORK'
[Match]
MACAddress=52:54:00:12:34:56
[Network]
Address=10.0.2.15/24
LinkLocalAddressing=no
NETWORK
cat >"$root/etc/fstab" <<'FSTAB'
/dev/vda / ext4 noatime 0 0
share /share 9p trans=virtio,version=9p2000.L,msize=262144,nofail 0 0
FSTAB
printf '%s\n' 9pnet_virtio virtio_rng virtio_net >"$root/etc/modules-load.d/vm.conf"
ln -sf /lib/systemd/system/systemd-networkd.service \
    "$root/etc/systemd/system/multi-user.target.wants/systemd-networkd.service"
ln -sf /lib/systemd/system/ssh.service \
    "$root/etc/systemd/system/multi-user.target.wants/ssh.service"
# By emulation a second is short.
for slow in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer \
    e2scrub_reap.service fstrim.timer systemd-networkd-wait-online.service \
    systemd-update-utmp.service systemd-pstore.service getty@tty1.service; do
    ln -sf /dev/null "$root/etc/systemd/system/$slow"
done
rm -f "$root/usr/sbin/policy-rc.d" # of the build
mkdir -p "$root/var/log/journal"
: >"$root/etc/machine-id"
