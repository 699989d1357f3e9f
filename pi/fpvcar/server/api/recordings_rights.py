"""Who may see recordings, and who may change what is there.

    POST /api/recordings/unlock      X-Drive-Code: 123456 -> a device's cookie

Who may drive may see: whoever sits at this machine, and whose device is on the list of
devices.py. Who has grown-ups' rights there may delete, too; that is a use of them.
"""

import time
from collections.abc import Callable

from aiohttp import web

from fpvcar.server.auth.access import CodeCheck, is_loopback
from fpvcar.server.auth.remembered_browsers import Device, Devices
from fpvcar.server.http.pages import refuse_other_sites
from fpvcar.server.http.responses import PRIVATE

CODE = "X-Drive-Code"
NAME = "recordings page"
"""What a device is called until its person has told the seat a name."""


class RecordingRights:
    """Looks who asks: only this machine may see, and nobody may delete."""

    locked = "Recordings are for those who may drive: enter the drive code."
    """What who may not see is answered."""
    opened_by = "code"
    """What opens it: a "code" or a "password"; 401 says it in X-Opened-By."""
    takes_codes = False
    """Can somebody become a grown-up here?"""

    def add_to(self, app: web.Application) -> None:
        """Adds the route, where there is one."""

    def let_in(self, request: web.Request) -> None:
        """Raises HTTPForbidden, HTTPUnauthorized for who may not see."""
        refuse_other_sites(request)
        if self.device(request) is None and not is_loopback(request.remote or ""):
            raise self._unauthorized(self.locked)

    def let_change(self, request: web.Request) -> None:
        """Raises as let_in, also for who is no page of ours and said no code."""
        self.let_in(request)
        if self.device(request) is None and "Origin" not in request.headers:
            raise self._unauthorized("Who may drive may change this: enter the drive code.")

    def let_delete(self, request: web.Request) -> None:
        """Raises as let_change, and for who is no grown-up."""
        self.let_grown_up(request, "Only a grown-up deletes: enter the grown-ups' code.")

    def let_grown_up(self, request: web.Request, locked: str) -> None:
        """Raises as let_change, and with `locked` for who is no grown-up."""
        self.let_change(request)
        if not self.grown_up(request):
            raise self._unauthorized(locked)

    def _unauthorized(self, words: str) -> web.HTTPUnauthorized:
        headers = {**PRIVATE, "X-Opened-By": self.opened_by}
        return web.HTTPUnauthorized(text=f"{words}\n", headers=headers)

    def grown_up(self, request: web.Request) -> bool:
        """Has who asks grown-ups' rights?"""
        return False

    def device(self, request: web.Request) -> Device | None:
        """By which the car knows who asks."""
        return None


class DeviceRights(RecordingRights):
    """Lets in whose device the car knows, too, and takes codes. Clocks in s."""

    takes_codes = True

    def __init__(
        self,
        codes: CodeCheck,
        known: Devices,
        clock_s: Callable[[], float] = time.monotonic,
        utc_s: Callable[[], float] = time.time,
    ) -> None:
        self._codes, self._devices = codes, known
        self._clock_s, self._utc_s = clock_s, utc_s

    def add_to(self, app: web.Application) -> None:
        """Adds the route."""
        app.router.add_post("/api/recordings/unlock", self._unlock)

    def let_in(self, request: web.Request) -> None:
        """Raises as above; the list of devices knows that this one is here."""
        super().let_in(request)
        device = self.device(request)
        if device is not None:
            self._devices.seen(device, device.name, self._utc_s())

    def let_change(self, request: web.Request) -> None:
        """Raises as above. A change is a use of grown-ups' rights."""
        super().let_change(request)
        device = self.device(request)
        if device is not None and self.grown_up(request):
            self._devices.used(device, self._utc_s())

    def grown_up(self, request: web.Request) -> bool:
        """Was the grown-ups' code said there, and its rights used within 30 min?"""
        device = self.device(request)
        return device is not None and device.rights(self._utc_s()).grown_up

    def device(self, request: web.Request) -> Device | None:
        """That of its cookie, unless somebody ended it."""
        return self._devices.of(request, self._utc_s())

    async def _unlock(self, request: web.Request) -> web.Response:
        refuse_other_sites(request)
        address, now_s, utc_s = request.remote or "", self._clock_s(), self._utc_s()
        code = request.headers.get(CODE, "")
        wait_s = self._codes.wait_s(code, address, now_s)
        if wait_s > 0.0:
            raise web.HTTPTooManyRequests(
                text=f"Too many wrong codes: try again in {wait_s:.0f} s.\n"
            )
        rights = self._codes.unlock(code, address, now_s)
        if rights is None:
            raise web.HTTPUnauthorized(text="That is not the code.\n")
        device = self.device(request)
        if device is None:
            device = self._devices.add(NAME, address, rights, utc_s)
        elif device.guest:
            self._devices.stay(device, utc_s)
        if rights.grown_up:
            self._devices.used(device, utc_s)
        return await self._devices.remembering(device, utc_s, request.secure)
