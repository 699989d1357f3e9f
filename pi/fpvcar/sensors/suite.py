"""All sensors of the car, for page, metrics and recorder."""

from collections.abc import Callable

import msgspec

from fpvcar.runtime.texts import Text
from fpvcar.sensors.battery import BatterySensor
from fpvcar.sensors.computer import HealthThread
from fpvcar.sensors.ranges import Ranges
from fpvcar.wire import telemetry


class SensorSuite:
    """Ranges, battery and the computer's health, each with its age.

    `calibration()` returns the faults of the calibration, which count as health, too. So do
    `settings`: the names of saved settings that could not be read.
    """

    def __init__(
        self,
        ranges: Ranges,
        battery: BatterySensor,
        health: HealthThread,
        calibration: Callable[[], tuple[Text, ...]] = tuple,
        settings: tuple[str, ...] = (),
    ) -> None:
        self._ranges, self._battery, self._health = ranges, battery, health
        self.calibration = calibration
        unreadable = Text(
            "settings_unreadable", "saved settings unreadable: {names}", names=", ".join(settings)
        )
        self._unreadable = (unreadable,) if settings else ()

    def ranges(self, now_s: float) -> tuple[telemetry.Range, ...]:
        """Return one entry a range sensor, in the profile's order."""
        return self._ranges.status(now_s)

    def battery(self, now_s: float) -> telemetry.Battery | None:
        """Return the battery's reading; None for a car that cannot measure it."""
        return self._battery.status(now_s)

    def health(self, now_s: float) -> telemetry.Health:
        """Return the health of the computer in the car, with faults of settings and
        calibration."""
        health = self._health.status(now_s)
        if not (more := (*self._unreadable, *self.calibration())):
            return health
        return msgspec.structs.replace(health, faults=(*more, *health.faults))

    def attend(self, watched: bool) -> None:
        """Read at full rate while pages are open, otherwise twice a second only."""
        self._ranges.attend(watched)
        self._battery.attend(watched)

    def card(self) -> telemetry.Card:
        """Return the state of the storage card."""
        return self._health.card

    def weak(self, now_s: float) -> bool:
        """Return whether the computer or the battery's sensor reports under-voltage."""
        return self._health.weak() or self._battery.weak(now_s)

    def readings(self) -> dict[str, int]:
        """Return the number of measurements of each sensor since the start."""
        return {**self._ranges.readings(), "battery": self._battery.readings}
