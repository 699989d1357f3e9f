"""Client of the network service inside `run`: its last state, and requests to it."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from pathlib import Path

from fpvcar.runtime.clock import Clock
from fpvcar.runtime.service import aligned_sleep
from fpvcar.wire.errors import WireError
from fpvcar.wire.network import LINE_MAX, NetworkState, PagesOpen, Wish, encode, parse_state

RETRY_S = 2.0
USED_S = 2.0
"""Period of the check whether pages are open."""


class NetworkClient:
    """Connection to the network service. `state` is None while the service does not
    answer; not every car runs one."""

    def __init__(
        self, path: Path, used: Callable[[], bool], clock_s: Clock = time.monotonic
    ) -> None:
        self.state: NetworkState | None = None
        self._path, self._used, self._clock_s = path, used, clock_s
        self._received_s = 0.0
        self._writer: asyncio.StreamWriter | None = None

    def hosts(self) -> tuple[str, ...]:
        """Return the announced names of the car that differ from its own."""
        return (self.state.name,) if self.state and self.state.name else ()

    def age_s(self) -> float:
        """Return the age of the state in seconds."""
        return self._clock_s() - self._received_s

    def wish(self, wish: Wish) -> bool:
        """Send a request. Returns False if the service does not answer."""
        if self._writer is None or self._writer.is_closing():
            return False
        self._writer.write(encode(wish))
        return True

    async def run(self) -> None:
        """Connect and listen; reconnect for ever."""
        while True:
            with contextlib.suppress(OSError, WireError, ValueError):
                await self._listen()
            self.state, self._writer = None, None
            await asyncio.sleep(RETRY_S)

    async def _listen(self) -> None:
        reader, writer = await asyncio.open_unix_connection(self._path, limit=LINE_MAX)
        self._writer = writer
        reporting = asyncio.create_task(self._report_use())
        try:
            while line := await reader.readline():
                self.state, self._received_s = parse_state(line), self._clock_s()
        finally:
            reporting.cancel()
            await asyncio.gather(reporting, return_exceptions=True)
            writer.close()

    async def _report_use(self) -> None:
        reported = None
        while True:
            used = self._used()
            if used != reported:
                self.wish(PagesOpen(used))
                reported = used
            await aligned_sleep(USED_S)
