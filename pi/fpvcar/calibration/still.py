"""Steps for which the car stands: distances by a tape measure, the battery. Pure."""

import statistics
from collections import deque
from collections.abc import Sequence
from typing import Any

from fpvcar.calibration.estimates import good
from fpvcar.calibration.steps import Refused, Seen, Wish
from fpvcar.calibration.values import Value
from fpvcar.config import Profile

LAST = 30
"""Readings that a distance, or a voltage, is the median of."""
TAPE_M = (0.1, 1.9)
MOST_OFFSET_M = 0.5
CURVES = {
    # open-circuit voltage of a lithium cell, 3.1 V to 4.2 V; of a NiMH, 1.0 V to 1.4 V
    "line": (0.0, 1.0),
    "lithium": (0.0, 0.02, 0.03, 0.05, 0.07, 0.09, 0.27, 0.6, 0.8, 0.92, 1.0),
    "nimh": (0.0, 0.02, 0.05, 0.1, 0.25, 0.6, 0.85, 0.95, 1.0),
}
"""How full a pack is at even steps of voltage from empty to full."""


class Distance:
    """Compares a range sensor with a tape measure."""

    def __init__(self, profile: Profile, name: str) -> None:
        sensors = profile.sensors
        if name in sensors.tof:
            kind, self._offset_m = "tof", sensors.tof[name].offset_m
        elif name in sensors.ultrasound:
            kind, self._offset_m = "ultrasound", sensors.ultrasound[name].offset_m
        else:
            has = ", ".join([*sensors.tof, *sensors.ultrasound]) or "none"
            raise Refused(f'sensor "{name[:20]}": this car has {has}')
        self._name, self._key = name, f"sensors.{kind}.{name}.offset_m"
        self.trial, self.found = dict[str, Value](), dict[str, Value]()
        self.phase = "looks"
        self._seen: deque[float] = deque(maxlen=LAST)

    def wish(self, limit: float, volts: float) -> Wish:
        """It stands."""
        return Wish()

    def see(self, seen: Seen) -> None:
        """Takes the readings of the sensor."""
        for one in seen.ranges:
            if one.name == self._name and good(one) and one.range_m is not None:
                self._seen.append(one.range_m)
                self.phase = "asks" if self.phase == "looks" else self.phase

    def say(self, word: str, figures: Sequence[float]) -> None:
        """tape: so many metres it is."""
        if word != "tape" or len(figures) != 1:
            raise Refused(f'"{word[:20]}" refused: expected tape and metres')
        low, high = TAPE_M
        if not low <= figures[0] <= high:
            raise Refused(f"{figures[0]:g} m refused: expected {low:g} to {high:g}")
        if not self._seen:
            raise Refused("the sensor sees nothing: put a wall before it")
        offset_m = self._offset_m + figures[0] - statistics.median(self._seen)
        if abs(offset_m) > MOST_OFFSET_M:
            raise Refused(
                f"an offset of {offset_m:.2f} m refused: expected at most "
                f"{MOST_OFFSET_M:g}; does it see the wall that you measure to?"
            )
        self.found, self.phase = {self._key: round(offset_m, 3)}, "done"

    def figures(self) -> dict[str, Any]:
        """What it measures."""
        seen = self._seen
        return {"range_m": round(statistics.median(seen), 3) if seen else None}


class Pack:
    """Takes the pack's voltage of now as full or empty, and how it falls between."""

    def __init__(self, profile: Profile) -> None:
        if profile.battery.address is None:
            raise Refused("battery refused: nothing measures it (battery.address)")
        self._battery = profile.battery
        self.trial, self.found = dict[str, Value](), dict[str, Value]()
        self.phase = "looks"
        self._seen: deque[float] = deque(maxlen=LAST)

    def wish(self, limit: float, volts: float) -> Wish:
        """It stands."""
        return Wish()

    def see(self, seen: Seen) -> None:
        """Takes the voltage, while nothing is driven."""
        if seen.volts is not None and not seen.moves:
            self._seen.append(seen.volts)
            self.phase = "asks" if self.phase == "looks" else self.phase

    def say(self, word: str, figures: Sequence[float]) -> None:
        """full, empty: it is so now; line, lithium, nimh: the pack's kind."""
        if word in CURVES:
            self.found["battery.curve"] = CURVES[word]
        elif word not in ("full", "empty"):
            expected = ", ".join(("full", "empty", *CURVES))
            raise Refused(f'"{word[:20]}" refused: expected one of {expected}')
        elif not self._seen:
            raise Refused("nothing measures the battery yet: look again")
        else:
            self.found[f"battery.{word}_v"] = round(statistics.median(self._seen), 2)
            self._between()
        self.phase = "done"

    def _between(self) -> None:
        """What motors are reckoned with has to lie between full and empty."""
        full = self.found.get("battery.full_v", self._battery.full_v)
        empty = self.found.get("battery.empty_v", self._battery.empty_v)
        assert isinstance(full, float) and isinstance(empty, float)
        if not empty <= self._battery.nominal_v <= full:
            self.found["battery.nominal_v"] = round((full + empty) / 2.0, 2)

    def figures(self) -> dict[str, Any]:
        """What it measures."""
        seen = self._seen
        return {"volts": round(statistics.median(seen), 2) if seen else None}
