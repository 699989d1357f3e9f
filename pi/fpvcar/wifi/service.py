"""Network service: one radio, one state machine, any number of clients on a socket.

    radio changed, a request, time -> step -> Machine -> Act -> radio
                                                  |
                                                  +--> state, to every client

Steps run one at a time, as a radio does one thing at a time; further requests wait.
"""

import asyncio
import contextlib
import logging
import secrets
import socket
import time
from pathlib import Path

from fpvcar.http.addresses import taken
from fpvcar.runtime import files, sd_notify
from fpvcar.runtime.clock import Clock
from fpvcar.runtime.texts import Text, fault_text
from fpvcar.wifi.core import Act, Machine, Open
from fpvcar.wifi.radio import Radio, RadioFault
from fpvcar.wire.errors import WireError
from fpvcar.wire.network import (
    LINE_MAX,
    Join,
    Network,
    NetworkState,
    OwnNetwork,
    PagesOpen,
    Scan,
    encode,
    parse_wish,
)

POLL_S = 30.0
"""Period of the radio's polling, in addition to its own notifications."""
LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
KEY_LETTERS = 12
log = logging.getLogger("fpvcar.network")


def load_key(directory: Path) -> str:
    """Return the key of the car's own network, created at the first start."""
    path = directory / "own.key"
    with contextlib.suppress(OSError):
        saved = path.read_text(encoding="ascii", errors="replace").strip()
        if 8 <= len(saved) <= 63 and saved.isascii():
            return saved
    key = new_key()
    files.write_whole(path, [key.encode() + b"\n"])
    return key


def new_key() -> str:
    """Generate a key that is easy to type."""
    return "".join(secrets.choice(LETTERS) for _ in range(KEY_LETTERS))


def wifi_text(ssid: str, key: str) -> str:
    """Return the text of a QR code that joins a network (ZXing's WIFI: scheme)."""

    def escaped(text: str) -> str:
        return "".join(f"\\{char}" if char in '\\;,:"' else char for char in text)

    return f"WIFI:T:WPA;S:{escaped(ssid)};P:{escaped(key)};;"


def own_network(ssid: str, key: str) -> OwnNetwork:
    """Return the car's own network with the QR code for joining it."""
    import segno  # imported late: `run` does not load it

    rows = segno.make(wifi_text(ssid, key), error="m").matrix
    return OwnNetwork(ssid, key, tuple("".join(map(str, row)) for row in rows))


