"""Steps for one motor: its direction, and the duty at which it starts to turn. Pure."""

from collections.abc import Sequence
from typing import Any

from fpvcar.calibration.estimates import MotionDetector
from fpvcar.calibration.steps import CarState, DriveTimer, Wish, dc, wish_for
from fpvcar.calibration.values import Value
from fpvcar.config import Motors
from fpvcar.drive.mixing import top_duty
from fpvcar.wire.refusals import Refusal

LEAST_SHARE, RAMP_PER_S, MOST_SHARE = 0.15, 0.2, 0.6
COARSE, COARSE_S = 0.01, 0.4
FINE, FINE_S = 0.003, 1.0
BACK = 0.03
"""Distance below the coarse result at which the fine steps begin."""
SENSOR_LATE_S = 0.3
LATE_S = {"turns": 0.35, "moves": 0.3}
"""Delay of a person's report of motion, and of the page's camera."""
FIRST_DUTY, MOST_DUTY = 0.02, 0.6
REST_S = 1.0
TRIES = ("coarse", "fine")
"""Phases in which the motor is driven."""


class Direction:
    """Step that turns a motor, gently and then harder, until the finger lifts.

    A person enters the direction seen. If the direction was in doubt, a correct one is kept, too.
    """

    def __init__(self, motors: Motors, name: str, in_doubt: bool = False) -> None:
        self.found: dict[str, Value] = {}
        self._in_doubt = in_doubt
        self.phase = "hold"
        self._motors, self._name, self._held = motors, name, DriveTimer()
        self._inverted = dict(zip(motors.names, motors.pair, strict=True))[name].invert
        _, self.trial = wish_for(motors, name, 0.0, 1.0)
        self._share = LEAST_SHARE
        self._words = ("left", "right") if name == "steer" else ("forward", "backward")

    def wish(self, limit: float, volts: float) -> Wish:
        """Return a wish that grows with the time held."""
        return wish_for(self._motors, self._name, self._share, limit)[0]

    def update(self, car: CarState) -> None:
        """Process the state of the car."""
        self._held.update(car)
        more = LEAST_SHARE + RAMP_PER_S * self._held.held_s
        self._share = min(more, 1.0 if self._name == "steer" else MOST_SHARE)
        if car.moves:
            self.phase = "turns"
        elif self.phase == "turns":
            self.phase = "asks"

    def answer(self, word: str, figures: Sequence[float]) -> None:
        """Process "forward" or "backward" (for steering "left" or "right"), or "nothing" for no
        motion."""
        if word == "nothing":
            self.phase, self.found = "hold", {}
            return
        if word not in self._words:
            expected = ", ".join((*self._words, "nothing"))
            raise ValueError(f'"{word[:20]}" refused: expected one of {expected}')
        if self.phase == "hold":
            raise Refusal("hold_first")
        wrong = word == self._words[1]
        right = "settled" if self._in_doubt else "right"
        self.phase = "turn_round" if wrong else right
        keep = wrong or self._in_doubt
        inverted = self._inverted != wrong
        self.found = {f"motors.{self._name}.invert": inverted} if keep else {}

    def figures(self) -> dict[str, Any]:
        """Return the words accepted for this motor."""
        return {"words": (*self._words, "nothing")}


class DeadBand:
    """Step that raises a motor's duty in small steps until it turns, twice: coarse, then fine.

    Motion is reported by a person, the range sensors or the page's camera.
    """

    def __init__(self, motors: Motors, name: str) -> None:
        self._motor, self.found = dc(motors, name), dict[str, Value]()
        self.phase, self.level = "coarse", FIRST_DUTY
        self._motors, self._name, self._by = motors, name, ""
        own = f"motors.{name}"
        _, trial = wish_for(motors, name, 0.0, 1.0)
        self.trial = {f"{own}.dead_band": 0.0, f"{own}.trim": 0.0, **trial}
        if motors.differential:
            self.trial["motors.balance"] = 0.0
        self._index = motors.names.index(name)
        self._held, self._motion = DriveTimer(), MotionDetector()
        self._levels: list[tuple[float, float]] = []
        """Start time of each duty tried in this phase."""
        self._since_s: float | None = None
        self._now_s = 0.0

    def wish(self, limit: float, volts: float) -> Wish:
        """Return the wish for the current duty; neutral while the car is to come to rest."""
        if self.phase not in TRIES:
            return Wish()
        share = min(1.0, self.level / top_duty(self._motor, volts))
        return wish_for(self._motors, self._name, share, limit)[0]

    def update(self, car: CarState) -> None:
        """Process the state of the car; a level that turns nothing for long enough is followed
        by the next."""
        self._held.update(car)
        self._now_s = car.now_s
        if self.phase == "rest" and self._held.rest_s >= REST_S:
            self.phase = "fine"
        moved = self._motion.moved(car.ranges, car.now_s, car.moves)
        if not car.moves or self.phase not in TRIES:
            self._since_s = None
            return
        reached = abs(car.duties[self._index]) >= 0.9 * self.level
        if moved:
            self._turned(SENSOR_LATE_S, "sensor")
        elif reached:
            self._climb(car.now_s)
        else:
            self._since_s = None

    def _climb(self, now_s: float) -> None:
        step, dwell_s = (FINE, FINE_S) if self.phase == "fine" else (COARSE, COARSE_S)
        if self._since_s is None:
            self._since_s = now_s
        elif now_s - self._since_s >= dwell_s:
            self.level, self._since_s = round(self.level + step, 4), now_s
            if self.level > MOST_DUTY:
                self.phase = "never"
        if not self._levels or self._levels[-1][1] != self.level:
            self._levels.append((now_s, self.level))

    def answer(self, word: str, figures: Sequence[float]) -> None:
        """Process "turns" (seen by a person) or "moves" (seen by the page's camera)."""
        if word not in LATE_S:
            raise ValueError(f'"{word[:20]}" refused: expected {", ".join(LATE_S)}')
        if self.phase not in TRIES or not self._levels:
            raise Refusal("hold_first")
        self._turned(LATE_S[word], "person" if word == "turns" else "camera")

    def _turned(self, late_s: float, by: str) -> None:
        """Record that the motor turned `late_s` ago."""
        at_s, self._by = self._now_s - late_s, by
        before = [level for since_s, level in self._levels if since_s <= at_s]
        level = before[-1] if before else self._levels[0][1]
        first = level == self._levels[0][1] and level > FIRST_DUTY
        self._levels.clear()
        if self.phase == "coarse" or first:
            self.level, self.phase = max(FIRST_DUTY, round(level - BACK, 4)), "rest"
        else:
            self.phase = "done"
            self.found = {f"motors.{self._name}.dead_band": round(level, 3)}

    def figures(self) -> dict[str, Any]:
        """Return the current duty, and the observer of the last turn."""
        return {"duty": self.level, "by": self._by}
