"""State and events of all paired cars to an MQTT broker, by a feed for each: fpvcar.mqtt.feed."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp

from fpvcar.config import Mqtt
from fpvcar.mqtt.feed import Feed, Reports, SourceFault, cancel
from fpvcar.mqtt.outbox import FILE, Outbox
from fpvcar.mqtt.stills import take_still
from fpvcar.mqtt.topics import Published
from fpvstation.errors import StationError
from fpvstation.fetch.cars import Car, Cars
from fpvstation.fetch.client import HttpCar, session
from fpvstation.fetch.pull import CarFault

LIST_S = 5.0


class PairedCar:
    """Source of a feed: requests signed by this station."""

    def __init__(self, car: Car) -> None:
        self._car = car

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[HttpCar]:
        """Open a connection. Raises SourceFault, also for faults of its requests."""
        try:
            async with session(self._car.url, self._car.fingerprint) as client:
                yield HttpCar(self._car, client)
        except CarFault as fault:
            raise SourceFault(str(fault)) from None

    async def still(self) -> bytes:
        """Return the present picture as a JPEG. Raises SourceFault."""
        try:
            async with session(self._car.url, self._car.fingerprint) as client:
                return await take_still(client)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as fault:
            raise SourceFault(f"{self._car.url}: {fault or 'no key frame'}") from None


class Bridge:
    """Feeds of all cars of the list."""

    def __init__(self, settings: Mqtt, cars: Cars, state: Path) -> None:
        """Open the outbox in the state directory. Raises StationError, sqlite3.Error."""
        self._settings, self._cars = settings, cars
        self._outbox = Outbox(state / FILE)
        self._tasks: dict[Car, asyncio.Task[None]] = {}
        self._report = Reports(settings.broker).report

    async def run(self) -> None:
        """Publish until cancelled; follow the list of cars as it changes. Raises the exception of
        a car's task that ended."""
        try:
            while True:
                await self._follow_list()
                for task in self._tasks.values():
                    if task.done():
                        task.result()
                await asyncio.sleep(LIST_S)
        finally:
            await cancel(*self._tasks.values())
            self._outbox.close()

    async def _follow_list(self) -> None:
        try:
            listed = set(self._cars.all())
        except StationError:  # logged by the scheduler
            return
        kept = {car.id for car in listed}
        for car in self._tasks.keys() - listed:
            await cancel(self._tasks.pop(car))
            if car.id not in kept:
                await self._feed(car).forget()
        for car in listed - self._tasks.keys():
            self._tasks[car] = asyncio.create_task(self._feed(car).run())

    def _feed(self, car: Car) -> Feed:
        return Feed(
            Published(car.id, car.folder, car.url),
            PairedCar(car),
            self._settings,
            self._outbox,
            self._report,
            f"fpvcar-{car.id}-{car.station[:8]}",
        )
