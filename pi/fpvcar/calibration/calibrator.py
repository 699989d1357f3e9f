"""Calibration of one car: the kept values, the current step, and the resulting profile.

begin -> update ... answer ... update -> keep   the step's results override the profile
                             -> end    the car is as before
"""

import logging
from collections.abc import Iterator
from typing import Any

from fpvcar.calibration import driving_steps, static_steps, values
from fpvcar.calibration.esc import DeadBandUs, Neutral
from fpvcar.calibration.motors import (
    DeadBand,
    Direction,
    LeadResistor,
    claimed,
    limited,
    verifiable,
)
from fpvcar.calibration.steps import CarState, FailedStep, Step, Wish
from fpvcar.calibration.store import RESISTOR, History
from fpvcar.calibration.values import Value, fitting, overridden, settings, with_new
from fpvcar.config import ConfigError, DcMotor, EscMotor, Profile, ServoMotor
from fpvcar.drive.gate import Cause
from fpvcar.runtime.service import Event
from fpvcar.runtime.texts import Phrase, Refusal, Text

CALIBRATION_IGNORED = Phrase("calibration_ignored", "calibration: {key} ignored: {reason}")
CALIBRATION_DAMAGED = Text(
    "calibration_damaged", "calibration: its file was damaged; using the values of the profile"
)
CALIBRATION_DIRECTION = Phrase(
    "calibration_direction",
    "calibration: direction of {names} in doubt: the car does not drive; calibrate “Direction”",
)
CALIBRATION_RESISTOR = Phrase(
    "calibration_resistor",
    "calibration: motors.{name} lacks its resistor of {ohm} Ω for {watts} W: the car does "
    "not drive; solder it into the motor's lead, then calibrate “Resistor”",
)
CALIBRATION_NEUTRAL = Phrase(
    "calibration_neutral",
    "calibration: the ESC's neutral is {now} µs, in the profile {own} µs: install the profile with "
    "the calibrated values, because a stop without the car's program takes that of the profile",
)
NEUTRAL_SURE_US = 10.0
"""Difference of neutral pulses that every ESC takes for the same."""
log = logging.getLogger("fpvcar.calibration")
AWAY_S = 8.0
"""Time without a request from the page after which its step ends."""


def _resistor(name: str) -> str:
    """Return the name of a doubt: this motor lacks its resistor. Older versions ignore it."""
    return name + RESISTOR


