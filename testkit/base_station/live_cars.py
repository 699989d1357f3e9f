"""Emulated cars that a station process reads: real hub, gate and routes, in one event loop."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from fpvcar.access.stations import Stations
from fpvcar.drive.gate import Cause, Hold, hold
from fpvcar.seat.live_api import LiveApi
from fpvcar.wire.station import Pairing
from fpvcar.wire.telemetry import Battery, Recording
from fpvstation.fetch.cars import Cars
from testkit.base_station.station import car_application
from testkit.harness import beside
from testkit.hub import CODES, House
from testkit.network.ports import free_port


class LiveCar(House):
    """Car with the routes for stations; a test plays its people."""

    def __init__(self, folder: Path, name: str, number: int) -> None:
        super().__init__()
        folder.mkdir(parents=True, exist_ok=True)
        self.title, self.port = name, free_port()
        self.list = Stations(number.to_bytes(32, "big"), CODES, folder / "stations.json")
        self._folder, self._runner = folder, web.AppRunner(web.Application())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def open(self) -> None:
        """Serve the routes."""
        app = car_application(self._folder, self.list, car=self.title)
        LiveApi(self.vehicle, self.list).add_to(app)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True).start()

    async def close(self) -> None:
        """End the routes."""
        await self._runner.cleanup()

    def pair(self, cars: Cars) -> None:
        """Add a station to the car, and the car to its list."""
        station = self.list.pair("workshop", "127.0.0.1", 0.0)
        key = self.list.key_of(station.id).hex()
        cars.add(Pairing(self.title, self.list.car, station.id, key), self.url, "")

    # --- people ---

    async def sit_down(self, name: str) -> None:
        """Give the wheel to a driver."""
        self.now_s += 0.1
        self.vehicle.sessions.seat.take(name, name, False, self.now_s)
        self.control.handover()

    async def stand_up(self) -> None:
        """Free the seat."""
        holder = self.vehicle.sessions.seat.holder
        if holder is not None:
            self.vehicle.sessions.seat.release(holder.client)

    async def stop(self, cause: Cause, by: str = "") -> None:
        """Stop the car for this cause, and resume it at once."""
        latches = hold(self.control.decision.latches, Hold(cause, by))
        self.control.step(latches)
        self.control.resume(True)

    async def set(self, battery: Battery | None, recording: Recording) -> None:
        """Change battery and recorder."""
        self.senses.cell, self.recorder.recording = battery, recording


@contextmanager
def live_cars(state: Path, count: int) -> Iterator[tuple[list[LiveCar], Any]]:
    """Serve paired cars; yield them, and a function that runs their coroutines."""
    folder = state / "live"
    cars = [LiveCar(folder / str(number), f"Car-{number}", number) for number in range(count)]
    with beside() as act:
        for car in cars:
            act(car.open())
            car.pair(Cars(state))
        try:
            yield cars, act
        finally:
            for car in cars:
                act(car.close())


def settings_of(port: int, **more: Any) -> str:
    """Return the text of a station's settings file."""
    values = {"broker": f"mqtt://127.0.0.1:{port}", **more}
    lines = [f"{key} = {msgspec.json.encode(value).decode()}" for key, value in values.items()]
    return "\n".join(["[mqtt]", *lines, ""])
