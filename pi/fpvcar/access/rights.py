"""Access rights for viewing and changing recordings.

    POST /api/recordings/unlock      X-Drive-Code: 123456 -> a device's cookie

Drivers may view: every user of this machine, and every device on the list of
remembered_browsers.py. Devices with grown-up rights may also delete; this counts as a use of the
rights.
"""

import time

from aiohttp import web

from fpvcar.access.codes import CodeCheck
from fpvcar.access.remembered_browsers import Device, Devices
from fpvcar.http.addresses import asks_here
from fpvcar.http.pages import refuse_other_sites
from fpvcar.http.responses import PRIVATE, refused
from fpvcar.http.rights import Right
from fpvcar.http.routes import answers
from fpvcar.runtime.clock import Clock
from fpvcar.runtime.texts import Phrase, Text

TOO_MANY_CODES = Phrase("too_many_codes", "Too many wrong codes: try again in {wait_s} s.")

CODE = "X-Drive-Code"
NAME = "recordings page"
"""Name of a device until its user has entered a name at the seat."""
DRIVER_NEEDED = Text("driver_needed", "Only a driver can change this: enter the drive code.")
GROWN_UP_NEEDED = Text("grown_up_needed", "Only a grown-up can do that: enter the grown-up code.")


class RecordingRights:
    """Access check without codes: only this machine may view, and deleting is impossible."""

    locked = Text("drive_code_needed", "Only drivers can see recordings: enter the drive code.")
    """Refusal of a client that may not view."""
    opened_by = "code"
    """Kind of secret that unlocks: "code" or "password"; sent with 401 in X-Opened-By."""
    takes_codes = False
    """True if a client can obtain grown-up rights here."""

    def add_to(self, app: web.Application) -> None:
        """Add the route; this class has none."""

    def check(self, right: Right, request: web.Request) -> None:
        """Raise HTTPForbidden or HTTPUnauthorized for a client without the right."""
        checks = {
            Right.DRIVER: self.let_in,
            Right.DRIVERS_PAGE: self.let_change,
            Right.GROWN_UP: self.let_grown_up,
        }
        checks[right](request)

    def let_in(self, request: web.Request) -> None:
        """Raise HTTPForbidden or HTTPUnauthorized if the client may not view."""
        refuse_other_sites(request)
        if self.device(request) is None and not asks_here(request.remote, request.headers):
            raise self._unauthorized(self.locked)

    def let_change(self, request: web.Request) -> None:
        """Raise as let_in, and also for a client that is neither the car's page nor a known
        device."""
        self.let_in(request)
        if self.device(request) is None and "Origin" not in request.headers:
            raise self._unauthorized(DRIVER_NEEDED)

    def let_grown_up(self, request: web.Request) -> None:
        """Raise as let_change, and also for a client without grown-up rights."""
        self.let_change(request)
        if not self.grown_up(request):
            raise self._unauthorized(GROWN_UP_NEEDED)

    def _unauthorized(self, text: Text) -> web.HTTPException:
        headers = {**PRIVATE, "X-Opened-By": self.opened_by}
        return refused(web.HTTPUnauthorized, text, headers)

    def grown_up(self, request: web.Request) -> bool:
        """Return whether the client has grown-up rights."""
        return False

    def device(self, request: web.Request) -> Device | None:
        """Return the client's device, or None if it is unknown."""
        return None


class DeviceRights(RecordingRights):
    """Access check that also admits known devices, and accepts codes. Clocks in s."""

    takes_codes = True

    def __init__(
        self,
        codes: CodeCheck,
        devices: Devices,
        clock_s: Clock = time.monotonic,
        utc_s: Clock = time.time,
    ) -> None:
        self._codes, self._devices = codes, devices
        self._clock_s, self._utc_s = clock_s, utc_s

    def add_to(self, app: web.Application) -> None:
        """Add the route for unlocking with a code."""
        app.router.add_post("/api/recordings/unlock", self._unlock)

    def let_in(self, request: web.Request) -> None:
        """Raise as in the base class; record the device's visit on the list."""
        super().let_in(request)
        device = self.device(request)
        if device is not None:
            self._devices.note_visit(device, device.name, self._utc_s())

    def let_change(self, request: web.Request) -> None:
        """Raise as in the base class. A change counts as a use of grown-up rights."""
        super().let_change(request)
        device = self.device(request)
        if device is not None and self.grown_up(request):
            self._devices.note_use(device, self._utc_s())

    def grown_up(self, request: web.Request) -> bool:
        """Return whether the device has grown-up rights that were used within 30 min."""
        device = self.device(request)
        return device is not None and device.rights(self._utc_s()).grown_up

    def device(self, request: web.Request) -> Device | None:
        """Return the device of the request's cookie, unless it was removed from the list."""
        return self._devices.device_of(request, self._utc_s())

    @answers(answer=None, headers=(CODE,), status=204)
    async def _unlock(self, request: web.Request) -> web.Response:
        """Take the drive code or the grown-up code, and set a cookie for 30 days."""
        refuse_other_sites(request)
        address, now_s, utc_s = request.remote or "", self._clock_s(), self._utc_s()
        code = request.headers.get(CODE, "")
        wait_s = self._codes.wait_s(code, address, now_s)
        if wait_s > 0.0:
            raise refused(web.HTTPTooManyRequests, TOO_MANY_CODES(wait_s=round(wait_s)))
        rights = self._codes.unlock(code, address, now_s)
        if rights is None:
            raise refused(web.HTTPUnauthorized, Text("wrong_code", "That is not the code."))
        device = self.device(request)
        if device is None:
            device = self._devices.add(NAME, address, rights, utc_s)
        elif device.guest:
            self._devices.make_permanent(device, utc_s)
        if rights.grown_up:
            self._devices.note_use(device, utc_s)
        return await self._devices.cookie_response(device, utc_s, request)
