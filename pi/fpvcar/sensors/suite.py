"""All sensors of the car, for page, metrics and recorder."""

from collections.abc import Callable

import msgspec

from fpvcar.sensors.battery import BatterySensor
from fpvcar.sensors.computer import HealthThread
from fpvcar.sensors.ranges import Ranges
from fpvcar.wire import telemetry


class SensorSuite:
    """Ranges, battery and the computer's health; each says how old it is.

    `calibration()` returns the faults of the calibration, which count as health, too.
    """

    def __init__(
        self,
        ranges: Ranges,
        battery: BatterySensor,
        health: HealthThread,
        calibration: Callable[[], tuple[str, ...]] = tuple,
    ) -> None:
        self._ranges, self._battery, self._health = ranges, battery, health
        self.calibration = calibration

    def ranges(self, now_s: float) -> tuple[telemetry.Range, ...]:
        """One entry a range sensor, in the profile's order."""
        return self._ranges.status(now_s)

    def battery(self, now_s: float) -> telemetry.Battery | None:
        """None for a car that cannot measure it."""
        return self._battery.status(now_s)

    def health(self, now_s: float) -> telemetry.Health:
        """Health of the computer in the car, with the calibration's faults."""
        health = self._health.status(now_s)
        faults = self.calibration()
        if not faults:
            return health
        return msgspec.structs.replace(health, faults=(*health.faults, *faults))

    def attend(self, here: bool) -> None:
        """Somebody is here, or nobody: then sensors are read twice a second only."""
        self._ranges.attend(here)
        self._battery.attend(here)

    def card(self) -> telemetry.Card:
        """What the car writes on."""
        return self._health.card

    def weak(self, now_s: float) -> bool:
        """Is there under-voltage, by the computer or by the battery's sensor?"""
        return self._health.weak() or self._battery.weak(now_s)

    def readings(self) -> dict[str, int]:
        """How often each sensor measured since the start."""
        return {**self._ranges.readings(), "battery": self._battery.readings}
