"""Steps for one motor: its resistor, its direction, the duty at which it starts to turn. Pure."""

import math
import statistics
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from fpvcar.calibration.estimates import MotionDetector
from fpvcar.calibration.steps import CarState, DriveTimer, Step, Wish, dc, wish_for
from fpvcar.config import DcMotor, Motors, Profile
from fpvcar.config.pwm import MOST_HZ, OverPeak, over_peak
from fpvcar.drive.mixing import top_duty
from fpvcar.runtime.texts import Refusal, Text

HOLD_FIRST = Text("hold_first", "Hold the button first, and watch the wheel.")

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
RESISTOR_DUTY, RESISTOR_S, SETTLE_S = 0.1, 2.0, 0.3
"""Largest duty of the step, the time for which its current is measured, and the time before."""
READINGS = 10
PRESENT_SHARE = 0.9
"""Share of full_v / peak_a below which the resistor is missing."""


def claimed(profile: Profile, most_hz: int | None) -> Iterator[tuple[str, OverPeak]]:
    """Yield the motors that need a resistor, and have one by the profile."""
    for over in over_peak(profile, most_hz, bare=True):
        name = over.place.removeprefix("motors.")
        if dc(profile.motors, name).resistor_ohm:
            yield name, over


def verifiable(profile: Profile, name: str, over: OverPeak) -> bool:
    """Return whether `LeadResistor` can verify the resistor of this motor.

    `wheels` changes the duty of a motor with `hold`; pulses above MOST_HZ end before the current
    of a coil has risen.
    """
    steady = dc(profile.motors, name).hold == 1.0 and over.hz <= MOST_HZ
    return steady and profile.battery.address is not None


def limited(profile: Profile) -> Profile:
    """Return the profile with no motor above RESISTOR_DUTY, whatever the wish and its sender."""
    most_v = RESISTOR_DUTY * profile.battery.lowest_v
    motors = {
        name: replace(motor, max_volts=min(motor.max_volts, most_v))
        for name, motor in profile.motors.named
        if isinstance(motor, DcMotor)
    }
    return replace(profile, motors=replace(profile.motors, **motors))


class LeadResistor(Step):
    """Step that verifies the resistor in a motor's lead: battery current at 10 % duty and at rest.

    Without the resistor a stalled motor may draw more than its bridge bears, so the step drives by
    a `limited` profile. A dead band above that limit gives the same duty for each wish.
    """

    def __init__(self, profile: Profile, name: str, over: OverPeak) -> None:
        super().__init__("hold")
        self._motors, self._name, self._over = profile.motors, name, over
        self._resistor_ohm = dc(profile.motors, name).resistor_ohm
        _, self.trial = wish_for(profile.motors, name, 0.0, 1.0)
        self.trial |= {
            f"motors.{other}.dead_band": 1.0 if other == name else 0.0
            for other, motor in profile.motors.named
            if isinstance(motor, DcMotor)
        }
        if profile.motors.differential:
            self.trial["motors.balance"] = 0.0
        self._held, self._read_s, self._ohm = DriveTimer(), -math.inf, 0.0
        self._rest, self._driven = deque[float](maxlen=3 * READINGS), list[tuple[float, float]]()

    def wish(self, limit: float, volts: float) -> Wish:
        """Return a wish to move; neutral until the rest is measured, and at the end."""
        if self.phase != "hold" or len(self._rest) < READINGS:
            return Wish()
        return wish_for(self._motors, self._name, RESISTOR_DUTY, limit)[0]

    def update(self, car: CarState) -> None:
        """Process the state of the car, and each new reading of its battery."""
        self._held.update(car)
        if not car.moves:
            self._driven.clear()
        now = car.battery
        if self.phase != "hold" or now is None:
            return
        if now.volts is None or now.amps is None or now.age_s is None:
            return
        if car.now_s - now.age_s > self._read_s:
            self._read_s = car.now_s - now.age_s + 0.01
            if self._held.rest_s - now.age_s >= SETTLE_S:
                self._rest.append(now.amps)
            elif self._held.held_s - now.age_s >= SETTLE_S:
                self._driven.append((now.amps, sum(map(abs, car.duties)) * now.volts))
        if self._held.held_s >= RESISTOR_S + SETTLE_S:
            enough = min(len(self._rest), len(self._driven)) >= READINGS
            self.phase = self._result() if enough else "nothing"

    def _result(self) -> str:
        """Compare the resistance; "nothing" for little current, or for one within two standard
        errors of the limit."""
        driven, rest, over = [amps for amps, _ in self._driven], self._rest, self._over
        amps = statistics.fmean(driven) - statistics.fmean(rest)
        noise_a = (statistics.stdev(one) / math.sqrt(len(one)) for one in (driven, rest))
        volts = statistics.fmean(volts for _, volts in self._driven)
        limit_a = volts / (PRESENT_SHARE * over.supply_v / over.peak_a)
        least_a = 0.5 * volts / (over.bridge_ohm + over.winding_ohm + self._resistor_ohm)
        if amps < least_a or abs(amps - limit_a) < 2.0 * math.hypot(*noise_a):
            return "nothing"
        self._ohm = volts / amps
        return "missing" if amps > limit_a else "done"

    def answer(self, word: str, figures: Sequence[float]) -> None:
        """Raise ValueError: this step has no questions."""
        raise ValueError(f'"{word[:20]}" refused: this step has no questions')

    def figures(self) -> dict[str, Any]:
        """Return the measured resistance, and the resistor that the motor needs."""
        ohm = self._over.resistor_ohm
        return {"ohm": self._ohm, "needs_ohm": ohm, "watts": self._over.resistor_w(ohm)}


class Direction(Step):
    """Step that turns a motor, gently and then harder, until the finger lifts.

    A person enters the direction seen. If the direction was in doubt, a correct one is kept, too.
    """

    def __init__(self, motors: Motors, name: str, in_doubt: bool = False) -> None:
        super().__init__("hold")
        self._in_doubt = in_doubt
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
            raise Refusal(HOLD_FIRST)
        wrong = word == self._words[1]
        right = "settled" if self._in_doubt else "right"
        self.phase = "turn_round" if wrong else right
        keep = wrong or self._in_doubt
        inverted = self._inverted != wrong
        self.found = {f"motors.{self._name}.invert": inverted} if keep else {}

    def figures(self) -> dict[str, Any]:
        """Return the words accepted for this motor."""
        return {"words": (*self._words, "nothing")}


class DeadBand(Step):
    """Step that raises a motor's duty in small steps until it turns, twice: coarse, then fine.

    Motion is reported by a person, the range sensors or the page's camera.
    """

    def __init__(self, motors: Motors, name: str) -> None:
        super().__init__("coarse")
        self._motor, self.level = dc(motors, name), FIRST_DUTY
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
            raise Refusal(HOLD_FIRST)
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
