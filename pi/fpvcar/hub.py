"""The meeting point of all browsers: sessions, the seat, the gate's owner.

`receive` is the one place where a message of a browser becomes an act.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from typing import ClassVar, Protocol

import msgspec

from fpvcar import wire
from fpvcar.access import Door, Rights
from fpvcar.config import Profile
from fpvcar.control import Control
from fpvcar.drive_socket import Closing, Session
from fpvcar.gate import Cause
from fpvcar.seat import Seat
from fpvcar.wire import Error

TELL_S = 0.1
TELL_NOBODY_S = 1.0
TELL_AGAIN_S = 0.02
"""No flood of messages makes more states than 50 a second."""
log = logging.getLogger("fpvcar.seat")


class Board(Protocol):
    """What the hub asks of telemetry.Board."""

    @property
    def battery(self) -> wire.Battery | None:
        """The pack, or None where nothing measures it."""

    def set_head(self, on: bool) -> None:
        """Switches the head lights."""

    def set_reversing(self, on: bool) -> None:
        """Rear lights follow reversing."""


class Ranges(Protocol):
    """What the hub asks of sensors.Ranges."""

    def told(self, now_s: float) -> tuple[wire.Range, ...]:
        """One entry a sensor."""


class Camera(Protocol):
    """What the hub asks of camera.Camera."""

    @property
    def state(self) -> str:
        """ "ok" or what is wrong, in words."""


class Hub:
    """Who is here, who drives, and what they are told."""

    def __init__(
        self,
        profile: Profile,
        control: Control,
        door: Door,
        board: Board,
        camera: Camera,
        ranges: Ranges,
        welcome: Callable[[bool], wire.Welcome],
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.sessions: list[Session] = []
        self.head_lights = False
        self.changed = asyncio.Event()
        self._profile, self._control, self._door = profile, control, door
        self._board, self._camera, self._ranges = board, camera, ranges
        self._welcome, self._clock_s = welcome, clock_s
        self._seat = Seat()
        self._seq = 0

    # --- coming and going ---

    def leave(self, session: Session) -> None:
        """The socket is gone."""
        if session not in self.sessions:
            return
        self.sessions.remove(session)
        if session.client and not self._session_of(session.client):
            self._seat.lost(session.client, self._clock_s())
            if self._seat.holds(session.client):
                self._control.nobody(lost=True)
        self.changed.set()

    def drives(self, client: str) -> bool:
        """Is this client at the wheel? Asked by the video socket."""
        return self._seat.holds(client)

    def may_drive(self, client: str) -> bool:
        """Has this client the wheel, or may it ask for it?"""
        session = self._session_of(client)
        return self.drives(client) or (session is not None and session.rights.drive)

    def watchers(self) -> int:
        """How many are here who may only watch."""
        return sum(not self.may_drive(one.client) for one in self.sessions)

    def receive(self, session: Session, message: wire.Upward) -> None:
        """One good message of one browser. Raises Closing for a replaced socket.

        That one may live on for seconds on a dead link; its page speaks elsewhere.
        """
        if session.closing:
            raise Closing(session.closing)
        now_s = self._clock_s()
        if isinstance(message, wire.Hello):
            self._hello(session, message, now_s)
        elif not session.client:
            session.refuse(Error("hello first", "", "hello", "send hello"))
        else:
            handler = self._handlers[type(message)]
            handler(self, session, message, now_s)

    def _hello(self, session: Session, hello: wire.Hello, now_s: float) -> None:
        if session.client:
            session.deny(Error("hello twice", "", "once a socket"), now_s)
            return
        old = self._session_of(hello.client)
        session.client, session.name = hello.client, hello.name or "somebody"
        self.sessions.append(session)
        if old is not None:
            self.sessions.remove(old)
            session.rights = _more(session.rights, old.rights)
            old.close("opened again elsewhere")
        if hello.code:
            self._try_code(session, hello.code, now_s)
        if self._seat.back(hello.client, session.name):
            self._control.nobody(lost=True)  # latched until a fresh neutral wish
        elif (
            self._profile.server.first_takes_wheel
            and session.rights.drive
            and self._seat.holder is None
        ):
            self._sit_down(session, now_s)
        session.say(self._welcome(not session.rights.drive))
        self.changed.set()

    def _session_of(self, client: str) -> Session | None:
        return next((one for one in self.sessions if one.client == client), None)

    # --- the wheel ---

    def _drive(self, session: Session, drive: wire.Drive, now_s: float) -> None:
        verdict = session.fresh.accept(drive.seq, drive.t, now_s)
        if not self._seat.holds(session.client):
            driver = self._seat.holder.name if self._seat.holder else "nobody"
            session.deny(
                Error("not at the wheel", f"{driver} drives", "", "take the wheel"),
                now_s,
            )
            return
        neutral = drive.throttle == 0.0 and drive.steer == 0.0
        if verdict is None:
            self._seat.wished(session.client, neutral, now_s)
            self._control.wish(drive.throttle, drive.steer, now_s)
            self._board.set_reversing(self._control.decision.throttle < 0.0)
        elif verdict == "stale" and neutral:
            self._control.hush()

    def _take(self, session: Session, _: wire.Take, now_s: float) -> None:
        if not session.rights.drive:
            session.deny(
                Error("you may only watch", "take", "", "enter the drive code"), now_s
            )
        elif not self._seat.holds(session.client):
            holder = self._seat.holder
            wait_s = self._seat.wait_s(now_s)
            if wait_s > 0.0 and not session.rights.grown_up and holder is not None:
                session.deny(
                    Error(
                        f"{holder.name} has the wheel", "take",
                        f"free after 10 s without driving ({wait_s:.0f} s to go)",
                        f"ask {holder.name} to give it, or wait",
                    ),
                    now_s,
                )  # fmt: skip
            else:
                self._sit_down(session, now_s)
                self.changed.set()

    def _sit_down(self, session: Session, now_s: float) -> None:
        grown_up = session.rights.grown_up
        self._seat.take(session.client, session.name, grown_up, now_s)
        self._control.handover()
        log.info("%s (%s) took the wheel", session.name, session.address)

    def _release(self, session: Session, _: wire.Release, now_s: float) -> None:
        if self._seat.release(session.client):
            self._control.nobody(lost=False)
            log.info("%s gave the wheel away", session.name)
            self.changed.set()

    # --- stop and go ---

    def _estop(self, session: Session, _: wire.Estop, now_s: float) -> None:
        self._control.estop(session.name, session.rights.grown_up)

    def _resume(self, session: Session, _: wire.Resume, now_s: float) -> None:
        if not (session.rights.grown_up or self._seat.holds(session.client)):
            session.deny(
                Error("only the driver goes on", "resume", "", "take the wheel"), now_s
            )
        elif not self._control.resume(session.rights.grown_up):
            session.deny(
                Error("a grown-up stopped the car", "resume", "a grown-up's Go on",
                      "ask a grown-up"), now_s,
            )  # fmt: skip

    # --- the rest ---

    def _unlock(self, session: Session, unlock: wire.Unlock, now_s: float) -> None:
        self._try_code(session, unlock.code, now_s)
        self.changed.set()

    def _try_code(self, session: Session, code: str, now_s: float) -> None:
        wait_s = self._door.wait_s(session.address, now_s)
        if wait_s > 0.0:
            session.say(
                Error("too many wrong codes", "", "5 a minute",
                      f"try again in {wait_s:.0f} s")
            )  # fmt: skip
            return
        rights = self._door.unlock(code, session.address, now_s)
        if rights is None:
            log.warning("%s: wrong code", session.address)
            session.say(
                Error("wrong code", "", "", "look at the screen that started the car")
            )
        else:
            session.rights = _more(session.rights, rights)

    def _lights(self, session: Session, lights: wire.Lights, now_s: float) -> None:
        if not session.rights.drive:
            session.deny(
                Error("you may only watch", "lights", "", "enter the drive code"),
                now_s,
            )
            return
        on = (not self.head_lights) if lights.head is None else lights.head
        self.head_lights = on
        self._board.set_head(on)
        self.changed.set()

    def _horn(self, session: Session, _: wire.Horn, now_s: float) -> None:
        session.deny(Error("this car has no horn", "horn"), now_s)

    def _limit(self, session: Session, limit: wire.Limit, now_s: float) -> None:
        if not session.rights.grown_up:
            session.deny(
                Error("only a grown-up sets the speed limit", "limit", "",
                      "enter the grown-up code"), now_s,
            )  # fmt: skip
            return
        most = self._profile.gate.limit
        if limit.throttle > most:
            session.deny(
                Error("speed limit refused", f"{limit.throttle:g}", f"<= {most:g}",
                      "gate.limit of the profile is higher up"), now_s,
            )  # fmt: skip
            return
        self._control.limit = limit.throttle
        self._control.step()
        self.changed.set()

    def _ping(self, session: Session, ping: wire.Ping, now_s: float) -> None:
        session.say(wire.Pong(ping.seq, ping.t, int(now_s * 1e6)))

    def _report(self, session: Session, report: wire.Report, now_s: float) -> None:
        session.report = report

    _handlers: ClassVar[dict[type, Callable[..., None]]] = {
        wire.Drive: _drive, wire.Take: _take, wire.Release: _release,
        wire.Estop: _estop, wire.Resume: _resume, wire.Unlock: _unlock,
        wire.Lights: _lights, wire.Horn: _horn, wire.Limit: _limit,
        wire.Ping: _ping, wire.Report: _report,
    }  # fmt: skip

    # --- what everybody is told ---

    async def run(self) -> None:
        """Tells everybody 10 times a second, and at once when `changed` is set."""
        while True:
            pause_s = TELL_S if self.sessions else TELL_NOBODY_S
            with contextlib.suppress(TimeoutError):  # the time has come all the same
                async with asyncio.timeout(pause_s):
                    await self.changed.wait()
            changed = self.changed.is_set()
            self.changed.clear()
            self.tell()
            if changed:
                await asyncio.sleep(TELL_AGAIN_S)

    def tell(self) -> None:
        """Sends the state to everybody, now."""
        now_s = self._clock_s()
        if self._seat.expire(now_s):
            log.info("the seat is free: its page did not come back")
        self._board.set_reversing(self._control.decision.throttle < 0.0)
        self._seq += 1
        for session in self.sessions:
            session.say(self._state(session, now_s))

    def _state(self, session: Session, now_s: float) -> wire.State:
        decision, holder = self._control.decision, self._seat.holder
        return wire.State(
            seq=self._seq,
            clock_us=int(now_s * 1e6),
            role="driver" if self._seat.holds(session.client) else "watching",
            may_drive=session.rights.drive,
            grown_up=session.rights.grown_up,
            driver=holder.name if holder else None,
            seat_free=self._seat.wait_s(now_s) <= 0.0,
            throttle=decision.throttle,
            steer=decision.steer,
            reason=decision.reason,
            stop=self.stop(),
            limit=self._control.limit,
            head_lights=self.head_lights,
            viewers=len(self.sessions),
            battery=self._board.battery,
            ranges=self._ranges.told(now_s),
            wheels=self._control.wheels,
            camera=self._camera.state,
        )

    def reports(self) -> list[dict[str, object]]:
        """What each page measured last, for /api/status; no client id among it."""
        return [
            {
                "name": session.name,
                "drives": self._seat.holds(session.client),
                "unknown_messages": session.unknown,
                "report": session.report and msgspec.structs.asdict(session.report),
            }
            for session in self.sessions
        ]

    def stop(self) -> wire.Stop | None:
        """What holds the car, the hardest first."""
        latches = self._control.decision.latches
        if latches.hold is not None:
            cause = latches.hold.cause
            clears = "grown_up" if cause is Cause.ESTOP_GROWN_UP else "resume"
            return wire.Stop(cause, clears, latches.hold.by)
        return wire.Stop(latches.arm, "neutral") if latches.arm is not None else None


def _more(one: Rights, other: Rights) -> Rights:
    return Rights(one.drive or other.drive, one.grown_up or other.grown_up)
