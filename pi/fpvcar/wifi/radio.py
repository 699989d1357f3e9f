"""Interface of a radio: implemented by NetworkManager and by a simulated one."""

import ipaddress
from typing import Protocol

from fpvcar.wifi.core import Link
from fpvcar.wire.network import Network

OWN = "fpvcar-own"
"""NetworkManager's name for the connection that is the car's own network."""
OWN_ADDRESS = "10.42.0.1"
"""Address of the car in its own network."""


def in_own_network(address: str) -> bool:
    """Return whether a page at this address is open in the car's own network. A page on this
    computer counts, as on the bench."""
    try:
        peer = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    return peer.is_loopback or peer in ipaddress.ip_network(f"{OWN_ADDRESS}/24", strict=False)


class RadioFault(Exception):
    """Failure of a request to the radio; the text explains it to people."""


class Radio(Protocol):
    """Wi-Fi radio. Every call may take seconds; calls never overlap."""

    async def link(self) -> Link:
        """Return the current state of the radio."""

    async def networks(self, anew: bool = True) -> list[Network]:
        """Return the networks in range, strongest first, each name once; [] while
        scanning is impossible. Without `anew`, return the last scan, which delays
        no packets. Raises RadioFault."""

    async def open(self, ssid: str, key: str) -> None:
        """Open an access point. Raises RadioFault."""

    async def close(self) -> None:
        """Close the access point and search for known networks. Raises RadioFault."""

    async def join(self, network: Network, key: str) -> None:
        """Join a network and remember it for reconnecting. Raises RadioFault, and
        then the network is forgotten."""

    async def changed(self) -> None:
        """Wait until the state may have changed."""

    async def name(self) -> str:
        """Return the mDNS name of this computer (NAME.local), "" if it is unknown."""