class Calibrator:
    """Calibrator of one car.

    `own` is the profile as written, `profile` the same with the kept values. `tuned` is
    published with each new profile of the car. `doubts` names the motors with a direction in doubt,
    because a calibrated direction was lost, `missing` those found without their resistor. `most_hz`
    is the fastest PWM of the pins; None: unlimited.
    """

    def __init__(self, own: Profile, before: History, most_hz: int | None = None) -> None:
        self.own = own
        self._resistors = dict(claimed(own, most_hz))
        self.tuned = Event[Profile]()
        self.step: Step | None = None
        self._kind = self._of = ""
        self._last_request_s = 0.0
        self._load(before)
        self._applied = self.profile

    def _load(self, new: History) -> None:
        self.history = new
        self.step = None
        self._fitted = fitting(self.own, new.values)
        self.profile = overridden(self.own, self._fitted.values)
        motors = self.own.motors
        self._lost = {*new.doubts, *new.missing, *values.in_doubt(motors, self._fitted)}
        self.doubts = tuple(name for name in motors.names if name in self._lost)
        self.missing = tuple(name for name in self._resistors if _resistor(name) in self._lost)
        self.faults = tuple(self._complaints())
        for complaint in self.faults:
            log.warning("%s", complaint)

    def _complaints(self) -> Iterator[Text]:
        for key, reason in sorted(self._fitted.dropped.items()):
            yield CALIBRATION_IGNORED(key=key, reason=reason)
        if self.history.damaged:
            yield CALIBRATION_DAMAGED
        if self.doubts:
            yield CALIBRATION_DIRECTION(names=", ".join(self.doubts))
        own, now = self.own.motors.esc, self.profile.motors.esc
        if own and now and abs(now.neutral_us - own.neutral_us) > NEUTRAL_SURE_US:
            yield CALIBRATION_NEUTRAL(now=f"{now.neutral_us:g}", own=f"{own.neutral_us:g}")
        for name in self.missing:
            over = self._resistors[name]
            yield CALIBRATION_RESISTOR(
                name=name, ohm=f"{over.resistor_ohm:g}", watts=over.resistor_w(over.resistor_ohm)
            )

    def in_doubt(self) -> Cause | None:
        """Doubt for which the car must not drive: a motor's direction, or a missing resistor.

        None during the step that settles it. The one of a resistor limits all motors.
        """
        if isinstance(self.step, LeadResistor) and self.step.phase == "hold":
            return None
        if self.missing:
            return Cause.RESISTOR
        determining = self.step is not None and self._kind == "direction"
        if self.doubts and not (determining and self._of in self.doubts):
            return Cause.DIRECTION
        return None

    # Steps

    def offered(self) -> Iterator[tuple[str, str]]:
        """Yield (kind, subject) for each step available on this car."""
        motors = self.own.motors
        pairs = tuple(zip(motors.names, motors.pair, strict=True))
        for name, over in self._resistors.items():
            if verifiable(self.own, name, over):
                yield "resistor", name
        if motors.esc is not None:
            yield "neutral", "drive"
        for name, _ in pairs:
            yield "direction", name
        for name, motor in pairs:
            if isinstance(motor, DcMotor):
                yield "dead_band", name
            elif isinstance(motor, EscMotor):
                yield "dead_band_us", name
        servo = not motors.differential and isinstance(motors.pair[1], ServoMotor)
        if servo:
            yield "ends", "steer"
        if servo or motors.differential:
            yield "straight", ""
        yield "speed", ""
        for _, name, _ in self.own.sensors.every():
            yield "distance", name
        if self.own.battery.address is not None:
            yield "battery", ""

    def begin(self, kind: str, of: str, now_s: float) -> None:
        """Begin a step; a current one ends. Raises ValueError."""
        if (kind, of) not in self.offered():
            kinds = ", ".join(sorted({offered for offered, _ in self.offered()}))
            raise ValueError(f'step "{kind[:20]} {of[:20]}": this car has {kinds}')
        self.end()
        self.step = self._new_step(kind, of)
        self._kind, self._of, self._last_request_s = kind, of, now_s
        self._tune()

    def _new_step(self, kind: str, of: str) -> Step:
        profile = self.profile
        match kind:
            case "resistor":
                return LeadResistor(profile, of, self._resistors[of])
            case "direction":
                return Direction(profile.motors, of, of in self.doubts)
            case "neutral":
                return Neutral(profile, self.own)
            case "dead_band_us":
                return DeadBandUs(profile, self.own)
            case "dead_band":
                return DeadBand(profile.motors, of)
            case "ends":
                return driving_steps.SteeringEnds(profile)
            case "straight":
                return driving_steps.StraightLine(profile)
            case "speed":
                return driving_steps.Speed(profile)
            case "distance":
                return static_steps.Distance(profile, of)
            case "battery":
                return static_steps.BatteryPack(profile, self.own.battery)
        raise KeyError(kind)

    def update(self, car: CarState) -> None:
        """Process the state of the car; end the step of a page that has gone."""
        if self.step is None:
            return
        before = self.step.trial
        self.step.update(car)
        if self.step.trial is not before:
            self._tune()
        if car.now_s - self._last_request_s > AWAY_S and not car.moves:
            self.end()

    def record(self, utc_s: float) -> bool:
        """Keep the result of a step for a resistor; return whether that changed the history."""
        step, of = self.step, self._of
        if not isinstance(step, LeadResistor) or step.phase not in ("done", "missing"):
            return False
        if (step.phase == "missing") == (of in self.missing):
            return False
        doubts = tuple(sorted(self._lost ^ {_resistor(of)}))
        self._load(self.history.changed(f"resistor {of}", self._fitted.values, utc_s, doubts))
        self.step = step
        return True

    def fail(self, fault: Exception, step: Step) -> None:
        """Replace a step that raised an error by one that reports the error and moves nothing.

        A step begun since then continues.
        """
        log.error("a calibration step failed", exc_info=fault)
        if self.step is step:
            self.step = FailedStep(fault)
            self._tune()

    def answer(self, word: str, figures: list[float]) -> None:
        """Process a person's input for the step. Raises ValueError, ConfigError."""
        step = self._current()
        before = dict(step.trial)
        step.answer(word, figures)
        try:
            self._tune()
        except ValueError:
            step.trial = before
            raise

    def end(self) -> None:
        """End the step; the car returns to the kept values."""
        if self.step is not None:
            self.step = None
            self._tune()

    def status(self, limit: float, volts: float, now_s: float) -> dict[str, Any] | None:
        """Return the step for its page, and note that the page is still open."""
        self._last_request_s = now_s
        step = self.step
        if step is None:
            return None
        wish: Wish = step.wish(limit, volts)
        return {
            "kind": self._kind,
            "of": self._of,
            "phase": step.phase,
            "wish": wish._asdict(),
            "found": step.found,
            **step.figures(),
        }

    def _current(self) -> Step:
        if self.step is None:
            raise Refusal(
                Text("step_over", "The step ended when the page was closed: begin it again.")
            )
        return self.step

    # Kept values

    def keep(self, utc_s: float) -> None:
        """Keep the step's results and end it. Raises ValueError, ConfigError."""
        step = self._current()
        if not step.found:
            raise Refusal(
                Text("no_result", "There is nothing to keep: the step has no result yet.")
            )
        self._change(f"{self._kind} {self._of}".rstrip(), step.found, utc_s)

    def set(self, key: str, value: Value, utc_s: float) -> None:
        """Keep one value typed by a person. Raises ConfigError."""
        if key.endswith(".offset_m") and isinstance(value, float):
            if abs(value) > static_steps.SURE_OFFSET_M:
                raise ConfigError(
                    f"{key} = {value:g}: expected at most {static_steps.SURE_OFFSET_M:g} "
                    "either way; a larger one takes two measurements, in its step"
                )
        self._change(key, {key: value}, utc_s)

    def undo(self) -> None:
        """Go back to the values before the current change, if they are known."""
        self._set_history(self.history.undone())

    def _change(self, label: str, new: dict[str, Value], utc_s: float) -> None:
        current = self._fitted.values
        with_new(self.own, current, new)
        doubts = tuple(sorted(name for name in self._lost if f"motors.{name}.invert" not in new))
        self._set_history(self.history.changed(label, {**current, **new}, utc_s, doubts))

    def _set_history(self, new: History) -> None:
        self._load(new)
        self._tune()

    def _tune(self) -> None:
        trial = self.step.trial if self.step is not None else {}
        tuned = with_new(self.own, self._fitted.values, trial)
        if isinstance(self.step, LeadResistor):
            tuned = limited(tuned)
        if tuned != self._applied:  # an unneeded event would reset the guard's memory
            self._applied = tuned
            self.tuned.publish(tuned)

    def as_json(self) -> dict[str, Any]:
        """Return values, steps, changes and faults for the page."""
        own, now = settings(self.own), settings(self.profile)
        return {
            "values": [
                {
                    "key": key,
                    "value": setting.value,
                    "own": own[key].value,
                    "least": setting.least,
                    "most": setting.most,
                }
                for key, setting in now.items()
            ],
            "steps": [{"kind": kind, "of": of} for kind, of in self.offered()],
            "changes": [
                {
                    "utc_s": change.utc_s,
                    "what": change.what,
                    "values": change.values,
                    "before": change.before,
                }
                for change in self.history.changes
            ],
            "limit": self.own.gate.limit,
            "now": self.history.now,
            "undoable": self.history.undoable,
            "faults": self.faults,
            "doubts": self.doubts,
        }
