"""Turns at the wheel: its holder, requests for it, the holder's wishes, stops and resumes."""

import logging
from collections.abc import Callable
from typing import Literal, NamedTuple

from fpvcar.config import Profile
from fpvcar.http.addresses import network_of
from fpvcar.http.limits import TokenBucket
from fpvcar.seat.drive_socket import Session
from fpvcar.seat.handlers import Right, handles
from fpvcar.seat.vehicle import Vehicle
from fpvcar.wire import up
from fpvcar.wire.down import Asking, Error

OTHERS_PER_S, OTHERS_BURST = 2.0, 10.0
"""Rate limit on records of all pages without the wheel together. It keeps strangers from filling
the card, since older drives would then have to be deleted."""
ANSWER_S = 30.0
"""Time for the driver to answer a request."""
PAUSE_S = 30.0
"""Time after a refused or unanswered request until the same page may ask again."""
ASKS_PER_S, ASKS_BURST = 0.1, 5.0
"""Rate limit on requests of all pages together. It bounds the number of stored requests."""
log = logging.getLogger("fpvcar.seat")


class Request(NamedTuple):
    """Request of one page: waiting for the driver until `until_s`, or refused until then."""

    phase: Literal["waits", "later", "unanswered"]
    until_s: float


class WheelRequests:
    """Requests by client, the oldest first."""

    def __init__(self) -> None:
        self._requests: dict[str, Request] = {}
        self._limit = TokenBucket(ASKS_PER_S, ASKS_BURST)

    def ask(self, client: str, now_s: float) -> float:
        """Request the wheel. Returns 0.0 if the request waits, otherwise the pause left in s."""
        self.expire(now_s)
        request = self._requests.get(client)
        if request is not None:
            return 0.0 if request.phase == "waits" else request.until_s - now_s
        if not self._limit.allow(now_s):
            return 1.0 / ASKS_PER_S
        self._requests[client] = Request("waits", now_s + ANSWER_S)
        return 0.0

    def of(self, client: str) -> Request | None:
        """Return the request of a page."""
        return self._requests.get(client)

    def waiting(self) -> list[str]:
        """Return the clients whose requests wait for the driver."""
        return [client for client, request in self._requests.items() if request.phase == "waits"]

    def end(self, client: str, phase: Literal["later", "unanswered"], now_s: float) -> None:
        """End a request without giving the wheel."""
        self._requests[client] = Request(phase, now_s + PAUSE_S)

    def expire(self, now_s: float) -> None:
        """End requests whose time is over, and pauses likewise."""
        for client, request in list(self._requests.items()):
            if request.until_s > now_s:
                continue
            if request.phase == "waits":
                self.end(client, "unanswered", now_s)
            else:
                del self._requests[client]

    def clear(self) -> None:
        """Discard all requests: the wheel has changed hands."""
        self._requests.clear()


