"""Hub of all browser sessions: their connections, rights, and the state sent to them.

`receive` is the only place at which a browser's message takes effect.

    receive -> Turns         seat, wishes, stops
            -> Settings      lights, limit, guard, picture, recording
            -> Authorization codes, locks, rights to drive
            -> Hub           hello, names, pings
"""

import asyncio
import logging
import math
import os
import time
from collections.abc import Callable, Sequence

import msgspec

from fpvcar.config import Profile
from fpvcar.http.text_session import ELSEWHERE, SessionClosed
from fpvcar.runtime import service
from fpvcar.runtime.texts import Text
from fpvcar.seat.authorization import Access, Authorization
from fpvcar.seat.drive_socket import RENAMES_PER_S, Session
from fpvcar.seat.feature import Feature
from fpvcar.seat.handlers import Handler, Right, handlers_of, handles
from fpvcar.seat.settings import Settings
from fpvcar.seat.state import CarState
from fpvcar.seat.turns import Turns
from fpvcar.seat.vehicle import Vehicle
from fpvcar.wire import down, up
from fpvcar.wire.down import Error

STATE_S = 0.1
STATE_NOBODY_S = 1.0
TIDY_S = 0.5
"""Interval of the check for expired seats and rights while the car is driven."""
STATE_EARLY_S = 0.04
"""Limit in seconds for sending a state early, together with the answer to a message.

The event loop then wakes once for both. The driver's wishes arrive at the same interval.
"""
REST_AFTER_S = 10.0
"""Time without a page after which the sensors may rest."""
STATE_AGAIN_S = 0.02
"""Least interval of states, so that a flood of messages causes at most 50 states a second."""
NAMELESS = "somebody"
"""Name of a person without one; pages translate it."""
NONCE_BITS = 52
"""Size of a nonce. JavaScript's numbers are exact up to 2**53."""
log = logging.getLogger("fpvcar.seat")


