"""Steps for a car at rest: distances by a tape measure, the battery. Pure."""

import statistics
from collections import deque
from collections.abc import Sequence
from typing import Any

from fpvcar.calibration.estimates import is_fresh
from fpvcar.calibration.steps import CarState, Step
from fpvcar.calibration.values import MOST_OFFSET_M
from fpvcar.config import Battery, Profile
from fpvcar.runtime.texts import OUT_OF_RANGE, Phrase, Refusal, Text

NO_DISTANCE = Text(
    "no_distance", "The sensor measures no distance: place the car in front of a wall."
)
OFFSET = Phrase(
    "offset",
    "An offset of {value} m was refused: expected at most {most} m. Point the sensor at the wall.",
)
APART = Phrase(
    "apart",
    "{value} m was refused: expected at least {least} m more or less than the {before} m "
    "before. Move the car.",
)

LAST = 30
"""Number of readings for the median of a distance or a voltage."""
TAPE_M = (0.1, 1.9)
TARGET_M, SECOND_M = 0.5, 0.95
"""Distance of the wall for a measurement, and for a second one."""
NEAR_M = 0.25
"""Largest deviation of a reading from the target: the largest offset, and 10 cm of placement."""
SURE_OFFSET_M = 0.05
"""Largest offset accepted after one measurement. A wrong offset is added to each range, and lets
the car touch an obstacle before the guard stops it, so a larger one needs a second measurement."""
APART_M, AGREE_M = 0.2, 0.02
"""Least distance between the two measurements, and largest difference of their offsets."""
CURVES = {
    # open-circuit voltage of a lithium cell, 3.1 V to 4.2 V; of a NiMH, 1.0 V to 1.4 V
    "line": (0.0, 1.0),
    "lithium": (0.0, 0.02, 0.03, 0.05, 0.07, 0.09, 0.27, 0.6, 0.8, 0.92, 1.0),
    "nimh": (0.0, 0.02, 0.05, 0.1, 0.25, 0.6, 0.85, 0.95, 1.0),
}
"""Charge of a pack at even steps of voltage from empty to full."""
CELL_V = {"lithium": {"full": 4.2, "empty": 3.1}, "nimh": {"full": 1.4, "empty": 1.0}}
OFF_SHARE = 0.03
"""Deviation of a full or empty pack's voltage from its chemistry's that needs confirmation."""


class Distance(Step):
    """Step that compares a range sensor with a tape measure."""

    def __init__(self, profile: Profile, name: str) -> None:
        sensors = {name: (kind, sensor) for kind, name, sensor in profile.sensors.every()}
        if name not in sensors:
            names = ", ".join(sensors) or "none"
            raise ValueError(f'sensor "{name[:20]}": this car has {names}')
        kind, sensor = sensors[name]
        self._offset_m = sensor.offset_m
        self._name, self._key = name, f"sensors.{kind}.{name}.offset_m"
        super().__init__("looks")
        self._readings: deque[float] = deque(maxlen=LAST)
        self._first: tuple[float, float] | None = None
        """Tape and offset, in m, of a first measurement that needs a second one."""

    def update(self, car: CarState) -> None:
        for reading in car.ranges:
            named = reading.name == self._name
            if named and is_fresh(reading) and reading.range_m is not None:
                self._readings.append(reading.range_m)
                self.phase = "asks" if self.phase == "looks" else self.phase

    def answer(self, word: str, figures: Sequence[float]) -> None:
        """Process "tape" with the distance from the sensor to the wall in m."""
        if word != "tape" or len(figures) != 1:
            raise ValueError(f'"{word[:20]}" refused: expected tape and metres')
        low, high = TAPE_M
        if not low <= figures[0] <= high:
            value, least, most = (f"{metres:g}" for metres in (figures[0], low, high))
            raise Refusal(OUT_OF_RANGE(value=value, least=least, most=most))
        if not self._readings:
            raise Refusal(NO_DISTANCE)
        offset_m = self._offset_m + figures[0] - statistics.median(self._readings)
        self.found = {}
        if abs(offset_m) > MOST_OFFSET_M:
            self._first, self.phase = None, "asks"
            raise Refusal(OFFSET(value=f"{offset_m:.2f}", most=f"{MOST_OFFSET_M:g}"))
        if abs(offset_m) > SURE_OFFSET_M and not self._agrees(figures[0], offset_m):
            self._first, self.phase = (figures[0], offset_m), "again"
            self._readings.clear()
            return
        self.found, self.phase = {self._key: round(offset_m, 3)}, "done"

    def _agrees(self, tape_m: float, offset_m: float) -> bool:
        """Return whether the first measurement, at another distance, gives the same offset."""
        if self._first is None:
            return False
        first_tape_m, first_offset_m = self._first
        if abs(tape_m - first_tape_m) < APART_M:
            value, least, before = (f"{metres:g}" for metres in (tape_m, APART_M, first_tape_m))
            raise Refusal(APART(value=value, least=least, before=before))
        return abs(offset_m - first_offset_m) <= AGREE_M

    def figures(self) -> dict[str, Any]:
        """Return the measured distance, the offset that needs a second measurement, the distance
        at which the wall should be, and whether it is near that."""
        readings, first = self._readings, self._first
        range_m = round(statistics.median(readings), 3) if readings else None
        second = first is not None and first[0] < (TARGET_M + SECOND_M) / 2.0
        target_m = SECOND_M if second else TARGET_M
        return {
            "range_m": range_m,
            "offset_m": round(first[1], 3) if first and not self.found else None,
            "target_m": target_m,
            "near": range_m is not None and abs(range_m - target_m) <= NEAR_M,
        }


