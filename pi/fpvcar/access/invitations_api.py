"""/api/invitations: temporary right to drive, granted by a grown-up with a QR code.

    POST /api/invitations?minutes=60  -> {"link": ..., "qr": an SVG, "left_s": 3600}

The link opens the page, and the page sends the token as a code: authorization.py. The token stands
behind the "#", and browsers do not send that part: it appears in no log, and a messenger's preview
of the link does not use it up.
"""

import io
import time
from typing import Annotated

from aiohttp import web
from msgspec import Meta, Struct
from yarl import URL

from fpvcar.access.remembered_browsers import Devices
from fpvcar.access.rights import RecordingRights
from fpvcar.http import addresses
from fpvcar.http.addresses import in_url
from fpvcar.http.embedding import ALONE, Embedding
from fpvcar.http.endpoints import Address
from fpvcar.http.responses import refused
from fpvcar.http.rights import Right
from fpvcar.http.routes import answers, query_of
from fpvcar.runtime.clock import Clock
from fpvcar.runtime.texts import Text

HERE_ONLY = Text(
    "here_only",
    "The car listens on this computer only, so an invitation would not work: start it with "
    "--host 0.0.0.0.",
)
NO_NETWORK = Text(
    "no_network",
    "The car is on no network, so a phone could not open the invitation: join a network, "
    "then invite again.",
)

BASE = "/api/invitations"


class InvitationQuery(Struct):
    """Driving time of a guest."""

    minutes: Annotated[float, Meta(ge=5.0, le=720.0)] = 60.0


class Invitation(Struct):
    """Link of an invitation, and the same as a QR code (SVG)."""

    link: str
    qr: str
    left_s: float


class InvitationsApi:
    """Route of invitations; `devices` stores the guests, `served` is the address of the pages."""

    def __init__(
        self,
        devices: Devices,
        rights: RecordingRights,
        served: Address,
        utc_s: Clock = time.time,
        embedding: Embedding = ALONE,
    ) -> None:
        self._devices, self._rights, self._served = devices, rights, served
        self._utc_s, self._embedding = utc_s, embedding

    def add_to(self, app: web.Application) -> None:
        """Add the route; call this before adding a catch-all route."""
        app.router.add_post(BASE, self._invite)

    @answers(Right.GROWN_UP, query=InvitationQuery)
    async def _invite(self, request: web.Request) -> Invitation:
        """Invite a guest to drive for a while."""
        minutes = query_of(request, InvitationQuery).minutes
        if addresses.is_loopback(self._served.host):
            raise refused(web.HTTPConflict, HERE_ONLY)
        page = self._page(request)
        import segno  # imported here: a car without invitations saves 3 MB

        token = self._devices.invite(minutes, self._utc_s())
        link = f"{page}#invited={token}"
        picture = io.BytesIO()
        segno.make(link, error="m").save(picture, kind="svg", light="#fff")
        qr = picture.getvalue().decode()
        return Invitation(link, qr, minutes * 60)

    def _page(self, request: web.Request) -> str:
        """Return the page's address as seen by other machines: on the LAN, or by a proxy.

        Raises HTTPConflict without a network.
        """
        page = URL(request.headers.get("Origin") or f"{request.scheme}://{request.host}")
        if addresses.is_loopback(page.host or ""):
            address = addresses.lan_address()
            if addresses.is_loopback(address):
                raise refused(web.HTTPConflict, NO_NETWORK)
            return f"http://{in_url(address)}:{self._served.port}/"
        return str(page.with_path(self._embedding.path_of(request.headers)))
