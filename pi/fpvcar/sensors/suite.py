"""All that the car feels, for whoever tells it: page, metrics, recorder."""

from fpvcar import status
from fpvcar.sensors.battery import Fuel
from fpvcar.sensors.computer import HealthThread
from fpvcar.sensors.ranges import Ranges


class Senses:
    """Ranges, battery and the computer's health; each says how old it is."""

    def __init__(self, ranges: Ranges, fuel: Fuel, health: HealthThread) -> None:
        self._ranges, self._fuel, self._health = ranges, fuel, health

    def ranges(self, now_s: float) -> tuple[status.Range, ...]:
        """One entry a range sensor, in the profile's order."""
        return self._ranges.told(now_s)

    def battery(self, now_s: float) -> status.Battery | None:
        """None for a car that cannot measure it."""
        return self._fuel.told(now_s)

    def health(self, now_s: float) -> status.Health:
        """The computer in the car."""
        return self._health.told(now_s)

    def readings(self) -> dict[str, int]:
        """How often each sensor measured since the start."""
        return {**self._ranges.readings(), "battery": self._fuel.readings}