class Hub:
    """All sessions of a car. Setting `changed` requests a state at once."""

    def __init__(
        self,
        *,
        profile: Profile,
        vehicle: Vehicle,
        access: Access,
        changed: asyncio.Event,
        features: Sequence[Feature] = (),
        https_port: int = 0,
        clock_s: Callable[[], float] = time.monotonic,
        utc_s: Callable[[], float] = time.time,
    ) -> None:
        self.sessions, self.changed = vehicle.sessions, changed
        self._timer = service.Timer(self._beat)
        self._due_s, self._tidied_s = math.inf, -math.inf
        self._lights = vehicle.lights
        self._https_port, self._clock_s = https_port, clock_s
        self._recorder = vehicle.recorder
        self._turns = Turns(profile, vehicle, changed.set)
        self._settings = Settings(profile, vehicle, changed.set)
        self._seat = self.sessions.seat
        self.authorization = Authorization(access, self.sessions, self._turns, changed.set, utc_s)
        self._senses, self._page_seen_s = vehicle.senses, clock_s()
        self._state = CarState(profile, vehicle, self._turns, features)
        parts = (self, self._turns, self._settings, self.authorization)
        more = (part for feature in features for part in feature.handlers)
        self._handlers = handlers_of((*parts, *more), self._turns, vehicle.name)

    # --- connecting and disconnecting ---

    def leave(self, session: Session) -> None:
        """Handle the end of a socket."""
        if session not in self.sessions:
            return
        self.sessions.remove(session)
        if session.client and not self.sessions.of(session.client):
            self.authorization.leave(session)
            self._turns.leave(session, self._clock_s())
        self.changed.set()

    def receive(self, session: Session, message: up.Upward) -> None:
        """Act on a valid message of a browser. Raises SessionClosed for a replaced socket.

        A dead link may keep a replaced socket open for seconds; its page now uses another one.
        """
        if session.closing:
            raise SessionClosed(session.closing)
        if not session.client and not isinstance(message, up.Hello):
            session.refuse(Error("hello first", "", "hello", "send hello", "hello_first"))
            return
        now_s = self._clock_s()
        self.authorization.note_use(session, message, now_s)
        may, handle, refuse = self._handlers.get(type(message), _ABSENT)
        if may is None or may(session):
            handle(session, message, now_s)
        else:
            refuse(session, message, now_s)
        if self._due_s - now_s <= STATE_EARLY_S:
            self._beat_early(now_s)

    @handles(up.Hello, right=Right.ANYONE)
    def _hello(self, session: Session, hello: up.Hello, now_s: float) -> None:
        if session.client:
            session.deny(Error("hello twice", "", "once a socket", "", "hello_twice"), now_s)
            return
        session.client, session.name = hello.client, hello.name.strip() or NAMELESS
        session.video = self.sessions.video_of(hello.client)
        old = self.sessions.add(session)
        if old is not None:
            old.close(Text("close_elsewhere", "opened again elsewhere"), ELSEWHERE)
        self.authorization.join(session, old, now_s)
        if hello.code:
            self.authorization.try_code(session, hello.code, now_s)
        self._turns.join(session, now_s)
        session.send(self._state.welcome(self._https_port, session, now_s))
        self.authorization.offer(session)
        self.changed.set()

    @handles(up.Name, right=Right.ANYONE)
    def _rename(self, session: Session, message: up.Name, now_s: float) -> None:
        """Give the page's person another name; the wheel stays with its driver."""
        name = message.name.strip() or NAMELESS
        if name != session.name and session.renames.allow(now_s):
            session.name = name
            self.authorization.note_name(session)
            self._turns.rename(session)
            self.changed.set()
        elif name != session.name:
            most = f"one in {1 / RENAMES_PER_S:g} s"
            session.deny(Error("too many names", name, most, "wait", "too_often"), now_s)

    @handles(up.Ping, right=Right.ANYONE)
    def _ping(self, session: Session, ping: up.Ping, now_s: float) -> None:
        session.send(self.pong(ping))

    def pong(self, ping: up.Ping) -> down.Pong:
        """Return the answer to a ping, with a new nonce."""
        return down.Pong(ping.seq, ping.t, int(self._clock_s() * 1e6), new_nonce())

    # --- state for all pages ---

    async def run(self) -> None:
        """Send states 10 times a second, and at once when `changed` is set."""
        await asyncio.gather(self._timer.run(), self._at_once())

    def _beat(self) -> float:
        self.broadcast()
        pause_s = STATE_S if self.sessions else STATE_NOBODY_S
        self._due_s = self._clock_s() + pause_s
        return pause_s

    def _beat_early(self, now_s: float) -> None:
        """Send this state now and schedule the next one, to keep 10 a second."""
        if now_s - self._tidied_s >= TIDY_S:
            self._tidy(now_s)
        self._show(now_s)
        self._due_s = max(self._due_s, now_s) + STATE_S
        self._timer.postpone(self._due_s - now_s)

    async def _at_once(self) -> None:
        while True:
            await self.changed.wait()
            self.changed.clear()
            self._timer.postpone(self._beat())
            await asyncio.sleep(STATE_AGAIN_S)

    def broadcast(self) -> None:
        """Send the current state to all pages."""
        now_s = self._clock_s()
        self._tidy(now_s)
        self._show(now_s)

    def _tidy(self, now_s: float) -> None:
        """Update seats, rights, sensors and the recorder's LED for the current time."""
        self._tidied_s = now_s
        self._turns.tick(now_s)
        self.authorization.tick(now_s)
        if self.sessions:
            self._page_seen_s = now_s
        self._senses.attend(now_s - self._page_seen_s < REST_AFTER_S)
        self._state.recording = self._recorder.status()
        self._lights.recording.publish(self._state.recording)

    def _show(self, now_s: float) -> None:
        self._state.next_round(new_nonce())
        viewers = len(self.sessions)
        for session in self.sessions:
            state = self._state.message(session, viewers, self._settings, now_s)
            session.send_newest(state)

    def stop(self) -> down.Stop | None:
        """Return the cause that holds the car, the hardest first."""
        return self._state.stop()

    def reports(self) -> list[dict[str, object]]:
        """Return each page's last measurements, for /api/status; client ids are left out."""
        return [
            {
                "name": session.name,
                "drives": self._seat.holds(session.client),
                "unknown_messages": session.unknown,
                "report": session.report and msgspec.structs.asdict(session.report),
            }
            for session in self.sessions
        ]


def _refuse(session: Session, message: up.Upward, now_s: float) -> None:
    """Refuse a message of a feature that this car lacks."""
    kind = str(type(message).__struct_config__.tag)
    session.deny(Error("this car lacks the feature", kind, "", "", "unknown_kind"), now_s)


_ABSENT = Handler(None, _refuse, _refuse)


def new_nonce() -> int:
    """Return an unpredictable number, never 0."""
    return (int.from_bytes(os.urandom(7)) >> 56 - NONCE_BITS) + 1