class BatteryPack(Step):
    """Step that takes the pack's present voltage as full or empty, and selects the discharge curve.

    `own` is the battery of the profile, which determines the number of cells.
    """

    def __init__(self, profile: Profile, own: Battery) -> None:
        if profile.battery.address is None:
            raise ValueError("battery refused: this car has no meter (battery.address)")
        self._battery, self._own = profile.battery, own
        super().__init__("looks")
        self._readings: deque[float] = deque(maxlen=LAST)
        self._unconfirmed: tuple[str, float] | None = None
        """Word and voltage that need a person's confirmation."""

    def update(self, car: CarState) -> None:
        """Collect the voltage while the motors are off."""
        if car.volts is not None and not car.moves:
            self._readings.append(car.volts)
            self.phase = "asks" if self.phase == "looks" else self.phase

    def answer(self, word: str, figures: Sequence[float]) -> None:
        """Process "full" or "empty" (present state), "line", "lithium" or "nimh" (chemistry), or
        "sure" or "unsure" (answer about a voltage far from the chemistry's)."""
        unconfirmed, self._unconfirmed = self._unconfirmed, None
        if word in CURVES:
            self.found["battery.curve"] = CURVES[word]
        elif word in ("sure", "unsure") and unconfirmed is not None:
            if word == "unsure":
                self.phase = "done" if self.found else "asks"
                return
            self._keep(*unconfirmed)
        elif word not in ("full", "empty"):
            self._unconfirmed = unconfirmed
            expected = ", ".join(("full", "empty", *CURVES))
            raise ValueError(f'"{word[:20]}" refused: expected one of {expected}')
        elif not self._readings:
            raise Refusal(Text("no_voltage", "No voltage was measured yet: try again."))
        else:
            volts, expected_v = statistics.median(self._readings), self._expected_v(word)
            if abs(volts - expected_v) > OFF_SHARE * expected_v:
                self._unconfirmed, self.phase = (word, volts), f"odd_{word}"
                return
            self._keep(word, volts)
        self.phase = "done"

    def _keep(self, word: str, volts: float) -> None:
        self.found[f"battery.{word}_v"] = round(volts, 2)
        self._keep_nominal_between()

    def _expected_v(self, word: str) -> float:
        """Return the voltage of a full or empty pack of this chemistry; for an unknown
        chemistry, the profile's voltage."""
        own_v = self._own.full_v if word == "full" else self._own.empty_v
        curve = self.found.get("battery.curve", self._battery.curve)
        kind = next((name for name, shares in CURVES.items() if shares == curve), "")
        if kind not in CELL_V:
            return own_v
        cells = max(1, round(self._own.full_v / CELL_V[kind]["full"]))
        return cells * CELL_V[kind][word]

    def _keep_nominal_between(self) -> None:
        """Keep the nominal voltage between empty and full."""
        full = self.found.get("battery.full_v", self._battery.full_v)
        empty = self.found.get("battery.empty_v", self._battery.empty_v)
        assert isinstance(full, float) and isinstance(empty, float)
        if not empty <= self._battery.nominal_v <= full:
            self.found["battery.nominal_v"] = round((full + empty) / 2.0, 2)

    def figures(self) -> dict[str, Any]:
        """Return the measured voltage and, if confirmation is needed, the chemistry's."""
        readings, unconfirmed = self._readings, self._unconfirmed
        return {
            "volts": round(statistics.median(readings), 2) if readings else None,
            "expected_v": round(self._expected_v(unconfirmed[0]), 2) if unconfirmed else None,
        }
