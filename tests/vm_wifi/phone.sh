#!/bin/sh
# Run in the VM: the phone joins a network.  phone.sh SSID KEY
set -eu
printf 'network={\n ssid="%s"\n psk="%s"\n}\n' "$1" "$2" >/run/phone.conf
cat >/run/phone-lease <<'LEASE'
#!/bin/sh
[ "$1" != bound ] || ip address add "$ip/$mask" dev "$interface"
LEASE
chmod 755 /run/phone-lease
ip netns exec phone wpa_supplicant -B -i wlan2 -c /run/phone.conf
ip netns exec phone busybox udhcpc -i wlan2 -n -q -t 20 -s /run/phone-lease
