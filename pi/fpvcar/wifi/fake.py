"""Simulated radio that follows the rules of a real one, for the bench and for tests."""

import asyncio
from dataclasses import dataclass

from fpvcar.runtime.texts import Text
from fpvcar.wifi.core import FAR, KEY_WRONG, Link
from fpvcar.wifi.radio import RadioFault
from fpvcar.wire.network import Network, Security


@dataclass
class Station:
    """A foreign network; without a key it is open."""

    key: str = ""
    strength: int = 70
    security: Security | None = None
    in_range: bool = True
    hidden: bool = False

    def network(self, ssid: str) -> Network:
        """Return the network as the car's scan lists it."""
        usual: Security = "key" if self.key else "open"
        return Network(ssid, self.strength, self.security or usual)


class FakeRadio:
    """Simulated radio; as an access point it cannot scan.

    `around` lists the networks in range; a test changes it and calls `stir`. `history`
    lists every act with its network. Each act takes `takes_s`.
    """

    def __init__(
        self, around: dict[str, Station], known: dict[str, str] | None = None, takes_s: float = 0.0
    ) -> None:
        self.around, self.known = around, dict(known or {})
        self.takes_s = takes_s
        self.history: list[tuple[str, str]] = []
        self.broken: Text | None = None
        """Reason why the radio is unusable."""
        self.own: tuple[str, str] | None = None
        self.called = ""
        self._in = ""
        self._scan: list[Network] = []
        self._stirred = asyncio.Event()

    def stir(self) -> None:
        """Wake `changed` after an edit of `around`."""
        self._stirred.set()

    def _reaches(self, ssid: str, key: str) -> bool:
        station = self.around.get(ssid)
        return station is not None and station.in_range and station.key == key

    async def link(self) -> Link:
        """Join the first known network in range."""
        if self.broken:
            return Link("none", reason=self.broken)
        if self.own is not None:
            return Link("own")
        reachable = (ssid for ssid, key in self.known.items() if self._reaches(ssid, key))
        if not self._reaches(self._in, self.known.get(self._in, "")):
            self._in = next(reachable, "")
        return Link("network", self._in) if self._in else Link("idle")

    async def networks(self, anew: bool = True) -> list[Network]:
        """Return the networks in range. With its own network open, return the last scan."""
        if self.own is None:
            networks = [
                station.network(ssid)
                for ssid, station in self.around.items()
                if station.in_range and not station.hidden
            ]
            self._scan = sorted(networks, key=lambda network: -network.strength)
        return self._scan

    async def open(self, ssid: str, key: str) -> None:
        """Open a network; WPA requires a key of at least 8 characters."""
        await self._act("open", ssid)
        if self.broken or len(key) < 8:
            raise RadioFault(self.broken or f"a key of {len(key)} characters")
        self._in, self.own = "", (ssid, key)

    async def close(self) -> None:
        """Return to the known networks."""
        await self._act("close", "")
        self.own = None

    async def join(self, network: Network, key: str) -> None:
        """Leave the current network first, as a single radio must."""
        self._in, self.own = "", None
        await self._act("join", network.ssid)
        station = self.around.get(network.ssid)
        if station is None or not station.in_range:
            raise RadioFault(FAR)
        if station.key != key:
            raise RadioFault(KEY_WRONG)
        self.known[network.ssid], self._in = key, network.ssid

    async def _act(self, act: str, ssid: str) -> None:
        self.history.append((act, ssid))
        await asyncio.sleep(self.takes_s)

    async def changed(self) -> None:
        """Wait for a call of `stir`."""
        await self._stirred.wait()
        self._stirred.clear()

    async def name(self) -> str:
        """Return the name that the test has set."""
        return self.called