class Service:
    """Network service. `expected` is the name under which the car should be found,
    such as "rusty.local"."""

    def __init__(
        self,
        machine: Machine,
        radio: Radio,
        own: OwnNetwork,
        expected: str,
        clock_s: Clock = time.monotonic,
    ) -> None:
        self._machine, self._radio, self._own = machine, radio, own
        self._expected, self._clock_s = expected, clock_s
        self._networks: tuple[Network, ...] = ()
        self._seen_s: float | None = None
        self._name = ""
        self._wishes: asyncio.Queue[Join | Scan | None] = asyncio.Queue(8)
        self._users: dict[asyncio.StreamWriter, bool] = {}
        self._logged = ""

    # Radio

    async def run(self) -> None:
        """Serve the radio and its clients until cancelled."""
        changing = asyncio.create_task(self._watch())
        try:
            # After a restart of the service, a driver may be using the current
            # network.
            idle = (await self._radio.link()).kind == "idle"
            await self._scan(anew=idle)
            while True:
                await self.step()
                due_s = self._machine.due_s()
                wait_s = POLL_S
                if due_s is not None:
                    wait_s = max(0.1, min(wait_s, due_s - self._clock_s()))
                wish = None
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait_s):
                        wish = await self._wishes.get()
                await self._serve(wish)
        finally:
            changing.cancel()
            await asyncio.gather(changing, return_exceptions=True)

    async def _watch(self) -> None:
        while True:
            await self._radio.changed()
            with contextlib.suppress(asyncio.QueueFull):  # the step runs anyway
                self._wishes.put_nowait(None)

    async def step(self) -> None:
        """Poll the radio once and carry out the resulting act."""
        link = await self._radio.link()
        used = any(self._users.values())
        act = self._machine.update(link, used, self._clock_s())
        if act is not None:
            await self._do(act)
            link = await self._radio.link()
            self._machine.update(link, used, self._clock_s())
        await self._update_name(link.kind)
        self.broadcast()

    async def _do(self, act: Act) -> None:
        self.broadcast()
        try:
            if isinstance(act, Open):
                await self._scan()  # as an access point the radio cannot scan
                await self._radio.open(self._own.ssid, self._own.key)
            else:
                await self._radio.close()
        except RadioFault as fault:
            reason = Text(
                "wifi_own", "the car's own network did not open: {reason}", reason=fault_text(fault)
            )
            self._machine.not_opened(reason, self._clock_s())

    async def _scan(self, anew: bool = True) -> None:
        with contextlib.suppress(RadioFault):
            if networks := await self._radio.networks(anew):
                self._networks, self._seen_s = tuple(networks), self._clock_s()

    async def _update_name(self, kind: str) -> None:
        self._name = await self._radio.name() if kind in ("network", "own") else ""

    async def _serve(self, wish: Join | Scan | None) -> None:
        if isinstance(wish, Scan):
            await self._scan()
        elif wish is not None:
            await self._join(wish)

    async def _join(self, wish: Join) -> None:
        if self._machine.state.phase not in ("known", "own", "searching", "failed"):
            return
        networks = {network.ssid: network for network in self._networks}
        unseen = Network(wish.ssid, 0, "key" if wish.key else "open")
        self._machine.join(wish.ssid, self._clock_s())
        self.broadcast()
        try:
            await self._radio.join(networks.get(wish.ssid, unseen), wish.key)
        except RadioFault as fault:
            act = self._machine.not_joined(fault_text(fault), self._clock_s())
            await self._do(act)
        else:
            self._machine.joined(wish.ssid, self._clock_s())

    # Clients

    def state(self) -> NetworkState:
        """Return the complete state for clients."""
        now_s, state = self._clock_s(), self._machine.state
        seen_s = self._seen_s
        return NetworkState(
            state.phase,
            self._own,
            state.ssid,
            state.reason,
            self._networks,
            None if seen_s is None else round(now_s - seen_s),
            self._name,
        )

    def broadcast(self) -> None:
        """Send the state to all clients, and log a change."""
        summary = self.summary()
        if summary != self._logged:
            log.info("%s", summary)
            self._logged = summary
        line = encode(self.state())
        for writer in self._users:
            if writer.transport.get_write_buffer_size() < LINE_MAX:
                writer.write(line)

    def summary(self) -> str:
        """Return the state as one sentence for the log, without the key."""
        state = self._machine.state
        reason = f" ({state.reason})" if state.reason else ""
        other = ""
        if taken(self._expected, self._name):
            other = f"; {self._expected} is taken: the car is {self._name}"
        elif self._name and self._name.lower() != self._expected.lower():
            other = f"; {self._expected} is not announced yet: the car is {self._name}"
        own = {"own": self._own.ssid, "opening": self._own.ssid}
        ssid = own.get(state.phase, state.ssid)
        return f"{state.phase} {ssid}".rstrip() + reason + other

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one client until it disconnects or sends an invalid line."""
        self._users[writer] = False
        writer.write(encode(self.state()))
        try:
            while line := await reader.readline():
                self._receive(writer, line)
        except (WireError, ValueError, ConnectionError) as fault:
            log.warning("connection closed: %s", fault)  # ValueError: the line is too long
        finally:
            del self._users[writer]
            writer.close()

    def _receive(self, writer: asyncio.StreamWriter, line: bytes) -> None:
        wish = parse_wish(line)
        if isinstance(wish, PagesOpen):
            self._users[writer] = wish.used
        else:
            with contextlib.suppress(asyncio.QueueFull):  # busy with other requests
                self._wishes.put_nowait(wish)


async def serve(service: Service, address: Path | socket.socket) -> None:
    """Run the service, at a path or on a listening socket, until cancelled."""
    if isinstance(address, Path):
        server = await asyncio.start_unix_server(service.serve, address, limit=LINE_MAX)
    # not start_unix_server: in Python 3.13 it looks for the path in order to delete
    # it
    else:
        server = await asyncio.start_server(service.serve, sock=address, limit=LINE_MAX)
    sd_notify.notify("READY=1")
    try:
        await service.run()
    finally:
        server.close()
