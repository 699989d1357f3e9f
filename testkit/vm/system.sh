# shellcheck shell=sh disable=SC2154,SC2034
# Sourced by customize.sh. No systemd, no udev: busybox starts one script and sshd, and
# buries orphans.
features='-O ^has_journal' # nothing it writes outlives it
ln -sf /bin/busybox "$root/sbin/init"
cp "$folder/init.sh" "$root/etc/vm-init"
chmod +x "$root/etc/vm-init"
cat >"$root/etc/inittab" <<'TAB'
::sysinit:/etc/vm-init
::respawn:/usr/sbin/sshd -D -e -f /etc/ssh/vm_config
TAB
cat >"$root/etc/ssh/vm_config" <<'CONFIG'
HostKey /etc/ssh/vm_host_key
UsePAM no
UseDNS no
PermitRootLogin yes
MaxStartups 100
MaxSessions 100
CONFIG
