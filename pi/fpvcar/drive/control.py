"""Owner of the gate: the only part of `run` that sends setpoints to `wheels`.

Keeps the driver's last fresh wish and the latches. Runs the gate on every wish, and whenever time
alone may change the decision; mixes the result and sends it. Opens and closes no resources.
"""

import asyncio
import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from fpvcar.config import GuardMode, Profile
from fpvcar.drive import gate, mixing
from fpvcar.drive.gate import Cause, Decision, Hold, Latches, Wish
from fpvcar.drive.guard import Free, Guard
from fpvcar.drive.saved import SavedSettings, Saver, differing, guard_of, hold_of, limit_of
from fpvcar.runtime.clock import ClockNs
from fpvcar.runtime.service import Timer
from fpvcar.runtime.texts import STARTING, State, Text
from fpvcar.wire.telemetry import Guarding, Range
from fpvcar.wire.wheels import Answer, Status, WheelsReason

TICK_S = 0.02
"""Tick of the gate while a motor accelerates to its wish or an obstacle limits it."""
RENEW_S = 0.045
"""Tick in a steady state: just longer than the 40 ms between two wishes of a page, and short
enough for a lease to outlive an event loop that is blocked for 75 ms."""
EARLY_S = 0.002
"""Tolerance of early ticks: a wish just after a due tick then does not wake the loop twice."""
IDLE_TICK_S = 0.1
"""Tick without a driver; short enough that the lease of resting wheels never expires."""
WEAK_LIMIT = 0.5
"""Share of full throttle while the supply is weak; more current would crash the computer."""
UNMEASURED_LIMIT = 0.4
"""Share of full throttle while the guard counts on an unmeasured speed."""
NO_WHEELS = {
    "absent": Text("wheels_absent", "the wheels process is absent"),
    "hung": Text("wheels_hung", "the wheels process is hung"),
}
NO_PINS = Text("pins_silent", "the back end of the motor pins does not answer")
log = logging.getLogger("fpvcar.gate")

_PINS = {WheelsReason.PINS_SILENT, WheelsReason.PINS_LOST}
_ZERO_FIRST = WheelsReason.ZERO_FIRST
_QUIET = {WheelsReason.START, WheelsReason.CLOSED}
_MOVING = {"driving", "guarded"}
_LET_GO = Wish(0.0, 0.0, received_s=-math.inf)
"""Neutral wish that is never fresh: it stops the car but does not arm the gate."""


class GateRun(Struct, frozen=True):
    """Inputs and outputs of one run of the gate, for recorders and tests.

    `latches` and `slew` are the values before the run; `ranges` are those given to the guard.
    """

    now_ns: int
    wish: Wish | None
    latches: Latches
    world: gate.World
    guard_mode: str
    ranges: Sequence[Range]
    volts: float | None
    slew: mixing.Slew
    decision: Decision
    duties: tuple[float, ...]


class Inputs(Protocol):
    """State of the car that the gate reads at each run. No method may wait or raise."""

    def picture_age_s(self, now_s: float, /) -> float | None:
        """Return the age of the newest picture; None before the first picture."""

    def volts(self, now_s: float, /) -> float | None:
        """Return the battery voltage; None if unknown."""

    def ranges(self, now_s: float, /) -> Sequence[Range]:
        """Return the state of each range sensor."""

    def weak(self, now_s: float, /) -> bool:
        """Return whether the computer or the battery's sensor reports under-voltage."""

    def in_doubt(self) -> Cause | None:
        """Doubt about a motor for which the car must not drive."""


class Wheels(Protocol):
    """Link to the process `wheels`: wheels.client.WheelsClient. No method may wait or raise."""

    def send(self, duties: tuple[float, ...], now_ns: int, /) -> bool:
        """Send a setpoint; return False if that was not possible."""

    def aim(self, angles: tuple[float, ...], /) -> None:
        """Send angles of servos that do not steer."""

    def servo_state(self) -> State:
        """Return the state of these servos."""

    def read_answers(self, to_end: bool = False, /) -> None:
        """Read pending answers to the newest setpoint's, or to the end, for `wheels_answer`."""


