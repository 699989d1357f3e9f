"""Who may do what, and for how long: codes, cookies, Lock, and the list of people.

    unlock -> CodeCheck -> rights of the session -> ticket -> POST /api/pass -> Devices
    unlock -> Devices.invited -> the same, until the guest's time is over
    lock, end, 30 min without use -> rights given back, here and on the device

Each method is one message of one browser, for hub.Hub, which knows who sent it.
"""

import hmac
import logging
import secrets
from collections.abc import Callable

from fpvcar.server.auth.access import CodeCheck, Rights, address_class
from fpvcar.server.auth.remembered_browsers import GROWN_UP_S, Device, Devices
from fpvcar.server.sockets.drive_socket import Session
from fpvcar.server.wheel import Driving
from fpvcar.wire import down, up
from fpvcar.wire.down import Error

log = logging.getLogger("fpvcar.seat")


class Unlocking:
    """The rights of all sessions."""

    def __init__(
        self,
        codes: CodeCheck,
        devices: Devices,
        sessions: list[Session],
        driving: Driving,
        changed: Callable[[], None],
        utc_s: Callable[[], float],
        stations: Devices | None = None,
    ) -> None:
        self._codes, self._devices, self._sessions = codes, devices, sessions
        self._lists = [one for one in (devices, stations) if one]
        self._driving, self._changed, self._utc_s = driving, changed, utc_s
        self._lost: Session | None = None
        """The last page at the wheel whose link was lost: its rights wait with it."""

    # --- rights that are given ---

    def unlock(self, session: Session, unlock: up.Unlock, now_s: float) -> None:
        """A code."""
        self.try_code(session, unlock.code, now_s)
        self.offer(session)
        self._changed()

    def try_code(self, session: Session, code: str, now_s: float) -> None:
        """Rights for a right code; an error for a wrong one, or for too many.

        An invitation is looked at first: wrong tries keep no guest out.
        """
        guest = self._devices.invited(code, self._utc_s())
        if guest is not None:
            self._let_in(session, guest, now_s)
            return
        wait_s = self._codes.wait_s(code, session.address, now_s)
        if wait_s > 0.0:
            session.send(
                Error(
                    "too many wrong codes",
                    "",
                    "5 a minute",
                    f"try again in {wait_s:.0f} s",
                    "too_many_codes",
                )
            )
            return
        rights = self._codes.unlock(code, session.address, now_s)
        if rights is None:
            session.send(
                Error("wrong code", "", "", "look at the screen that started the car", "wrong_code")
            )
            return
        session.rights, session.used_s = more(session.rights, rights), now_s
        if session.device is None or session.device.guest:
            session.ticket = secrets.token_urlsafe(24)
        if session.device is not None and session.device.guest:
            self._devices.stay(session.device, self._utc_s())
        if session.device is not None and rights.grown_up:
            self._devices.used(session.device, self._utc_s())

    def _let_in(self, session: Session, guest: Device, now_s: float) -> None:
        """A guest comes with an invitation, which is used by it."""
        if session.rights.drive:
            session.send(
                Error(
                    "you may drive already",
                    "",
                    "",
                    "give the invitation to somebody else",
                    "may_drive",
                )
            )
            return
        self._devices.arrived(guest, session.name, session.address, self._utc_s())
        log.info("%s came by an invitation", session.name)
        session.rights, session.used_s = Rights(drive=True), now_s
        session.device, session.ticket = guest, secrets.token_urlsafe(24)

    def offer(self, session: Session) -> None:
        """Offers a cookie to who has said a right code and has none."""
        if session.ticket:
            session.send(down.Pass(session.ticket, self._left_s(session.device)))

    def _left_s(self, device: Device | None) -> float:
        """How long a guest may still drive; 0 for others."""
        guest = device is not None and device.guest
        return max(0.0, device.until_s - self._utc_s()) if device and guest else 0.0

    def claim(self, ticket: str) -> Device | None:
        """Puts the device of a page on the list; None if nobody has this ticket."""
        given = ticket.encode(errors="surrogatepass")
        for session in self._sessions:
            if session.ticket and hmac.compare_digest(session.ticket.encode(), given):
                session.ticket = ""
                if session.device is None:
                    session.device = self._devices.add(
                        session.name, session.address, session.rights, self._utc_s()
                    )
                return session.device
        return None

    def join(self, session: Session, old: Session | None, now_s: float) -> None:
        """A page has said hello: what its cookie proves, and what its `old` socket had.

        Without one that is here, the old socket is that of the driver who was lost.
        """
        lost = self._lost
        if lost and lost.client == session.client:
            old, self._lost = old or (lost if self._holds(lost) else None), None
        used_s = [old.used_s] if old else []
        device, utc_s = session.device, self._utc_s()
        if device is not None and device in self._devices.all():
            rights = device.rights(utc_s)
            session.rights = more(session.rights, rights)
            if rights.grown_up:
                used_s.append(now_s - (utc_s - device.used_s))
            self._devices.seen(device, session.name, utc_s)
        else:
            session.device = old.device if old else None
        if old is not None:
            session.rights = more(session.rights, old.rights)
        session.used_s = max(used_s, default=now_s)  # to come is not to use

    def leave(self, session: Session) -> None:
        """A page is gone."""
        if session.device is not None:
            self._devices.seen(session.device, session.name, self._utc_s())
        if self._holds(session):
            self._lost = session

    def _holds(self, session: Session) -> bool:
        return self._driving.seat.holds(session.client)

    def _pages(self) -> list[Session]:
        """All pages that are here, or come back to the wheel."""
        lost = self._lost
        return [*self._sessions, *([lost] if lost and self._holds(lost) else [])]

    def used(self, session: Session, message: up.Upward, now_s: float) -> None:
        """Notes what somebody did by a push: that keeps a grown-up's rights."""
        if isinstance(message, up.Drive):
            idle = message.throttle == message.steer == 0.0
        else:
            idle = isinstance(message, up.Ping | up.Report | up.Who)
        if not idle:
            session.used_s = now_s
            if session.device is not None and session.rights.grown_up:
                self._devices.used(session.device, self._utc_s())

    # --- rights that are given back ---

    def tick(self, now_s: float) -> None:
        """Time passes: a grown-up's rights that nobody uses are given back, and a
        guest's end."""
        for guest in self._devices.over(self._utc_s()):
            self._devices.end(guest.id)
            over = Error("your time to drive is over", "", "", "ask for more time", "time_over")
            self._end(guest.id, over, now_s)
        for session in self._pages():
            if session.rights.grown_up and self._unused(session, now_s):
                words = f"{GROWN_UP_S / 60:.0f} min without use"
                error = "the grown-ups' part is locked again"
                next_step = "enter the grown-up code"
                session.send(Error(error, "", words, next_step, "locked"))
                self._lock(session)

    def _unused(self, session: Session, now_s: float) -> bool:
        """Has nobody used these rights, on any page of the device?

        Pages of recordings have no session: they tell the device. The device's clock
        may be set; that of sessions is not.
        """
        device = session.device
        if device is not None and device.rights(self._utc_s()).grown_up:
            return False
        pages = [one for one in self._pages_of(session) if one.rights.grown_up]
        return all(now_s - one.used_s >= GROWN_UP_S for one in pages)

    def lock(self, session: Session, _: up.Lock, now_s: float) -> None:
        """A grown-up has done what there was to do."""
        self._lock(session)

    def _lock(self, session: Session) -> None:
        if session.device is not None:
            self._devices.lock(session.device)
        for one in self._pages_of(session):
            one.rights = Rights(drive=one.rights.drive)
        self._changed()

    def _pages_of(self, session: Session) -> list[Session]:
        """A page, and the others on its device."""
        device = session.device
        return [
            one
            for one in self._pages()
            if one is session or (device is not None and one.device is device)
        ]

    def end(self, session: Session, end: up.End, now_s: float) -> None:
        """A grown-up ends what somebody may do, there and on every page of theirs."""
        if not session.is_grown_up("end", "ends what others may do", now_s):
            return
        for known in self._lists:
            known.end(end.id)
        words = "a grown-up has ended what you may do"
        error = Error(words, "", "", "ask for the code", "ended")
        self._end(end.id, error, now_s)
        self.who(session, up.Who(), now_s)

    def _end(self, person: str, why: Error, now_s: float) -> None:
        """Ends the rights of one on the list; who drives lets go, and the car stops."""
        for one in [one for one in self._pages() if _id(one) == person]:
            log.info("%s: %s", one.name, why.what)
            one.rights, one.device, one.ticket = Rights(), None, ""
            one.send(why)
            self._driving.release(one, up.Release(), now_s)
        self._changed()

    # --- the list ---

    def who(self, session: Session, _: up.Who, now_s: float) -> None:
        """Tells a grown-up who may drive, and who watches."""
        if session.is_grown_up("who", "sees who may drive", now_s):
            people = (*self._here(session), *self._away())
            session.send(down.People(people, self.unsaved()))

    def unsaved(self) -> str:
        """Return why the list cannot be saved; "" if it is saved."""
        return next((known.unsaved for known in self._lists if known.unsaved), "")

    def _here(self, asking: Session) -> list[down.Person]:
        mine = _id(asking)
        return [
            down.Person(
                _id(one),
                one.name,
                address_class(one.address),
                one.rights.grown_up,
                self._holds(one),
                _id(one) == mine,
                left_s=self._left_s(one.device),
                watches=not one.rights.drive,
            )
            for one in self._sessions
        ]

    def _away(self) -> list[down.Person]:
        here, now_s = {_id(one) for one in self._sessions}, self._utc_s()
        return [
            down.Person(
                one.id,
                one.name,
                one.where,
                one.rights(now_s).grown_up,
                False,
                False,
                max(0.0, now_s - one.seen_s),
                self._left_s(one),
            )
            for known in self._lists
            for one in known.all()
            if one.id not in here
        ]

    def handlers(self) -> dict[type, Callable[..., None]]:
        """The method for each kind of message."""
        return {up.Unlock: self.unlock, up.Lock: self.lock, up.Who: self.who, up.End: self.end}


def _id(session: Session) -> str:
    """What a page is on the list: its device, else its video id, which is no secret."""
    return session.device.id if session.device else session.video


def more(one: Rights, other: Rights) -> Rights:
    """What either may do."""
    return Rights(one.drive or other.drive, one.grown_up or other.grown_up)
