"""Allow-list of sites for the clients of a Wi-Fi, enforced by dnsmasq and nftables."""
