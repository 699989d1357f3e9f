"""Emulated cars in one event loop (real hub, gate and routes), and processes that publish them."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Self

import msgspec
from aiohttp import web

from fpvcar.access.stations import Stations
from fpvcar.drive.gate import Cause, Hold, hold
from fpvcar.seat.live_api import LiveApi
from fpvcar.wire.station import Pairing
from fpvcar.wire.telemetry import Battery, Recording
from fpvstation.fetch.cars import Cars
from testkit.base_station.station import car_application
from testkit.harness import beside, wait_for
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
        """Serve the routes at the car's port."""
        app = car_application(self._folder, self.list, car=self.title)
        LiveApi(self.vehicle, self.list).add_to(app)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True).start()

    async def close(self) -> None:
        """End the routes: requests find no car."""
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
        """Free the seat, if it is taken."""
        holder = self.vehicle.sessions.seat.holder
        if holder is not None:
            self.vehicle.sessions.seat.release(holder.client)

    async def stop(self, cause: Cause, by: str = "") -> None:
        """Stop the car for this cause, and resume it at once."""
        latches = hold(self.control.decision.latches, Hold(cause, by))
        self.control.step(latches)
        self.control.resume(True)

    async def set(self, battery: Battery | None, recording: Recording) -> None:
        """Change the states of battery and recorder."""
        self.senses.cell, self.recorder.recording = battery, recording


class Service(AbstractContextManager["Service"]):
    """Process that publishes cars by MQTT."""

    def __init__(self, log: Path, argv: list[str], env: dict[str, str]) -> None:
        self.log_path, self._argv, self.env = log, [sys.executable, "-m", *argv], env
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None:
            self.end()

    def start(self) -> None:
        """Start the process, also again."""
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(self._argv, env=self.env, stdout=log, stderr=log)

    def end(self) -> None:
        """End the process with SIGTERM."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        try:
            assert self.process.wait(60.0) == 0, self.log
        finally:
            self.kill()

    def kill(self) -> None:
        """Kill the process with SIGKILL."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        self.process = None

    @property
    def log(self) -> str:
        return self.log_path.read_text()

    def logs(self, text: str) -> None:
        """Wait for a text in the log."""
        wait_for(lambda: text in self.log, f"{text!r} is not logged", 30.0)


class LiveStation(Service):
    """`fpvstation run` with the state and settings of a folder."""

    def __init__(self, home: Path, *options: str, env: dict[str, str] | None = None) -> None:
        self.state, self._settings = home / "fpvstation", home / "station.toml"
        self.state.mkdir(mode=0o700, exist_ok=True)
        argv = ["fpvstation", "run", f"--port={free_port()}"]
        argv += [f"--store={home}/store", f"--config={self._settings}", *options]
        super().__init__(
            home / "log", argv, {**os.environ, "XDG_STATE_HOME": str(home), **(env or {})}
        )

    def set(self, port: int, scheme: str = "mqtt", **more: Any) -> None:
        """Write the settings for a broker on this port."""
        values = {"broker": f"{scheme}://127.0.0.1:{port}", **more}
        lines = [f"{key} = {msgspec.json.encode(value).decode()}" for key, value in values.items()]
        self._settings.write_text("\n".join(["[mqtt]", *lines, ""]))


class LiveCard(Service):
    """`fpvcar mqtt` beside a car that listens at `port`, with its state in a folder."""

    def __init__(self, home: Path, port: int, name: str, broker_port: int, **more: Any) -> None:
        self.state = home / "card"
        self.state.mkdir(mode=0o700, exist_ok=True)
        values = {"broker": f"mqtt://127.0.0.1:{broker_port}", **more}
        argv = ["fpvcar", "mqtt", f"--port={port}", f'--set=car.name = "{name}"']
        argv += [
            f"--set=mqtt.{key} = {msgspec.json.encode(value).decode()}"
            for key, value in values.items()
        ]
        env = {**os.environ, "STATE_DIRECTORY": str(self.state)}
        super().__init__(home / "card.log", argv, env)


@contextmanager
def live_cars(state: Path, count: int) -> Iterator[tuple[list[LiveCar], Any]]:
    """Serve paired cars; yield them, and a function that runs their coroutines."""
    cars = [LiveCar(state / "live" / str(one), f"Car-{one}", one) for one in range(count)]
    with beside() as act:
        for car in cars:
            act(car.open())
            car.pair(Cars(state))
        try:
            yield cars, act
        finally:
            for car in cars:
                act(car.close())
