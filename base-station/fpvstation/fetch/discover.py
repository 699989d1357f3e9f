"""Discovery of cars on this network by mDNS (RFC 6762, RFC 6763).

A car's avahi announces it; `fpvcar setup` configures that.
"""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from fpvstation.errors import StationError

TYPE = "_fpvcar._tcp.local."
ANSWER_MS = 1000
ZEROCONF_MISSING = "zeroconf is needed to find cars on this network: pip install zeroconf"


class AnnouncedCar(NamedTuple):
    """Announced car. `host` is its name, with ".local"."""

    name: str
    host: str
    addresses: tuple[str, ...]
    port: int

    @property
    def url(self) -> str:
        """Address of the car for `fpvstation pair`."""
        host = self.addresses[0] if self.addresses else self.host
        return f"https://{f'[{host}]' if ':' in host else host}:{self.port}"

    def has_address(self, host: str) -> bool:
        """Return whether `host` is the name or an address of this car."""
        return host.lower() in (self.host.lower(), *self.addresses)


async def browse(seconds: float, interfaces: Sequence[str] = ()) -> list[AnnouncedCar]:
    """Listen for so long; `interfaces`: addresses of this machine, empty for all. Raises
    StationError, OSError."""
    try:
        from zeroconf import DNSQuestionType, InterfaceChoice
        from zeroconf.asyncio import AsyncServiceBrowser, AsyncServiceInfo, AsyncZeroconf
    except ImportError:
        raise StationError(ZEROCONF_MISSING) from None
    names = set[str]()
    addresses = list(interfaces) or InterfaceChoice.Default
    async with AsyncZeroconf(interfaces=addresses) as network:

        def on_service(name: str, **_: object) -> None:
            names.add(name)

        # Unicast answers may go to any program that shares the port, such as avahi.
        multicast = DNSQuestionType.QM
        browser = AsyncServiceBrowser(
            network.zeroconf, TYPE, handlers=[on_service], question_type=multicast
        )
        await asyncio.sleep(seconds)
        await browser.async_cancel()
        cars = []
        for name in sorted(names):
            info = AsyncServiceInfo(TYPE, name)
            if await info.async_request(network.zeroconf, ANSWER_MS, multicast):
                host_addresses = tuple(info.parsed_scoped_addresses())
                host = (info.server or "").rstrip(".")
                label = name.removesuffix(f".{TYPE}")
                cars.append(AnnouncedCar(label, host, host_addresses, info.port or 0))
    return cars