class Control:
    """Owner of one car's gate.

    `reasons` and `stops` count the decisions by reason and the stops by cause.

    `changed` is set at every change of the reason or of a latch. `saver` has the settings of the
    previous process, and gets each change of a setting that must survive a restart. `watcher` is
    called after each run of the gate; it must not wait or raise. `wheels_profile` is the profile of
    `wheels`, if calibration has changed the one of the car.
    """

    def __init__(
        self,
        profile: Profile,
        wheels: Wheels,
        inputs: Inputs,
        changed: asyncio.Event,
        *,
        clock_ns: ClockNs = time.monotonic_ns,
        saver: Saver | None = None,
        watcher: Callable[[GateRun], None] | None = None,
        wheels_profile: Profile | None = None,
    ) -> None:
        self._saver, self._saved = saver, saver.before if saver else SavedSettings()
        self.limit = limit_of(self._saved, profile)
        self.guard_mode = guard_of(self._saved, profile)
        self._settings: tuple[float, GuardMode, Hold | None] | None = None
        self.wheels: State = STARTING
        self._why: Text | None = None
        hold = hold_of(self._saved)
        self.decision = Decision(0.0, 0.0, "nobody", Latches(hold=hold))
        self.duties: tuple[float, ...] = (0.0, 0.0)
        self.free = Free()
        self.reasons: Counter[str] = Counter()
        self.stops: Counter[str] = Counter()
        self._wheels, self._inputs, self._changed = wheels, inputs, changed
        self.aim, self.servo_state = wheels.aim, wheels.servo_state
        self._clock_ns, self._watcher = clock_ns, watcher
        self._wheels_motors = (wheels_profile or profile).motors
        self._use(profile)
        self._seen: Sequence[Range] = ()
        self._wish: Wish | None = None
        self._fault: Cause | None = Cause.WHEELS_LOST
        self._applied_once = False
        self._slew = mixing.Slew()
        self._stepped_ns, self._tick_s = 0, 0.0
        self._timer, self.read_wheels = Timer(self.tick), wheels.read_answers

    def _use(self, profile: Profile) -> None:
        self._profile, self._guard = profile, Guard(profile.guard)
        self._servos = mixing.servos_apart(self._wheels_motors, profile.motors)

    # Actions of drivers and grown-ups

    def wish(self, throttle: float, steer: float, now_s: float) -> None:
        """Take a fresh wish of the driver and apply it at once."""
        self._wheels.read_answers()  # a pending stop of the wheels takes effect before the new wish
        self._wish = Wish(throttle, steer, now_s)
        self.step()
        self._timer.postpone(self._tick_s)

    def let_go(self) -> None:
        """Stop the car on a stale neutral wish. It is not fresh, so it does not arm the gate."""
        if self._wish is not None:
            self._wish = _LET_GO
            self.step()

    def clear_wish(self, lost: bool) -> None:
        """Remove the driver's wish; `lost` if the link broke in the middle of a wish."""
        latches = self.decision.latches
        if lost and self._wish is not None and not self._wish.neutral:
            latches = replace(latches, arm=latches.arm or Cause.SILENCE)
        self._wish = None
        self.step(latches)

    def handover(self) -> None:
        """Discard the wish of the previous driver after a handover."""
        self._wish = None
        self.step(replace(self.decision.latches, arm=Cause.HANDOVER))

    def estop(self, by: str, grown_up: bool) -> None:
        """Stop the car at once.

        If a stop already holds the car, the gate does not run again: anyone may push the button a
        thousand times a second, and each run is recorded.
        """
        before = self.decision.latches
        cause = Cause.ESTOP_GROWN_UP if grown_up else Cause.ESTOP
        after = gate.hold(before, Hold(cause, by))
        if after != before or not self.decision.neutral:
            self.step(after)

    def resume(self, grown_up: bool) -> bool:
        """Clear the hold on the car; return False if this person may not clear it."""
        before = self.decision.latches
        after = gate.resume(before, grown_up)
        if after != before and self._wish is not None:
            self._wish = _LET_GO  # a neutral from before the push does not arm the gate
        self.step(after)
        return before.hold is None or after.hold is None

    def tune(self, profile: Profile) -> None:
        """Switch to another version of this car's profile."""
        self._use(profile)
        self.step()

    def guard(self, mode: GuardMode) -> None:
        """Set the collision guard's mode, chosen by a grown-up: "off", "warn" or "limit"."""
        log.info("guard mode set to %s", mode)
        self.guard_mode = mode
        self.step()
        self._changed.set()

    def guarding(self) -> Guarding:
        """Return the share of full throttle that the collision guard allows, and the limiting
        sensors."""
        settings = self._profile.guard
        if self.guard_mode == "off":
            return Guarding(self.guard_mode, settings.stop_m, measured=settings.measured)
        return Guarding(
            self.guard_mode,
            settings.stop_m,
            self.free.ahead,
            self.free.back,
            self._guard.ahead_by,
            self._guard.back_by,
            settings.measured,
        )

    def wish_age_s(self, now_s: float) -> float | None:
        """Return the age of the driver's last fresh wish; None while no driver is active."""
        if self._wish is None or self._wish is _LET_GO:
            return None
        return now_s - self._wish.received_s

    def driven(self) -> bool:
        """Return whether the car has a driver."""
        return self.decision.reason != "nobody"

    # Answers of the wheels

    def wheels_answer(self, answer: Answer) -> None:
        """Process an answer of `wheels`; a stop that they initiated latches the gate."""
        if answer.status == Status.APPLIED:
            self._applied_once = True
            if self.wheels != "ok":
                self._set_fault(None, "ok")
        elif answer.reason in _PINS:
            is_new = self._fault is not Cause.PINS
            self._set_fault(Cause.PINS, self._why or NO_PINS)
            if is_new:  # at once: a fault that has ended by the next tick must hold the car too
                self.step()  # once: a step sends a setpoint, and each setpoint is answered
        elif answer.reason == _ZERO_FIRST and not self.decision.neutral:
            # The wheels' lease expired while the car stood; they require a zero first.
            latches = self.decision.latches
            self.step(replace(latches, arm=latches.arm or Cause.HANDOVER))
        elif answer.status == Status.STOPPED and answer.reason not in _QUIET:
            reason = answer.reason.name.lower().replace("_", " ")
            log.warning("wheels stopped by itself: %s (seq %d)", reason, answer.seq)
            stop = Hold(Cause.WHEELS_STOPPED, reason)
            self.step(gate.hold(self.decision.latches, stop))

    def wheels_fault(self, text: Text | None) -> None:
        """Store the back end's description of a pin fault; None if there is no fault."""
        self._why = text
        if self._fault is Cause.PINS and text:
            self._set_fault(Cause.PINS, text)

    def wheels_state(self, state: str) -> None:
        """Store the wheels client's state: "ok", "absent" or "hung"."""
        if state != "ok":
            self._set_fault(Cause.WHEELS_LOST, NO_WHEELS[state])

    def _set_fault(self, fault: Cause | None, text: State) -> None:
        if fault is not self._fault or text != self.wheels:
            if text != "ok" or self.wheels != STARTING:
                log.warning("wheels: %s", text)
            self._fault, self.wheels = fault, text
            self._changed.set()

    # Gate

    def step(self, latches: Latches | None = None) -> None:
        """Run the gate now and send the resulting setpoint."""
        self._stepped_ns = now_ns = self._clock_ns()
        before, latched = self.decision, latches or self.decision.latches
        now_s = now_ns / 1e9
        wish, world, volts = self._wish, self._world(now_s), self._inputs.volts(now_s)
        self.decision = gate.decide(wish, latched, world, now_s, self._profile.gate)
        slew = self._slew
        self.duties, self._slew = mixing.mix(
            self.decision.throttle,
            self.decision.steer,
            self._profile.motors,
            mixing.supply_v(volts, self._profile.battery),
            slew,
            now_s,
        )
        servos, duties = self._servos, self.duties
        self._wheels.send(mixing.corrected(*servos, duties) if servos else duties, now_ns)
        self._tick_s = self._next_tick_s(world, slew, now_s)
        after = self.decision
        self._save_changes(after.latches.hold)
        if self._watcher is not None:
            mode, seen = self.guard_mode, self._seen
            self._watcher(
                GateRun(now_ns, wish, latched, world, mode, seen, volts, slew, after, duties)
            )
        if (before.reason, before.latches) != (after.reason, after.latches):
            self._count(before, after)
            # changes many times a second at a wall
            if not {before.reason, after.reason} <= _MOVING:
                if after.words != before.words:
                    log.info("%s", after.words)
                self._changed.set()

    def _save_changes(self, hold: Hold | None) -> None:
        """Save the settings that differ from the profile, so that they survive a restart."""
        settings = self.limit, self.guard_mode, hold
        if settings == self._settings:  # the case at nearly every step
            return
        self._settings = settings
        saved = differing(self._profile, self.limit, self.guard_mode, hold)
        if saved != self._saved:
            self._saved = saved
            if self._saver is not None:
                self._saver.put(saved)

    def _count(self, before: Decision, after: Decision) -> None:
        if before.reason != after.reason:
            self.reasons[after.reason] += 1
        hold, arm = after.latches.hold, after.latches.arm
        if hold is not None and hold != before.latches.hold:
            self.stops[hold.cause] += 1
        if arm not in (None, Cause.HANDOVER, before.latches.arm):
            self.stops[str(arm)] += 1

    def _world(self, now_s: float) -> gate.World:
        fault = self._fault
        if fault is not None and not self._applied_once:
            # Until the wheels have answered once the car is starting, not broken: only an attempt
            # to drive then turns it into a fault that latches.
            trying = self._wish is not None and not self._wish.neutral
            fault = fault if trying else None
        if fault is None:
            fault = self._inputs.in_doubt()
        age_s = self._inputs.picture_age_s(now_s)
        return gate.World(age_s, fault, self.limit_now(now_s), self._free(now_s))

    def limit_now(self, now_s: float) -> float:
        """Return the speed limit now: lower with a weak supply, or an unmeasured speed's guard."""
        weak = self._inputs.weak(now_s)
        unmeasured = self.guard_mode == "limit" and not self._profile.guard.measured
        return min(self.limit, WEAK_LIMIT if weak else 1.0, UNMEASURED_LIMIT if unmeasured else 1.0)

    def _free(self, now_s: float) -> Free:
        if self.guard_mode == "off":
            self.free, self._seen = Free(), ()
            return self.free
        self._seen = self._inputs.ranges(now_s)
        self.free = self._guard.update(self._seen, now_s, self.decision.throttle)
        return self.free if self.guard_mode == "limit" else Free()

    def _next_tick_s(self, world: gate.World, last_slew: mixing.Slew, now_s: float) -> float:
        """Return the time until the next run of the gate, before time alone changes the
        decision. `last_slew` is the motors' slew state after the previous run."""
        decision, wish = self.decision, self._wish
        if decision.reason == "nobody":
            return IDLE_TICK_S
        if decision.neutral or wish is None:
            return RENEW_S
        free = world.free.ahead if wish.throttle > 0.0 else world.free.back
        if free < 1.0 or self._slew[:2] != last_slew[:2]:
            return TICK_S
        return min(RENEW_S, gate.holds_s(wish, world, now_s, self._profile.gate))

    @property
    def due_in_s(self) -> float:
        """Time until the next run of the gate if no wish arrives earlier."""
        return self._tick_s - (self._clock_ns() - self._stepped_ns) / 1e9

    async def run(self) -> None:
        """Run the gate whenever time alone may change its decision."""
        await self._timer.run()

    def tick(self) -> float:
        """Read the wheels' answers; run the gate if due. Return the time to the next tick in s."""
        self._wheels.read_answers()
        if self.due_in_s <= EARLY_S:
            self.step()
        return self.due_in_s
