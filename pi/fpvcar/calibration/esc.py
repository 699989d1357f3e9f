"""Steps for an ESC, with the wheels in the air: its neutral pulse, and its dead band. Pure.

Both move pulses by a few microseconds around the neutral of the profile. Neither sends more than
`limit` of the profile: the ESC's own end points are taught by its own procedure, without a program.
"""

from collections.abc import Sequence
from typing import Any

from fpvcar.calibration.motors import HOLD_FIRST, LATE_S, REST_S
from fpvcar.calibration.steps import CarState, DriveTimer, Step, Wish, wish_for
from fpvcar.config import EscMotor, Profile
from fpvcar.config.motors import DEAD_BAND_MOST_US, NEUTRAL_OFF_US
from fpvcar.runtime.texts import Refusal

STEP_US = 5.0
"""Step of a pulse: that of pigpio; a PCA9685 has 4.9 at 50 Hz."""
NEUTRAL_KEY, DEAD_BAND_KEY = "motors.drive.neutral_us", "motors.drive.dead_band_us"
DWELL_S, FIRST_S = 0.8, 1.6
"""Time for which a pulse must turn nothing. The first one follows arming and a brake pulse."""
BACK_US = 20.0
"""Distance below the dead band of the first side at which the search of the second one begins."""
TRIES = ("first", "second")


def _esc(profile: Profile) -> EscMotor:
    esc = profile.motors.esc
    if esc is None:
        raise ValueError("this step needs an ESC in motors.drive")
    return esc


class Neutral(Step):
    """Step that moves the neutral pulse until the wheels stand.

    The car has no wish meanwhile: the pulse is the one of a car that stands, at most NEUTRAL_OFF_US
    from that of the profile. A stop takes it back.
    """

    def __init__(self, profile: Profile, own: Profile) -> None:
        super().__init__("asks")
        esc = _esc(profile)
        self._kept_us, self._own_us = esc.neutral_us, _esc(own).neutral_us
        ahead = (esc.forward_us > esc.neutral_us) != esc.invert
        self._ahead_us = STEP_US if ahead else -STEP_US

    @property
    def _now_us(self) -> float:
        now_us = self.trial.get(NEUTRAL_KEY, self._kept_us)
        assert isinstance(now_us, float)
        return now_us

    def update(self, car: CarState) -> None:
        """Go back to the kept neutral while a stop holds the car."""
        if car.held and self.trial:
            self.trial, self.found, self.phase = {}, {}, "stopped"

    def answer(self, word: str, figures: Sequence[float]) -> None:
        """Process "creeps_forward" or "creeps_backward", or "still" for wheels that stand."""
        if word == "still":
            changed = self._now_us != self._kept_us
            self.found = {NEUTRAL_KEY: self._now_us} if changed else {}
            self.phase = "done" if changed else "right"
            return
        sides = {"creeps_forward": -self._ahead_us, "creeps_backward": self._ahead_us}
        if word not in sides:
            expected = ", ".join((*sides, "still"))
            raise ValueError(f'"{word[:20]}" refused: expected one of {expected}')
        now_us, self.found = self._now_us + sides[word], {}
        if abs(now_us - self._own_us) > NEUTRAL_OFF_US:
            self.phase = "far"
            return
        self.trial, self.phase = {NEUTRAL_KEY: now_us}, "asks"

    def figures(self) -> dict[str, Any]:
        """Return the present pulse, and the accepted words."""
        words = ("creeps_forward", "creeps_backward", "still")
        return {"pulse_us": self._now_us, "words": words}


