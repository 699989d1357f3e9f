"""Steps on the floor: straight line, steering range, speed. Pure."""

import math
from collections.abc import Sequence
from typing import Any

from fpvcar.calibration.estimates import (
    TRACK_M,
    WHEELBASE_M,
    Run,
    StraightRun,
    end_speed_mps,
    is_fresh,
    share_of,
    speed_line,
    straight_setting,
)
from fpvcar.calibration.steps import CarState, DriveTimer, Step, Wish
from fpvcar.config import Profile, ServoMotor
from fpvcar.runtime.texts import OUT_OF_RANGE, Refusal, Text

STRAIGHT_SHARE = 0.35
STRAIGHT_BEND = 0.06
"""Bend in 1/m that counts as straight: 3 cm aside after a metre."""
WAY_M, ASIDE_CM = (0.2, 5.0), 200.0
SERVO_STEP_DEG, SERVO_STEP_US = 1.0, 10.0
SPEED_SHARES = (0.1, 1.0)
BETWEEN_DEG = 30.0
"""Largest bearing error for a speed measurement; sensors pointing further aside are ignored."""
RAMP_S = 0.15
"""Soft start of a run, ignored in the measurement of its speed."""


def _figures(values: Sequence[float], count: int, expected: str) -> Sequence[float]:
    if len(values) != count or not all(map(math.isfinite, values)):
        raise ValueError(f"{len(values)} numbers refused: expected {expected}")
    return values


class StraightLine(Step):
    """Step that drives straight ahead; a person enters how far aside the car came.

    Sets the balance of two sides, or a servo's centre.
    """

    def __init__(self, profile: Profile) -> None:
        super().__init__("hold")
        motors = profile.motors
        if motors.differential:
            self._key, self._setting = "motors.balance", motors.balance
            # a left side that is slower by b bends by b / track to the left
            self._gain, self._limit = TRACK_M, 0.5
        elif isinstance(motors.pair[1], ServoMotor):
            servo = motors.pair[1]
            self._key, self._setting = "motors.steer.centre_us", servo.centre_us
            us_per_rad = math.degrees(1.0) * servo.us_per_deg
            sign = -1.0 if servo.invert else 1.0
            self._gain, self._limit = sign * us_per_rad * WHEELBASE_M, math.inf
        else:
            raise ValueError(
                "straight line refused: a motor steers and a spring centres it; "
                "adjust the spring or the linkage"
            )
        self._runs: list[StraightRun] = []
        self._held, self._drove = DriveTimer(), False

    def wish(self, limit: float, volts: float) -> Wish:
        """Return a slow forward wish."""
        return Wish(min(1.0, STRAIGHT_SHARE / max(limit, 0.01)))

    def update(self, car: CarState) -> None:
        """Process the state of the car."""
        self._held.update(car)
        if car.moves:
            self._drove, self.phase = True, "drives"
        elif self.phase == "drives":
            self.phase = "asks"

    def answer(self, word: str, figures: Sequence[float]) -> None:
        """Process "aside" with metres ahead and centimetres to the left (negative: right)."""
        if word != "aside" or not self._drove:
            raise Refusal(Text("drive_first", "Drive first, then enter how far the car went."))
        way_m, aside_cm = _figures(figures, 2, "metres ahead, cm to the left")
        if not WAY_M[0] <= way_m <= WAY_M[1] or abs(aside_cm) > ASIDE_CM:
            raise ValueError(
                f"{way_m:g} m, {aside_cm:g} cm refused: expected {WAY_M[0]:g} to "
                f"{WAY_M[1]:g} m and at most {ASIDE_CM:g} cm"
            )
        self._drove = False
        self._runs.append(StraightRun(self._setting, way_m, aside_cm / 100.0))
        new = straight_setting(self._runs, self._gain)
        self._setting = min(max(new, -self._limit), self._limit)
        digits = 1 if self._key.endswith("_us") else 4
        self.found = {self._key: round(self._setting, digits)}
        self.trial = dict(self.found)
        straight = abs(self._runs[-1].bend) <= STRAIGHT_BEND
        self.phase = "done" if straight else "again"

    def figures(self) -> dict[str, Any]:
        """Return all runs so far, and the setting."""
        return {
            "runs": [
                {"way_m": run.way_m, "aside_cm": round(100.0 * run.aside_m, 1)}
                for run in self._runs
            ],
            "setting": self._setting,
        }


