# shellcheck shell=sh disable=SC2154
# Sourced by customize.sh. The radios are NetworkManager's, the cables are not.
mkdir -p "$root/etc/NetworkManager/conf.d"
printf '[keyfile]\nunmanaged-devices=type:ethernet\n' \
    >"$root/etc/NetworkManager/conf.d/vm.conf"
rm -f "$root/etc/systemd/system/multi-user.target.wants/hostapd.service"
