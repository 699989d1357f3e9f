"""The wheel: who has it, what its holder wishes, who stops the car, who lets it go on.

Each handler is one message of one browser, for hub.Hub, which knows who sent it.
"""

import logging
from collections.abc import Callable

from fpvcar.config import Profile
from fpvcar.drive.control import Control
from fpvcar.drive.seat import Seat
from fpvcar.server.auth.access import network_of
from fpvcar.server.http.limits import Meter
from fpvcar.server.recorder import Recorder
from fpvcar.server.settings import Lights
from fpvcar.server.sockets.drive_socket import Session
from fpvcar.wire import up
from fpvcar.wire.down import Error

OTHERS_PER_S, OTHERS_BURST = 2.0, 10.0
"""How much is recorded of all together who are not at the wheel: no stranger fills the
card until older drives have to go."""
log = logging.getLogger("fpvcar.seat")


class Driving:
    """The seat and the gate's owner, as pages act on them.

    `changed()` is called when the pages are to see it.
    """

    def __init__(
        self,
        profile: Profile,
        control: Control,
        lights: Lights,
        recorder: Recorder,
        changed: Callable[[], None],
    ) -> None:
        self.seat = Seat()
        self._profile, self._control, self._lights = profile, control, lights
        self._recorder, self._changed = recorder, changed
        self._others = Meter(OTHERS_PER_S, OTHERS_BURST)

    # --- coming and going ---

    def join(self, session: Session, now_s: float) -> None:
        """A page said hello: it gets its seat back, or takes one that is free."""
        if self.seat.back(session.client, session.name):
            self._control.nobody(lost=True)  # latched until a fresh neutral wish
            self._recorder.turn(session.name, f"{session.name} is back at the wheel")
        elif (
            self._profile.server.first_takes_wheel
            and session.rights.drive
            and self.seat.holder is None
        ):
            self._sit_down(session, now_s)

    def leave(self, session: Session, now_s: float) -> None:
        """The last socket of a page is gone."""
        self.seat.lost(session.client, now_s)
        if self.seat.holds(session.client):
            self._control.nobody(lost=True)
            self._recorder.turn(session.name, f"the link to {session.name} is lost")

    def tick(self, now_s: float) -> None:
        """Time passes: a seat whose page does not come back is free."""
        if self.seat.expire(now_s):
            log.info("the seat is free: its page did not come back")
            self._recorder.turn(None, "the seat is free: its page did not come back")
        self._shine()

    def _shine(self) -> None:
        """The lights follow what the car does."""
        decision = self._control.decision
        self._lights.follow(decision.throttle, decision.steer, decision.latches.stopped)

    # --- the wheel ---

    def drive(self, session: Session, drive: up.Drive, now_s: float) -> None:
        """A wish; only a fresh one of whoever has the wheel moves the car."""
        verdict = session.fresh.accept(drive.seq, drive.t, drive.seen, now_s)
        if verdict == "old" and session.copies:  # its copy was faster
            return
        if not self.seat.holds(session.client):
            self._refuse_wish(session, drive, now_s)
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
        """Says why a wish is late, and what its sender can do."""
        limit_s = self._profile.gate.late_s
        if not seen:
            limit = f"the nonce of a state or pong of the last {limit_s:g} s"
            what, next_step = "`seen` is missing", "return the newest nonce"
            return Error(what, "", limit, next_step, "no_seen")
        age_s = now_s - seen_us / 1e6
        value = f"{age_s:.1f} s" if seen_us else f"over {limit_s:g} s"
        next_step = "wait, or come nearer"
        return Error("the link is late", value, f"{limit_s:g} s", next_step, "late")

    def _refuse_wish(self, session: Session, drive: up.Drive, now_s: float) -> None:
        if self._others.allow(now_s):
            seen_us = session.fresh.sent_us(drive.seen)
            self._recorder.wish(drive, session.name, "not at the wheel", seen_us)
        driver = self.seat.holder.name if self.seat.holder else "nobody"
        session.deny(
            Error("not at the wheel", f"{driver} drives", "", "take the wheel", "not_driver"), now_s
        )

    def take(self, session: Session, _: up.Take, now_s: float) -> None:
        """Asks for the wheel; its holder keeps it while he drives. To who may only
        watch the car tells the code."""
        if not session.may_drive("take", now_s):
            self._lights.tell_code(network_of(session.address))
            return
        if self.seat.holds(session.client):
            return
        holder, wait_s = self.seat.holder, self.seat.wait_s(now_s)
        if wait_s > 0.0 and not session.rights.grown_up and holder is not None:
            session.deny(
                Error(
                    f"{holder.name} has the wheel",
                    "take",
                    f"free after 10 s without driving ({wait_s:.0f} s to go)",
                    f"ask {holder.name} to give it, or wait",
                    "wheel_taken",
                ),
                now_s,
            )
            return
        self._sit_down(session, now_s)
        self._changed()

    def _sit_down(self, session: Session, now_s: float) -> None:
        grown_up = session.rights.grown_up
        self.seat.take(session.client, session.name, grown_up, now_s)
        self._control.handover()
        log.info("%s (%s) took the wheel", session.name, session.address)
        self._recorder.turn(session.name, f"{session.name} took the wheel")

    def release(self, session: Session, _: up.Release, now_s: float) -> None:
        """Gives the wheel away."""
        if self.seat.release(session.client):
            self._control.nobody(lost=False)
            log.info("%s gave the wheel away", session.name)
            self._recorder.turn(None, f"{session.name} gave the wheel away")
            self._changed()

    # --- stop and go ---

    def estop(self, session: Session, _: up.Estop, now_s: float) -> None:
        """Stops the car; anybody may."""
        self._control.estop(session.name, session.rights.grown_up)

    def resume(self, session: Session, _: up.Resume, now_s: float) -> None:
        """Go on: the driver's, or a grown-up's."""
        if not (session.rights.grown_up or self.seat.holds(session.client)):
            session.deny(
                Error("only the driver goes on", "resume", "", "take the wheel", "not_driver"),
                now_s,
            )
        elif not self._control.resume(session.rights.grown_up):
            session.deny(
                Error(
                    "a grown-up stopped the car",
                    "resume",
                    "a grown-up's Go on",
                    "ask a grown-up",
                    "grown_up_stop",
                ),
                now_s,
            )

    def report(self, session: Session, report: up.Report, now_s: float) -> None:
        """What a page measured: recorded, of those that do not drive not all."""
        session.report = report
        drives = self.seat.holds(session.client)
        if drives or self._others.allow(now_s):
            self._recorder.latency(session.name, drives, report, session.lost)

    def handlers(self) -> dict[type, Callable[..., None]]:
        """The method for each kind of message."""
        return {
            up.Drive: self.drive,
            up.Take: self.take,
            up.Release: self.release,
            up.Estop: self.estop,
            up.Resume: self.resume,
            up.Report: self.report,
        }
