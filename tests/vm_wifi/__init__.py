"""The car's own network and joining others, in a VM with NetworkManager.

Its radios are the kernel's simulated ones (mac80211_hwsim): the car's, and, each in its own network
namespace, a router with the network Home and a phone. Everything above the radios is the same as on
a Pi: NetworkManager, wpa_supplicant, dnsmasq, polkit, the units of the car.
"""
