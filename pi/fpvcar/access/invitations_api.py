"""/api/invitations: temporary right to drive, granted by a grown-up with a QR code.

    POST /api/invitations?minutes=60  -> {"link": ..., "qr": an SVG, "left_s": 3600}

The link opens the page, and the page sends the token as a code: authorization.py. The token stands
behind the "#", and browsers do not send that part: it appears in no log, and a messenger's preview
of the link does not use it up.
"""

import io
import time
from collections.abc import Callable

import msgspec
from aiohttp import web

from fpvcar.access.remembered_browsers import Devices
from fpvcar.access.rights import RecordingRights
from fpvcar.http import addresses
from fpvcar.http.addresses import in_url
from fpvcar.http.endpoints import Address
from fpvcar.http.responses import JSON, number_of, refused
from fpvcar.wire.refusals import Refusal

BASE = "/api/invitations"
USUAL_MIN, LEAST_MIN, MOST_MIN = 60.0, 5.0, 720.0


class InvitationsApi:
    """Route of invitations; `devices` stores the guests, `served` is the address of the pages."""

    def __init__(
        self,
        devices: Devices,
        rights: RecordingRights,
        served: Address,
        utc_s: Callable[[], float] = time.time,
    ) -> None:
        self._devices, self._rights, self._served = devices, rights, served
        self._utc_s = utc_s

    def add_to(self, app: web.Application) -> None:
        """Add the route; call this before adding a catch-all route."""
        app.router.add_post(BASE, self._invite)

    async def _invite(self, request: web.Request) -> web.Response:
        self._rights.let_grown_up(request)
        minutes = number_of(request, "minutes", USUAL_MIN, LEAST_MIN, MOST_MIN)
        if addresses.is_loopback(self._served.host):
            raise refused(web.HTTPConflict, Refusal("here_only"))
        page = self._page(request)
        import segno  # imported here: a car without invitations saves 3 MB

        token = self._devices.invite(minutes, self._utc_s())
        link = f"{page}#invited={token}"
        picture = io.BytesIO()
        segno.make(link, error="m").save(picture, kind="svg", light="#fff")
        qr = picture.getvalue().decode()
        answer = {"link": link, "qr": qr, "left_s": minutes * 60}
        return web.Response(body=msgspec.json.encode(answer), headers=JSON)

    def _page(self, request: web.Request) -> str:
        """Return the page's address as seen by other machines on the LAN.

        Raises HTTPConflict without a network.
        """
        if addresses.is_loopback(request.url.host or ""):
            address = addresses.lan_address()
            if addresses.is_loopback(address):
                raise refused(web.HTTPConflict, Refusal("no_network"))
            return f"http://{in_url(address)}:{self._served.port}/"
        return f"{request.scheme}://{request.host}/"
