"""The car's own network and joining others, in a guest with NetworkManager.

Its radios are the kernel's simulated ones (mac80211_hwsim): the car's, and in network
namespaces of their own a router with the network Home and a phone. All above them is
what a Pi has: NetworkManager, wpa_supplicant, dnsmasq, polkit, the units of the car.
"""