class SteeringEnds(Step):
    """Step that turns a servo to one end; a person moves that end, or the centre, in small
    steps."""

    def __init__(self, profile: Profile) -> None:
        servo = profile.motors.pair[1]
        if profile.motors.differential or not isinstance(servo, ServoMotor):
            raise ValueError("ends refused: this car has no steering servo")
        super().__init__("hold")
        self._side = "left"
        self._now = {
            "centre_us": servo.centre_us,
            "left_deg": servo.left_deg,
            "right_deg": servo.right_deg,
        }
        self._us = -SERVO_STEP_US if servo.invert else SERVO_STEP_US

    def wish(self, limit: float, volts: float) -> Wish:
        """Return a wish towards the selected side; for the centre, a minimal deflection."""
        return Wish(0.0, {"left": 1.0, "right": -1.0, "centre": 0.001}[self._side])

    def answer(self, word: str, figures: Sequence[float]) -> None:
        """Process "left", "right" or "centre" to select a position, "more" or "less" to move it
        (at the centre: "more" is to the left, "less" to the right)."""
        if word in ("left", "right", "centre"):
            self._side = word
            return
        if word not in ("more", "less"):
            expected = "left, right, centre, more, less"
            raise ValueError(f'"{word[:20]}" refused: expected one of {expected}')
        sign = 1.0 if word == "more" else -1.0
        if self._side == "centre":
            key, step = "centre_us", self._us
        else:
            key, step = f"{self._side}_deg", SERVO_STEP_DEG
        self._now[key] = max(0.0, self._now[key] + sign * step)
        self.found[f"motors.steer.{key}"] = self._now[key]
        self.trial = dict(self.found)

    def figures(self) -> dict[str, Any]:
        """Return the selected position and all settings."""
        return {"side": self._side, **self._now}


class Speed(Step):
    """Step that runs at a throttle, forward or back, in view of a range sensor.

    Two or more runs at different throttles give the car's speed at any throttle.
    """

    def __init__(self, profile: Profile) -> None:
        super().__init__("hold")
        self._throttle = 0.35
        self._runs: list[Run] = []
        self._samples: dict[str, list[tuple[float, float]]] = {}
        self._now: float | None = None
        self._began_s = 0.0
        self._speeds = profile.speeds

    def wish(self, limit: float, volts: float) -> Wish:
        """Return the chosen throttle, as far as the speed limit allows it."""
        return Wish(min(max(self._throttle / max(limit, 0.01), -1.0), 1.0))

    def update(self, car: CarState) -> None:
        """Collect sensor readings while the throttle has the chosen value."""
        if car.throttle and self._now is None:
            self._now, self._began_s = car.throttle, car.now_s
            self._samples = {}
            self.phase = "drives"
        if self._now is None:
            return
        if abs(car.throttle - self._now) < 0.01:
            if car.now_s - self._began_s >= RAMP_S:
                self._add(car)
        elif not car.moves:
            self._end()
            self._now = None

    def _add(self, car: CarState) -> None:
        for reading in car.ranges:
            off_deg = abs(abs(reading.bearing_deg) - 90.0)  # 90: ahead or back
            if not is_fresh(reading) or off_deg < 90.0 - BETWEEN_DEG:
                continue
            assert reading.range_m is not None and reading.age_s is not None
            at_s, samples = car.now_s - reading.age_s, self._samples
            line = samples.setdefault(reading.name, [])
            if not line or at_s > line[-1][0] + 1e-4:
                line.append((at_s, reading.range_m))

    def _end(self) -> None:
        speeds = [
            (len(samples), speed)
            for samples in self._samples.values()
            if (speed := end_speed_mps(samples)) is not None
        ]
        if not speeds or self._now is None:
            self.phase = "short"
            return
        self._runs.append(Run(self._now, max(speeds)[1]))
        self._evaluate()

    def _evaluate(self) -> None:
        line = speed_line(self._runs)
        self.phase = "again" if line is None else "done"
        self.found = {}
        if line is not None:
            least, top = line
            self.found = {"guard.top_mps": round(top, 3), "speeds.least_mps": round(least, 3)}

    def answer(self, word: str, figures: Sequence[float]) -> None:
        """Process "throttle" (for the next run, -1..1), "forget" (drops the last run) or
        "measured" (metres and seconds of the last run, for a car without a suitable sensor)."""
        if word == "forget":
            self._runs = self._runs[:-1]
            self._evaluate()
        elif word == "throttle":
            (throttle,) = _figures(figures, 1, "a throttle")
            low, high = SPEED_SHARES
            if not low <= abs(throttle) <= high:
                raise Refusal(
                    OUT_OF_RANGE(value=f"{throttle:g}", least=f"{low:g}", most=f"{high:g}")
                )
            self._throttle = throttle
        elif word == "measured":
            way_m, took_s = _figures(figures, 2, "metres, seconds")
            if not 0.1 <= way_m <= 100.0 or not 0.1 <= took_s <= 100.0:
                raise ValueError(f"{way_m:g} m in {took_s:g} s refused: expected 0.1 to 100 each")
            self._runs.append(Run(self._throttle, way_m / took_s))
            self._evaluate()
        else:
            expected = "throttle, forget, measured"
            raise ValueError(f'"{word[:20]}" refused: expected one of {expected}')

    def figures(self) -> dict[str, Any]:
        """Return all runs, and the speed presets computed from them."""
        line, speeds = speed_line(self._runs), self._speeds
        presets = {"small_child": speeds.small_child_mps, "child": speeds.child_mps}
        return {
            "throttle": self._throttle,
            "runs": [
                {"throttle": run.throttle, "mps": round(run.speed_mps, 3)} for run in self._runs
            ],
            "shares": {name: round(share_of(mps, *line), 3) for name, mps in presets.items()}
            if line
            else {},
        }
