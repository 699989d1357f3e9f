#!/bin/sh
# Run in the VM: three radios. The car's stays here; a router with the network Home,
# and a phone, are in network namespaces of their own.
set -eu
modprobe mac80211_hwsim radios=3
udevadm settle
for who in router:wlan1 phone:wlan2; do
    space=${who%:*} radio=${who#*:}
    ip netns add "$space"
    ip netns exec "$space" ip link set lo up
    iw phy "$(cat "/sys/class/net/$radio/phy80211/name")" set netns name "$space"
    ip netns exec "$space" ip link set "$radio" up
done
cat >/run/hostapd.conf <<'CONF'
interface=wlan1
driver=nl80211
ssid=Home
hw_mode=g
channel=6
wpa=2
wpa_key_mgmt=WPA-PSK
rsn_pairwise=CCMP
wpa_passphrase=home sweet home
CONF
ip netns exec router ip address add 192.168.77.1/24 dev wlan1
ip netns exec router hostapd -B -P /run/hostapd.pid /run/hostapd.conf
ip netns exec router dnsmasq --no-hosts --no-resolv --port=0 --interface=wlan1 \
    --dhcp-range=192.168.77.50,192.168.77.60 --pid-file=/run/dnsmasq-router.pid \
    --dhcp-leasefile=/run/router.leases
