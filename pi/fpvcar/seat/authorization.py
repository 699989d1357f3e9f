"""Rights of sessions and their duration: codes, cookies, Lock, and the list of people.

unlock -> CodeCheck -> rights of the session -> ticket -> POST /api/pass -> Devices
unlock -> Devices.find_invitation -> the same, until the guest's time is over
lock, end, 30 min without use -> rights withdrawn, here and on the device
"""

import hmac
import logging
import secrets
from collections.abc import Callable
from typing import NamedTuple

from fpvcar.access.codes import CodeCheck, Rights
from fpvcar.access.remembered_browsers import GROWN_UP_S, Device, Devices
from fpvcar.http.addresses import address_class
from fpvcar.runtime.texts import Text
from fpvcar.seat.drive_socket import Session
from fpvcar.seat.handlers import Right, handles
from fpvcar.seat.sessions import Sessions
from fpvcar.seat.turns import Turns
from fpvcar.wire import down, up
from fpvcar.wire.down import Error
from fpvcar.wire.servos import Look

log = logging.getLogger("fpvcar.seat")


class Access(NamedTuple):
    """Codes, devices and stations of a car."""

    codes: CodeCheck
    devices: Devices
    stations: Devices | None = None


class Authorization:
    """Rights of all sessions, granted, extended and withdrawn."""

    def __init__(
        self,
        access: Access,
        sessions: Sessions,
        turns: Turns,
        changed: Callable[[], None],
        utc_s: Callable[[], float],
    ) -> None:
        self._codes, self._devices, self._sessions = access.codes, access.devices, sessions
        self._lists = [devices for devices in (access.devices, access.stations) if devices]
        self._turns, self._changed, self._utc_s = turns, changed, utc_s
        self._lost: Session | None = None
        """Driver's last page with a lost link; its rights are kept for its return."""

    # --- rights granted ---

    @handles(up.Unlock, right=Right.ANYONE)
    def unlock(self, session: Session, unlock: up.Unlock, now_s: float) -> None:
        """Check a code and offer a cookie for it."""
        self.try_code(session, unlock.code, now_s)
        self.offer(session)
        self._changed()

    def try_code(self, session: Session, code: str, now_s: float) -> None:
        """Grant rights for a right code; send an error for a wrong code or too many tries.

        Invitations are checked first, so wrong tries block no guest.
        """
        guest = self._devices.find_invitation(code, self._utc_s())
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
                    wait_s=wait_s,
                )
            )
            return
        rights = self._codes.unlock(code, session.address, now_s)
        if rights is None:
            session.send(
                Error("wrong code", "", "", "look at the screen that started the car", "wrong_code")
            )
            return
        session.rights, session.used_s = union(session.rights, rights), now_s
        if session.device is None or session.device.guest:
            session.ticket = secrets.token_urlsafe(24)
        if session.device is not None and session.device.guest:
            self._devices.make_permanent(session.device, self._utc_s())
        if session.device is not None and rights.grown_up:
            self._devices.note_use(session.device, self._utc_s())

    def _let_in(self, session: Session, guest: Device, now_s: float) -> None:
        """Admit a guest and mark the invitation as used."""
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
        self._devices.accept_invitation(guest, session.name, session.address, self._utc_s())
        log.info("%s came by an invitation", session.name)
        session.rights, session.used_s = Rights(drive=True), now_s
        session.device, session.ticket = guest, secrets.token_urlsafe(24)

    def offer(self, session: Session) -> None:
        """Offer a cookie to a page that has sent a right code and has no cookie yet."""
        if session.ticket:
            session.send(down.Pass(session.ticket, self._left_s(session.device)))

    def _left_s(self, device: Device | None) -> float:
        """Return the seconds that a guest may still drive; 0 for other drivers."""
        guest = device is not None and device.guest
        return max(0.0, device.until_s - self._utc_s()) if device and guest else 0.0

    def claim(self, ticket: str) -> Device | None:
        """Add a page's device to the list; return None for an unknown ticket."""
        ticket_bytes = ticket.encode(errors="surrogatepass")
        for session in self._sessions:
            if session.ticket and hmac.compare_digest(session.ticket.encode(), ticket_bytes):
                session.ticket = ""
                if session.device is None:
                    session.device = self._devices.add(
                        session.name, session.address, session.rights, self._utc_s()
                    )
                return session.device
        return None

    def join(self, session: Session, old: Session | None, now_s: float) -> None:
        """Give a page its rights on hello: those of its cookie, and those of its `old` socket.

        Without `old`, the last socket of the driver with the lost link counts as the old one.
        """
        lost = self._lost
        if lost and lost.client == session.client:
            old, self._lost = old or (lost if self._turns.at_the_wheel(lost) else None), None
        used_s = [old.used_s] if old else []
        device, utc_s = session.device, self._utc_s()
        if device is not None and device in self._devices.all():
            rights = device.rights(utc_s)
            session.rights = union(session.rights, rights)
            if rights.grown_up:
                used_s.append(now_s - (utc_s - device.used_s))
            self._devices.note_visit(device, session.name, utc_s)
        else:
            session.device = old.device if old else None
        if old is not None:
            session.rights = union(session.rights, old.rights)
        session.used_s = max(used_s, default=now_s)  # connecting does not count as use

    def leave(self, session: Session) -> None:
        """Handle the end of a page's connection."""
        self.note_name(session)
        if self._turns.at_the_wheel(session):
            self._lost = session

    def note_name(self, session: Session) -> None:
        """Store the page's name, and the time of its visit, for its device."""
        if session.device is not None:
            self._devices.note_visit(session.device, session.name, self._utc_s())

    def _pages(self) -> list[Session]:
        """Return all connected pages, and the lost page that still holds the wheel."""
        lost = self._lost
        return [*self._sessions, *([lost] if lost and self._turns.at_the_wheel(lost) else [])]

    def note_use(self, session: Session, message: up.Upward, now_s: float) -> None:
        """Record an action of a person; it extends the grown-up rights."""
        if isinstance(message, up.Drive):
            idle = message.throttle == message.steer == 0.0
        elif isinstance(message, Look):  # a phone that the camera follows sends `to` by itself
            idle = not message.rest and not any(message.turn.values())
        else:
            idle = isinstance(message, up.Ping | up.Report | up.Who | up.Hello)
        if not idle:
            session.used_s = now_s
            if session.device is not None and session.rights.grown_up:
                self._devices.note_use(session.device, self._utc_s())

    # --- rights withdrawn ---

    def tick(self, now_s: float) -> None:
        """Withdraw grown-up rights after 30 minutes without use, and guests' rights at their
        end."""
        for guest in self._devices.expired_guests(self._utc_s()):
            self._devices.end(guest.id)
            over = Error("your time to drive is over", "", "", "ask for more time", "time_over")
            self._end(guest.id, over, now_s)
        for session in self._pages():
            if session.rights.grown_up and self._unused(session, now_s):
                limit = f"{GROWN_UP_S / 60:.0f} min without use"
                error = "the grown-ups' part is locked again"
                next_step = "enter the grown-up code"
                session.send(Error(error, "", limit, next_step, "locked"))
                self._lock(session)

    def _unused(self, session: Session, now_s: float) -> bool:
        """Return whether these rights have expired on all pages of the device.

        Pages of recordings have no session; they record their use on the device. The device's clock
        may be set, the clock of sessions is monotonic.
        """
        device = session.device
        if device is not None and device.rights(self._utc_s()).grown_up:
            return False
        pages = [page for page in self._pages_of(session) if page.rights.grown_up]
        return all(now_s - page.used_s >= GROWN_UP_S for page in pages)

    @handles(up.Lock, right=Right.ANYONE)
    def lock(self, session: Session, _: up.Lock, now_s: float) -> None:
        """Lock the grown-ups' part on this device."""
        self._lock(session)

    def _lock(self, session: Session) -> None:
        if session.device is not None:
            self._devices.lock(session.device)
        for page in self._pages_of(session):
            page.rights = Rights(drive=page.rights.drive)
        self._changed()

    def _pages_of(self, session: Session) -> list[Session]:
        """Return a page and the other pages on its device."""
        device = session.device
        return [
            page
            for page in self._pages()
            if page is session or (device is not None and page.device is device)
        ]

    @handles(up.End, right=Right.GROWN_UP, act="ends the rights of others")
    def end(self, session: Session, end: up.End, now_s: float) -> None:
        """End a person's rights, on the list and on all pages."""
        for devices in self._lists:
            devices.end(end.id)
        reason = "a grown-up has ended your rights"
        error = Error(reason, "", "", "ask for the code", "ended")
        self._end(end.id, error, now_s)
        self.who(session, up.Who(), now_s)

    def _end(self, person: str, reason: Error, now_s: float) -> None:
        """End the rights of a person on the list; a driver loses the wheel and the car stops."""
        for page in [page for page in self._pages() if _id(page) == person]:
            log.info("%s: %s", page.name, reason.what)
            page.rights, page.device, page.ticket = Rights(), None, ""
            page.send(reason)
            self._turns.release(page, up.Release(), now_s)
        self._changed()

    # --- the list ---

    @handles(up.Who, right=Right.GROWN_UP, act="sees the list of drivers")
    def who(self, session: Session, _: up.Who, now_s: float) -> None:
        """Send the list of drivers and viewers."""
        people = (*self._connected(session), *self._absent())
        session.send(down.People(people, self.unsaved()))

    def unsaved(self) -> Text | None:
        """Return the reason the list cannot be saved."""
        return next((devices.unsaved for devices in self._lists if devices.unsaved), None)

    def _connected(self, grown_up: Session) -> list[down.Person]:
        mine = _id(grown_up)
        return [
            down.Person(
                _id(session),
                session.name,
                address_class(session.address),
                session.rights.grown_up,
                self._turns.at_the_wheel(session),
                _id(session) == mine,
                left_s=self._left_s(session.device),
                watches=not session.rights.drive,
            )
            for session in self._sessions
        ]

    def _absent(self) -> list[down.Person]:
        present, now_s = {_id(session) for session in self._sessions}, self._utc_s()
        return [
            down.Person(
                device.id,
                device.name,
                device.where,
                device.rights(now_s).grown_up,
                False,
                False,
                max(0.0, now_s - device.seen_s),
                self._left_s(device),
            )
            for devices in self._lists
            for device in devices.all()
            if device.id not in present
        ]


def _id(session: Session) -> str:
    """Return a page's id on the list: its device, or its video id, a public value."""
    return session.device.id if session.device else session.video


def union(rights: Rights, extra: Rights) -> Rights:
    """Return the union of two sets of rights."""
    return Rights(rights.drive or extra.drive, rights.grown_up or extra.grown_up)
