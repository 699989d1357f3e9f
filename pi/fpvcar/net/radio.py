"""What the service asks of whoever holds the radio: NetworkManager, or a fake."""

from typing import Protocol

from fpvcar.net.core import Link
from fpvcar.wire.network import Network

OWN = "fpvcar-own"
"""How NetworkManager calls the connection that is the car's own network."""
OWN_ADDRESS = "10.42.0.1"
"""The car's, in its own network."""


class RadioFault(Exception):
    """It did not do what it was asked; the text says why, for people."""


class Radio(Protocol):
    """One Wi-Fi radio. Every call may take seconds; none is made beside another."""

    async def link(self) -> Link:
        """What it is at."""

    async def networks(self, anew: bool = True) -> list[Network]:
        """What is in range, the strongest first, each name once; [] while it cannot
        look. Not `anew`: what was heard last, and no packet is late for it. Raises
        RadioFault."""

    async def open(self, ssid: str, key: str) -> None:
        """Opens a network. Raises RadioFault."""

    async def close(self) -> None:
        """Closes it, and looks for known networks. Raises RadioFault."""

    async def join(self, network: Network, key: str) -> None:
        """Joins a network, and again from now on. Raises RadioFault; then nothing is
        remembered of it."""

    async def changed(self) -> None:
        """Waits until it may be at something else."""

    async def name(self) -> str:
        """By which name others find this computer (NAME.local), "": nobody knows."""