class Turns:
    """Handlers of pages' messages to the seat and the gate's owner.

    `changed()` is called to send the pages a new state.
    """

    def __init__(self, profile: Profile, vehicle: Vehicle, changed: Callable[[], None]) -> None:
        self.sessions, self._page_of = vehicle.sessions, vehicle.sessions.of
        self.seat = vehicle.sessions.seat
        self._requests = WheelRequests()
        self._profile, self._changed = profile, changed
        self._control, self._lights = vehicle.control, vehicle.lights
        self._recorder = vehicle.recorder
        self._others = TokenBucket(OTHERS_PER_S, OTHERS_BURST)

    # --- connecting and disconnecting ---

    def join(self, session: Session, now_s: float) -> None:
        """Give a page that sent hello its seat back, or a free seat."""
        if self.seat.back(session.client, session.name):
            self._control.clear_wish(lost=True)  # latched until a fresh neutral wish
            self._recorder.turn(session.name, f"{session.name} is back at the wheel")
        elif (
            self._profile.server.first_takes_wheel
            and session.rights.drive
            and self.seat.holder is None
        ):
            self._sit_down(session, now_s)

    def leave(self, session: Session, now_s: float) -> None:
        """Handle the end of a page's last socket."""
        self.seat.lost(session.client, now_s)
        if self.seat.holds(session.client):
            self._control.clear_wish(lost=True)
            self._recorder.turn(session.name, f"the link to {session.name} is lost")

    def tick(self, now_s: float) -> None:
        """Free the seat if its page has not come back in time."""
        self._requests.expire(now_s)
        if self.seat.expire(now_s):
            self._requests.clear()
            log.info("the seat is free: its page did not come back")
            self._recorder.turn(None, "the seat is free: its page did not come back")
        self._shine()

    def rename(self, session: Session) -> None:
        """Pass a driver's new name to the seat and the recording."""
        if self.seat.back(session.client, session.name):
            self._recorder.turn(session.name, f"{session.name} is the driver's new name")

    def _shine(self) -> None:
        """Set the lights to match the car's motion."""
        decision = self._control.decision
        self._lights.motion.publish(decision.throttle, decision.steer, decision.latches.stopped)

    # --- the wheel ---

    def at_the_wheel(self, session: Session) -> bool:
        """Return whether the session's page has the wheel."""
        holder = self.seat.holder  # not seat.holds: one call less for each wish
        return holder is not None and holder.client == session.client

    def _record_refused(self, session: Session, drive: up.Drive, now_s: float) -> None:
        session.fresh.accept(drive.seq, drive.t, drive.seen, now_s)
        if self._others.allow(now_s):
            seen_us = session.fresh.sent_us(drive.seen)
            self._recorder.wish(drive, session.name, "not at the wheel", seen_us)

    @handles(up.Drive, right=Right.AT_THE_WHEEL, refused=_record_refused)
    def drive(self, session: Session, drive: up.Drive, now_s: float) -> None:
        """Handle a wish of the wheel's holder; only a fresh one moves the car."""
        verdict = session.fresh.accept(drive.seq, drive.t, drive.seen, now_s)
        if verdict == "old" and session.copies:  # its copy was faster
            return
        seen_us = session.fresh.sent_us(drive.seen)
        self._recorder.wish(drive, session.name, verdict or "fresh", seen_us)
        neutral = drive.throttle == 0.0 and drive.steer == 0.0
        if verdict is None:
            self.seat.wished(session.client, neutral, now_s)
            self._control.wish(drive.throttle, drive.steer, now_s)
            self._shine()
        elif neutral and verdict != "old":
            self._control.let_go()
        elif verdict == "late":
            session.deny(self._late(drive.seen, seen_us, now_s), now_s)

    def _late(self, seen: int, seen_us: int, now_s: float) -> Error:
        """Return the reason that a wish is late, with the next step for its sender."""
        limit_s = self._profile.gate.late_s
        if not seen:
            limit = f"the nonce of a state or pong of the last {limit_s:g} s"
            return Error("`seen` is missing", "", limit, "return the newest nonce", "no_seen")
        age_s = now_s - seen_us / 1e6
        value = f"{age_s:.1f} s" if seen_us else f"over {limit_s:g} s"
        next_step = "wait, or come nearer"
        return Error("the link is late", value, f"{limit_s:g} s", next_step, "late")

    def _blink_code(self, session: Session, message: up.Take | up.Ask, now_s: float) -> None:
        """Blink the code for a page that could take the wheel with it."""
        if isinstance(message, up.Take) or self.seat.wait_s(now_s) <= 0.0:
            self._lights.code.publish(network_of(session.address))

    @handles(up.Take, right=Right.DRIVER, refused=_blink_code)
    def take(self, session: Session, _: up.Take, now_s: float) -> None:
        """Take the wheel if it is free; its holder keeps it while he drives."""
        if self.seat.holds(session.client):
            return
        holder, wait_s = self.seat.holder, self.seat.wait_s(now_s)
        if wait_s > 0.0 and not session.rights.grown_up and holder is not None:
            session.deny(
                Error(
                    f"{holder.name} has the wheel",
                    "take",
                    f"free after 10 s without driving ({wait_s:.0f} s to go)",
                    f"send ask, and {holder.name} can give it; or wait",
                    "wheel_taken",
                    holder.name,
                    wait_s,
                ),
                now_s,
            )
            return
        self._sit_down(session, now_s)
        self._changed()

    def _sit_down(self, session: Session, now_s: float) -> None:
        grown_up = session.rights.grown_up
        self._requests.clear()
        self.seat.take(session.client, session.name, grown_up, now_s)
        self._control.handover()
        log.info("%s (%s) took the wheel", session.name, session.address)
        self._recorder.turn(session.name, f"{session.name} took the wheel")

    @handles(up.Release, right=Right.ANYONE)
    def release(self, session: Session, _: up.Release, now_s: float) -> None:
        """Release the wheel if the session holds it."""
        if self.seat.release(session.client):
            self._requests.clear()
            self._control.clear_wish(lost=False)
            log.info("%s released the wheel", session.name)
            self._recorder.turn(None, f"{session.name} released the wheel")
            self._changed()

    # --- requests for the wheel ---

    @handles(up.Ask, right=Right.DRIVER, refused=_blink_code)
    def ask(self, session: Session, _: up.Ask, now_s: float) -> None:
        """Show the driver that a page asks for the wheel, while he drives on; take a free wheel."""
        holder, before = self.seat.holder, self._requests.of(session.client)
        if holder is None or self.seat.wait_s(now_s) <= 0.0:
            self.take(session, up.Take(), now_s)
        elif holder.client != session.client:
            wait_s = self._requests.ask(session.client, now_s)
            if wait_s > 0.0:
                what, next_step = "too many requests", f"ask again in {wait_s:.0f} s"
                error = Error(what, "ask", "", next_step, "too_often", wait_s=wait_s)
                session.deny(error, now_s)
            elif self._requests.of(session.client) is not before:
                log.info(
                    "%s (%s) asks %s for the wheel", session.name, session.address, holder.name
                )
                self._changed()

    @handles(up.Answer, right=Right.AT_THE_WHEEL)
    def answer(self, session: Session, answer: up.Answer, now_s: float) -> None:
        """Hand the wheel to the asker, or refuse; the hand-over stops the car."""
        asker = self._asker()
        if asker is None or asker.video != answer.id:  # that request has ended
            return
        if answer.give:
            self.seat.release(session.client)
            self._sit_down(asker, now_s)
        else:
            self._requests.end(asker.client, "later", now_s)
        self._changed()

    def _asker(self) -> Session | None:
        """Return the page whose request the driver sees: connected, and with the right to drive."""
        pages = map(self._page_of, self._requests.waiting())
        return next((page for page in pages if page is not None and page.rights.drive), None)

    def asking(self, session: Session, now_s: float) -> Asking | None:
        """Return the request that concerns this page: one to its driver, or its own."""
        drives = self.seat.holds(session.client)
        asker = self._asker() if drives else session
        request = self._requests.of(asker.client) if asker else None
        if asker is None or request is None:
            return None
        about = (asker.video, asker.name) if drives else ()
        return Asking("asks" if drives else request.phase, request.until_s - now_s, *about)

    # --- stop and resume ---

    @handles(up.Estop, right=Right.ANYONE)
    def estop(self, session: Session, _: up.Estop, now_s: float) -> None:
        """Stop the car, for any page."""
        self._control.estop(session.name, session.rights.grown_up)

    @handles(up.Resume, right=Right.RESUMES, act="can resume")
    def resume(self, session: Session, _: up.Resume, now_s: float) -> None:
        """Resume after a stop; after a grown-up's, for a grown-up."""
        if not self._control.resume(session.rights.grown_up):
            session.deny(
                Error(
                    "a grown-up stopped the car",
                    "resume",
                    "a grown-up's Resume",
                    "ask a grown-up",
                    "grown_up_stop",
                ),
                now_s,
            )

    @handles(up.Report, right=Right.ANYONE)
    def report(self, session: Session, report: up.Report, now_s: float) -> None:
        """Store a page's measurements; record them, at a limited rate for pages without the
        wheel."""
        session.report = report
        drives = self.seat.holds(session.client)
        if drives or self._others.allow(now_s):
            self._recorder.latency(session.name, drives, report, session.lost)
