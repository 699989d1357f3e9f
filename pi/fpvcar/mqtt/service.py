"""`fpvcar mqtt`: a car without a station publishes itself.

fpvcar run -> /api/station/live on loopback -> OwnCar -> Feed -> broker
                                                    <-  stop

While a base station publishes the car, this service is silent: topics and device are the same, and
all would come twice.
"""

import asyncio
import contextlib
import logging
import os
import signal
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from urllib.parse import quote

import aiohttp
import msgspec

from fpvcar.config import ConfigError, Mqtt
from fpvcar.mqtt.events import observe
from fpvcar.mqtt.feed import Feed, Reports, SourceFault, Superseded
from fpvcar.mqtt.link import secrets_of
from fpvcar.mqtt.outbox import FILE, Outbox
from fpvcar.mqtt.stills import take_still
from fpvcar.mqtt.topics import Published
from fpvcar.runtime import sd_notify
from fpvcar.runtime.clock import Clock
from fpvcar.wire.station import BASE, Live

AGAIN_S = 1.0
TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=2.0, sock_read=5.0)
log = logging.getLogger("fpvcar.mqtt")


class OwnRequests:
    """Requests to the car of this machine."""

    def __init__(self, client: aiohttp.ClientSession) -> None:
        self._client = client

    async def live(self, after: str) -> Live:
        """Return the present state at its next change after `after`, or after 0.9 s."""
        async with self._client.get(f"{BASE}/live?after={quote(after)}") as answer:
            answer.raise_for_status()
            return msgspec.json.decode(await answer.read(), type=Live)

    async def stop(self) -> None:
        """Stop the car, as any page may."""
        async with self._client.post(f"{BASE}/stop") as answer:
            answer.raise_for_status()


class OwnCar:
    """Source of a feed: `fpvcar run` at its HTTP port on this machine."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}"

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[OwnRequests]:
        """Open a connection. Raises SourceFault, also for faults of its requests."""
        async with self._session() as client:
            yield OwnRequests(client)

    async def still(self) -> bytes:
        """Return the present picture as a JPEG. Raises SourceFault."""
        async with self._session() as client:
            return await take_still(client)

    @contextlib.asynccontextmanager
    async def _session(self) -> AsyncIterator[aiohttp.ClientSession]:
        try:
            async with aiohttp.ClientSession(self._url, timeout=TIMEOUT) as client:
                yield client
        except aiohttp.ClientConnectorError as fault:
            reason = os.strerror(fault.errno or 0)
            raise SourceFault(
                f"{self._url}: {reason}: expected fpvcar run there (see --port)"
            ) from None
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as fault:
            raise SourceFault(f"{self._url}: {fault or 'no answer in time'}") from None


class Publisher:
    """Feed of this car, while no station publishes it."""

    def __init__(
        self,
        settings: Mqtt,
        car: str,
        port: int,
        outbox: Outbox,
        utc_s: Clock = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Publish as `car`, the first part of the topics after the prefix."""
        self._settings, self._car, self._outbox = settings, car, outbox
        self._source = OwnCar(port)
        self._url = f"https://{car}.local:{port + 1}"
        self._report = Reports(settings.broker).report
        self._utc_s, self._sleep = utc_s, sleep

    async def run(self) -> None:
        """Publish the car until cancelled."""
        while True:
            car = Published((await self._alone()).id, self._car, self._url)
            name = f"fpvcar-{car.id}"
            source, report = self._source, self._report
            feed = Feed(car, source, self._settings, self._outbox, report, name, yields=True)
            with contextlib.suppress(Superseded):
                await feed.run()

    async def _alone(self) -> Live:
        """Return the first state of the car without a station. Events until then are the station's,
        and are not saved."""
        logged = ""
        while True:
            reason = ""
            try:
                async with self._source.opened() as car:
                    live = await car.live("")
                if not live.station:
                    return live
                reason = f'base station "{live.station}" publishes this car: silent until it ends'
                memory, _ = observe(self._outbox.memory(live.id), live, self._utc_s())
                self._outbox.add(live.id, memory, ())
            except SourceFault as fault:
                reason = str(fault)
            except sqlite3.Error as fault:
                reason = f"state not saved: {fault}"
            if logged != (logged := reason):
                log.warning("MQTT: %s", reason)
            await self._sleep(AGAIN_S)


async def run(settings: Mqtt, car: str, port: int, state: Path) -> None:
    """Publish until SIGTERM or SIGINT; events wait in the folder `state`. Raises ConfigError."""
    secrets_of(settings)
    try:
        outbox = Outbox(state / FILE)
    except sqlite3.Error as fault:
        raise ConfigError(
            f"{state}: events cannot be saved: {fault}: end another `fpvcar mqtt`, or make "
            "room there"
        ) from None
    publishing = asyncio.create_task(Publisher(settings, car, port, outbox).run())
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, publishing.cancel)
    sd_notify.notify("READY=1")
    try:
        with contextlib.suppress(asyncio.CancelledError):
            await publishing
    finally:
        outbox.close()
