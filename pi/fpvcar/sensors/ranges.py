"""Range sensors: obstacles around the car, the age of each reading, and failed sensors.

    VL53L0X (I2C), HC-SR04 (edges) -> one thread per kind -> Ranges -> gate, page

Each sensor is set up, read and given up by itself. An absent, silent, stuck or noisy sensor reports
its fault, is retried, and delays no other.
"""

import asyncio
import importlib
import time

from fpvcar import config
from fpvcar.runtime.clock import Clock
from fpvcar.sensors.reading import LastReading, RangeThread
from fpvcar.wire import telemetry
from fpvcar.wire.telemetry import Measured


def thread_of(kind: str) -> type[RangeThread]:
    """Return the thread that reads the sensors of a field of `config.Sensors`: THREAD of its
    module here. A car loads only the kinds that it has."""
    thread: type[RangeThread] = importlib.import_module(f"fpvcar.sensors.{kind}").THREAD
    return thread


class Ranges:
    """All range sensors of one car."""

    def __init__(self, profile: config.Profile, clock_s: Clock = time.monotonic) -> None:
        kinds: dict[str, list[LastReading]] = {}
        for kind, name, sensor in profile.sensors.every():
            kinds.setdefault(kind, []).append(LastReading(name, sensor.bearing_deg))
        self._threads = [
            thread_of(kind)(kind, profile, readings, clock_s) for kind, readings in kinds.items()
        ]
        self.depth = LastReading("depth", profile.depth.bearing_deg)
        """Range of the depth camera, updated by DepthCamera."""
        self._readings = [reading for readings in kinds.values() for reading in readings]
        if profile.depth.source != "none":
            self._readings.append(self.depth)
        self.tune(profile)

    def tune(self, profile: config.Profile) -> None:
        """Measure with the offsets of this version of the car's profile from now on."""
        offsets = {name: sensor.offset_m for _, name, sensor in profile.sensors.every()}
        for reading in self._readings:
            reading.offset_m = offsets.get(reading.name, 0.0)

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop the threads; each takes a second at most."""
        for thread in self._threads:
            thread.stop()

    def attend(self, watched: bool) -> None:
        """Read at full rate while pages are open, otherwise occasionally."""
        for thread in self._threads:
            thread.attend(watched)

    async def watch(self) -> None:
        """Run until a thread dies; raises RuntimeError then."""
        await asyncio.gather(*(thread.watch() for thread in self._threads))
        await asyncio.Event().wait()  # keeps a car without range sensors running

    def status(self, now_s: float) -> tuple[telemetry.Range, ...]:
        """Return one entry a sensor, in the profile's order."""
        if not self._readings:
            return ()
        return tuple(reading.status(now_s) for reading in self._readings)

    def measured(self) -> list[Measured]:
        """Remove and return the measurements since the last call, each sensor's in order."""
        unread = [queue.unread for queue in self._readings]
        return [queue.popleft() for queue in unread for _ in range(len(queue))]

    def readings(self) -> dict[str, int]:
        """Return the number of measurements of each sensor since the start."""
        return {reading.name: reading.readings for reading in self._readings}
