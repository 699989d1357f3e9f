"""Range sensors: what stands around the car, how old that is, and who does not answer.

    VL53L0X (I2C), HC-SR04 (edges) -> one thread a kind -> Ranges -> gate, page

Each sensor is set up, read and given up by itself: one that is absent, silent, stuck or
noisy is said so and tried again, and holds up no other.
"""

import asyncio
import time
from collections.abc import Callable

from fpvcar import config, status
from fpvcar.sensors.reading import RangeThread, Seen
from fpvcar.sensors.tof import TofThread
from fpvcar.sensors.ultrasonic import SonarThread


class Ranges:
    """What all range sensors of a car say."""

    def __init__(
        self, profile: config.Profile, clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        sensors = profile.sensors
        tofs = [Seen(name, one.bearing_deg) for name, one in sensors.tof.items()]
        sonars = [
            Seen(name, one.bearing_deg) for name, one in sensors.ultrasound.items()
        ]
        self.depth = Seen("depth", profile.depth.bearing_deg)
        """Written by depth_eye.py, where there is such a camera."""
        eyes = [self.depth] if profile.depth.source != "none" else []
        self._seen = tofs + sonars + eyes
        self._threads: list[RangeThread] = []
        if tofs:
            self._threads.append(TofThread("tof", profile, tofs, clock_s))
        if sonars:
            self._threads.append(SonarThread("sonar", profile, sonars, clock_s))

    def start(self) -> None:
        """Starts the threads."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Ends them; a second each at most."""
        for thread in self._threads:
            thread.stop()

    async def watch(self) -> None:
        """Raises RuntimeError when a thread has died."""
        await asyncio.gather(*(thread.watch() for thread in self._threads))
        await asyncio.Event().wait()  # a car without range sensors

    def told(self, now_s: float) -> tuple[status.Range, ...]:
        """One entry a sensor, in the profile's order."""
        return tuple(seen.told(now_s) for seen in self._seen)

    def readings(self) -> dict[str, int]:
        """How often each sensor measured since the start."""
        return {seen.name: seen.readings for seen in self._seen}
