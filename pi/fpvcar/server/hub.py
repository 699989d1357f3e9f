"""The meeting point of all browsers: sessions, the seat, the gate's owner.

`receive` is the one place where a message of a browser becomes an act.
"""

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import Callable

import msgspec

from fpvcar.config import Profile
from fpvcar.drive.control import Control
from fpvcar.drive.gate import Cause
from fpvcar.drive.seat import Seat
from fpvcar.server.access import CodeCheck, Rights
from fpvcar.server.drive_socket import Session
from fpvcar.server.limits import Meter
from fpvcar.server.recorder import NoRecorder, Recorder
from fpvcar.server.session import Closing
from fpvcar.server.settings import Lights, Settings
from fpvcar.server.state import CarState, Senses, Stateful, welcome
from fpvcar.wire import down, up
from fpvcar.wire.down import Error

TELL_S = 0.1
TELL_NOBODY_S = 1.0
TELL_AGAIN_S = 0.02
"""No flood of messages makes more states than 50 a second."""
NOTED_PER_S, NOTED_BURST = 2.0, 10.0
"""So much is recorded of all together who are not at the wheel: no stranger fills the
card until the ring lets older drives go."""
log = logging.getLogger("fpvcar.seat")


class Hub:
    """Who is here, who drives, and what they are told."""

    def __init__(
        self,
        profile: Profile,
        control: Control,
        door: CodeCheck,
        lights: Lights,
        camera: Stateful,
        senses: Senses,
        changed: asyncio.Event,
        https_port: int = 0,
        clock_s: Callable[[], float] = time.monotonic,
        recorder: Recorder | None = None,
    ) -> None:
        self.sessions: list[Session] = []
        self.changed = changed
        self._profile, self._control, self._door = profile, control, door
        self._lamps = lights
        self._https_port, self._clock_s = https_port, clock_s
        self._recorder = recorder or NoRecorder()
        self._others = Meter(NOTED_PER_S, NOTED_BURST)
        self._seat = Seat()
        self._settings = Settings(
            profile, control, lights, self._recorder, self.changed.set
        )
        self._state = CarState(control, self._seat, senses, camera, self._recorder)
        self._handlers: dict[type, Callable[..., None]] = {
            up.Drive: self._drive, up.Take: self._take, up.Release: self._release,
            up.Estop: self._estop, up.Resume: self._resume, up.Unlock: self._unlock,
            up.Ping: self._ping, up.Report: self._report,
            **self._settings.handlers(),
        }  # fmt: skip

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
                self._recorder.turn(session.name, f"the link to {session.name} is lost")
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

    def receive(self, session: Session, message: up.Upward) -> None:
        """One good message of one browser. Raises Closing for a replaced socket.

        That one may live on for seconds on a dead link; its page speaks elsewhere.
        """
        if session.closing:
            raise Closing(session.closing)
        now_s = self._clock_s()
        if isinstance(message, up.Hello):
            self._hello(session, message, now_s)
        elif not session.client:
            session.refuse(Error("hello first", "", "hello", "send hello"))
        else:
            self._handlers[type(message)](session, message, now_s)

    def _hello(self, session: Session, hello: up.Hello, now_s: float) -> None:
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
            self._recorder.turn(session.name, f"{session.name} is back at the wheel")
        elif (
            self._profile.server.first_takes_wheel
            and session.rights.drive
            and self._seat.holder is None
        ):
            self._sit_down(session, now_s)
        code_needed = not session.rights.drive
        session.send(welcome(self._profile, self._https_port, code_needed, now_s))
        self.changed.set()

    def _session_of(self, client: str) -> Session | None:
        return next((one for one in self.sessions if one.client == client), None)

    # --- the wheel ---

    def _drive(self, session: Session, drive: up.Drive, now_s: float) -> None:
        verdict = session.fresh.accept(drive.seq, drive.t, drive.seen, now_s)
        if not self._seat.holds(session.client):
            if self._others.allow(now_s):
                self._recorder.wish(drive, session.name, "not at the wheel")
            driver = self._seat.holder.name if self._seat.holder else "nobody"
            session.deny(
                Error("not at the wheel", f"{driver} drives", "", "take the wheel"),
                now_s,
            )
            return
        self._recorder.wish(drive, session.name, verdict or "fresh")
        neutral = drive.throttle == 0.0 and drive.steer == 0.0
        if verdict is None:
            self._seat.wished(session.client, neutral, now_s)
            self._control.wish(drive.throttle, drive.steer, now_s)
            self._shine()
        elif neutral and verdict != "old":
            self._control.let_go()
        elif verdict == "late":
            late_s = now_s - drive.seen / 1e6 if drive.seen else math.inf
            session.deny(
                Error("the link is late", f"{late_s:.1f} s",
                      f"{self._profile.gate.late_s:g} s", "wait, or come nearer"),
                now_s,
            )  # fmt: skip

    def _take(self, session: Session, _: up.Take, now_s: float) -> None:
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
        self._recorder.turn(session.name, f"{session.name} took the wheel")

    def _release(self, session: Session, _: up.Release, now_s: float) -> None:
        if self._seat.release(session.client):
            self._control.nobody(lost=False)
            log.info("%s gave the wheel away", session.name)
            self._recorder.turn(None, f"{session.name} gave the wheel away")
            self.changed.set()

    # --- stop and go ---

    def _estop(self, session: Session, _: up.Estop, now_s: float) -> None:
        self._control.estop(session.name, session.rights.grown_up)

    def _resume(self, session: Session, _: up.Resume, now_s: float) -> None:
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

    def _unlock(self, session: Session, unlock: up.Unlock, now_s: float) -> None:
        self._try_code(session, unlock.code, now_s)
        self.changed.set()

    def _try_code(self, session: Session, code: str, now_s: float) -> None:
        wait_s = self._door.wait_s(session.address, now_s)
        if wait_s > 0.0:
            session.send(
                Error("too many wrong codes", "", "5 a minute",
                      f"try again in {wait_s:.0f} s")
            )  # fmt: skip
            return
        rights = self._door.unlock(code, session.address, now_s)
        if rights is None:
            log.warning("%s: wrong code", session.address)
            session.send(
                Error("wrong code", "", "", "look at the screen that started the car")
            )
        else:
            session.rights = _more(session.rights, rights)

    def _ping(self, session: Session, ping: up.Ping, now_s: float) -> None:
        session.send(down.Pong(ping.seq, ping.t, int(now_s * 1e6)))

    def _report(self, session: Session, report: up.Report, now_s: float) -> None:
        session.report = report
        drives = self._seat.holds(session.client)
        if drives or self._others.allow(now_s):
            self._recorder.latency(session.name, drives, report)

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
            self._recorder.turn(None, "the seat is free: its page did not come back")
        self._shine()
        self._lamps.record(self._recorder.status())
        self._state.seq += 1
        here, head = len(self.sessions), self._settings.head_lights
        for session in self.sessions:
            session.send_newest(self._state.message(session, here, head, now_s))

    def _shine(self) -> None:
        decision, stop = self._control.decision, self.stop()
        stopped = stop is not None and stop.cause != Cause.HANDOVER
        self._lamps.follow(decision.throttle, decision.steer, stopped)

    def stop(self) -> down.Stop | None:
        """What holds the car, the hardest first."""
        return self._state.stop()

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

    def driver_report(self) -> up.Report | None:
        """What the driver's page measured last."""
        holder = self._seat.holder
        session = self._session_of(holder.client) if holder else None
        return session.report if session else None


def _more(one: Rights, other: Rights) -> Rights:
    return Rights(one.drive or other.drive, one.grown_up or other.grown_up)
