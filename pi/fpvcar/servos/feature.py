"""Pan, tilt and other servos that do not steer: from a page's wish to the angles for `wheels`.

    Look -> ServoAims.look -> gate.may_aim -> Aim -> Control.aim -> wheels -> pins

The driver turns them; a viewer, where a grown-up allows it, while the driver does not. A wish to
turn ends with its age, as one to drive does. A stop leaves them still, or turns them to their rest
if the profile says so.
"""

import math
import time
from collections.abc import Callable

from msgspec import Struct

from fpvcar.drive import gate
from fpvcar.drive.aiming import STEP_S, Aim
from fpvcar.drive.gate import Cause
from fpvcar.http.responses import quoted
from fpvcar.runtime.service import Part, Timer
from fpvcar.runtime.texts import State
from fpvcar.seat.drive_socket import Session
from fpvcar.seat.feature import Core, Feature
from fpvcar.seat.handlers import Right, handles
from fpvcar.wire.down import Error
from fpvcar.wire.servos import LetLook, Look

REST_S = 0.25
"""Interval of repeated angles while all servos rest; `wheels` may have been restarted."""
DIGITS = 2


class ServoState(Struct, frozen=True):
    """Servo on all pages: its angle, limits and rest in degrees; + is left or up."""

    deg: float
    least_deg: float
    most_deg: float
    rest_deg: float


class ServosState(Struct, frozen=True):
    """Servos by name, and whether viewers may turn them."""

    servos: dict[str, ServoState]
    viewers: bool
    state: State = "ok"
    """Fault of the servos' pulses; the car drives all the same."""


class ServoAims:
    """Servos of one car, in the profile's order. They start at their rest."""

    def __init__(self, core: Core, clock_s: Callable[[], float] = time.monotonic) -> None:
        self.aims = {name: Aim(servo) for name, servo in core.profile.servos.items()}
        self._control, self._sessions, self._limits = core.control, core.sessions, core.profile.gate
        self._changed, self._recorder, self._clock_s = core.changed, core.recorder, clock_s
        self._timer, self._saver = Timer(self.step), core.saver
        self._sessions.viewers_look = core.saver.later.viewers_look
        self._client, self._wished_s = "", -math.inf
        """Page of the newest wish to turn, and its time."""
        self._stopped = self._held = self._by_wheels = self._moved = self._recorded = False

    async def run(self) -> None:
        """Move the servos for ever, at once after a wish."""
        await self._timer.run()

    def state(self) -> ServosState:
        """Return the state for pages."""
        servos = {
            name: ServoState(
                round(aim.deg, DIGITS), aim.servo.least_deg, aim.servo.most_deg, aim.servo.rest_deg
            )
            for name, aim in self.aims.items()
        }
        return ServosState(servos, self._sessions.viewers_look, self._control.servo_state())

    def faults(self) -> tuple[str, ...]:
        """Return the fault of the pulses as for /healthz."""
        state = self._control.servo_state()
        return () if state == "ok" else (f"servos: {state}",)

    @handles(Look, right=Right.LOOKS, act="turns the camera")
    def look(self, session: Session, look: Look, now_s: float) -> None:
        """Turn servos, or send them to an angle or to their rest."""
        unknown = next((name for name in (*look.turn, *look.to) if name not in self.aims), None)
        if unknown is not None:
            known = "one of " + ", ".join(self.aims)
            session.deny(Error("unknown servo", quoted(unknown), known, "", "unknown_servo"), now_s)
            return
        if session.fresh.late(look.seen, now_s) or self._other_turns(session, now_s):
            return
        if not gate.may_aim(now_s, self._control.decision.latches, now_s, self._limits):
            return
        self._client, self._wished_s = (
            session.client,
            now_s if any(look.turn.values()) else -math.inf,
        )
        for name, aim in self.aims.items():
            if look.rest:
                aim.go(aim.servo.rest_deg)
            elif name in look.to:
                aim.go(look.to[name])
            elif look.turn.get(name) or aim.turning:  # a zero leaves one on its way to its rest
                aim.turn(look.turn.get(name, 0.0))
        self._timer.postpone(0.0)

    @handles(LetLook, right=Right.GROWN_UP, act="lets viewers turn the camera")
    def let_look(self, session: Session, message: LetLook, now_s: float) -> None:
        """Allow viewers to turn the servos."""
        self._sessions.viewers_look = message.on
        self._saver.put_viewers_look(message.on)
        self._changed.set()

    def _other_turns(self, session: Session, now_s: float) -> bool:
        """Return whether another page turns the servos: only the driver takes over from it."""
        turns = now_s - self._wished_s < self._limits.silence_s
        return (
            turns
            and session.client != self._client
            and not self._sessions.seat.holds(session.client)
        )

    def step(self) -> float:
        """Move the servos by now; return the time to the next step in s."""
        self._control.read_wheels(True)  # a stop by `wheels` comes before the next angles
        now_s, latches = self._clock_s(), self._control.decision.latches
        hold = latches.hold
        held = hold is not None
        silent = not gate.may_aim(self._wished_s, latches, now_s, self._limits)
        by_wheels = hold is not None and hold.cause in (Cause.WHEELS_STOPPED, Cause.PINS)
        for aim in self.aims.values():
            centers = aim.servo.center_on_stop
            if centers and by_wheels and not self._by_wheels:
                aim.jump(aim.servo.rest_deg)  # `wheels` is turning it there
                self._recorded = False
            elif centers and latches.stopped and not self._stopped:
                aim.go(aim.servo.rest_deg)
            elif held and not self._held or silent and aim.turning:
                aim.turn(0.0)
        self._stopped, self._held, self._by_wheels = latches.stopped, held, by_wheels
        begins = not self._moved and any(aim.moving for aim in self.aims.values())
        if begins or not self._recorded:
            self._record()
        # without `wheels` the servos keep their angle; it must not leap when the next one starts
        reached = self._control.wheels == "ok"
        self._moved = reached and any([aim.step(now_s) for aim in self.aims.values()])
        self._control.aim(tuple(aim.deg for aim in self.aims.values()))
        if self._moved:
            self._record()
        return STEP_S if any(aim.moving for aim in self.aims.values()) else REST_S

    def _record(self) -> None:
        """Record the angles: before the first step of a motion, and after each."""
        self._recorder.servos({name: aim.deg for name, aim in self.aims.items()})
        self._recorded = True


def feature(core: Core) -> Feature:
    """Return the servos of a profile that do not steer."""
    servos = ServoAims(core)
    return Feature(
        name="servos",
        parts=(Part("servos", (servos.run,)),),
        handlers=(servos,),
        state=servos.state,
        status=lambda: {"servos": str(core.control.servo_state())},
        faults=servos.faults,
    )