class DeadBandUs(Step):
    """Step that moves the pulse away from neutral until the wheels turn, one side after the other.

    A person or the page's camera reports motion. Neutral is the middle of both pulses. The second
    side is the one that the ESC may take for a brake: its pulses begin just below the dead band of
    the first side, so that the brake pulse before them exceeds it.
    """

    def __init__(self, profile: Profile, own: Profile) -> None:
        super().__init__("first")
        self._esc, self._own, self._motors = _esc(profile), _esc(own), profile.motors
        self._base_us, self._level_us = 0.0, STEP_US
        self._sides: list[float] = []
        self._by = ""
        self._held, self._now_s = DriveTimer(), 0.0
        self._levels: list[tuple[float, float]] = []
        """Start time of each pulse tried on this side."""
        self._since_s: float | None = None
        self._try(0.0)

    def _try(self, base_us: float) -> None:
        """Begin a search above `base_us`. With that dead band a small wish gives a pulse just above
        it."""
        self._base_us, self._level_us = base_us, base_us + STEP_US
        self._levels.clear()
        self._since_s = None
        self.trial = {DEAD_BAND_KEY: base_us, "motors.drive.trim": 0.0}

    @property
    def _share(self) -> float:
        """Share of full throttle that gives the present pulse; negative on the second side."""
        esc, second = self._esc, bool(self._sides)
        end_us = esc.reverse_us if second else esc.forward_us
        span_us = abs(end_us - esc.neutral_us) - self._base_us
        share = (self._level_us - self._base_us) / span_us
        return -share if second != esc.invert else share

    def wish(self, limit: float, volts: float) -> Wish:
        """Return the wish for the present pulse; neutral while the car is to come to rest."""
        if self.phase not in TRIES:
            return Wish()
        return wish_for(self._motors, "drive", self._share / self._esc.top, limit)[0]

    def update(self, car: CarState) -> None:
        """Process the state of the car; a pulse that turns nothing is followed by the next."""
        self._held.update(car)
        self._now_s = car.now_s
        if self.phase == "rest" and self._held.rest_s >= REST_S:
            self.phase = TRIES[len(self._sides)]
        if self.phase not in TRIES or not car.moves:
            self._since_s = None
            return
        if not self._levels or self._levels[-1][1] != self._level_us:
            self._levels.append((car.now_s, self._level_us))
        if abs(car.duties[0]) >= 0.9 * abs(self._share):
            self._climb(car.now_s)
        else:
            self._since_s = None

    def _climb(self, now_s: float) -> None:
        if self._since_s is None:
            self._since_s = now_s
        elif now_s - self._since_s >= (DWELL_S if self._levels[1:] else FIRST_S):
            self._level_us, self._since_s = self._level_us + STEP_US, now_s
            if self._level_us > DEAD_BAND_MOST_US or abs(self._share) > self._esc.top:
                self.phase = "never"

    def answer(self, word: str, figures: Sequence[float]) -> None:
        """Process "turns" (seen by a person) or "moves" (seen by the page's camera)."""
        if word not in LATE_S:
            raise ValueError(f'"{word[:20]}" refused: expected {", ".join(LATE_S)}')
        if self.phase not in TRIES or not self._levels:
            raise Refusal(HOLD_FIRST)
        self._by = "person" if word == "turns" else "camera"
        at_s = self._now_s - LATE_S[word]
        before = [level_us for since_s, level_us in self._levels if since_s <= at_s]
        first_us = self._levels[0][1]
        level_us = before[-1] if before else first_us
        if level_us == first_us and self._base_us:
            self._try(max(0.0, self._base_us - BACK_US))
            self.phase = "rest"
            return
        self._sides.append(level_us)
        if len(self._sides) == len(TRIES) or self._esc.reverse == "forward-only":
            self._end()
        else:
            self._try(max(0.0, level_us - BACK_US))
            self.phase = "rest"

    def _end(self) -> None:
        """Take the middle of both pulses for neutral, and half their distance for the dead band."""
        first_us, second_us = self._sides[0], self._sides[-1]
        ahead = 1.0 if self._esc.forward_us > self._esc.neutral_us else -1.0
        neutral_us = self._esc.neutral_us + ahead * (first_us - second_us) / 2.0
        low_us, high_us = (
            self._own.neutral_us - NEUTRAL_OFF_US,
            self._own.neutral_us + NEUTRAL_OFF_US,
        )
        neutral_us = min(max(neutral_us, low_us), high_us)
        self.found = {DEAD_BAND_KEY: (first_us + second_us) / 2.0}
        if neutral_us != self._esc.neutral_us:
            self.found[NEUTRAL_KEY] = neutral_us
        self.phase = "done"

    def figures(self) -> dict[str, Any]:
        """Return the present pulse, the observer of the last turn, and the ends of the profile."""
        esc = self._esc
        ahead = 1.0 if (esc.forward_us > esc.neutral_us) == (not self._sides) else -1.0
        pulse_us = esc.neutral_us + ahead * self._level_us
        return {"pulse_us": pulse_us, "by": self._by, "ends_us": (esc.reverse_us, esc.forward_us)}
