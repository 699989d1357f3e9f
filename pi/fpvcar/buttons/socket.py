"""/ws/buttons: one socket of a children's page. See wire/buttons.py for the messages.

Every viewer may push buttons: they cause light effects only, and no code here reaches the gate. A
page sends its held buttons twice a second; one that is silent is disconnected, and its fingers are
released.
"""

import functools
import itertools
import logging

from aiohttp import web

from fpvcar.buttons.panel import Panel
from fpvcar.drive.saved import DisplayName
from fpvcar.http.limits import Rank
from fpvcar.http.text_session import TextSession, serve_text
from fpvcar.runtime.service import threaded
from fpvcar.seat.feature import Core, Feature
from fpvcar.wire.buttons import ButtonsUpward, Choose, Hold, parse_buttons_upward
from fpvcar.wire.errors import WireError

log = logging.getLogger("fpvcar.buttons")
_numbers = itertools.count(1)


class Session(TextSession[ButtonsUpward]):
    """Socket of one page; `source` names its fingers to the panel."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.source = f"page {next(_numbers)}"
        self.joined = False

    def parse(self, text: str | bytes) -> ButtonsUpward:
        """Parse the message of one frame. Raises WireError."""
        message = parse_buttons_upward(text)
        if not self.joined and isinstance(message, Hold | Choose):
            raise WireError("hello first", None, "hello")
        return message


def feature(core: Core) -> Feature:
    """Return the buttons and lights of a car, with the socket of their page."""
    panel = Panel(core.profile, core.recorder.panel, code=core.code, events=core.lights)
    places = core.admission.sockets("/ws/buttons")

    async def serve_page(request: web.Request) -> web.WebSocketResponse:
        session = Session(request.remote or "")
        with places.place(request, Rank.WATCHES):
            try:
                receive = functools.partial(_take, panel, core.name, session)
                return await serve_text(request, session, session.parse, receive, log)
            finally:
                panel.leave(session)

    return Feature(
        name="buttons",
        parts=(threaded("panel", panel, panel.run),),
        routes=lambda app: app.router.add_get("/ws/buttons", serve_page),
        pages={"buttons": "buttons.html"},
        status=lambda: {"board": panel.state},
        faults=lambda: () if panel.state == "ok" else (f"pins: {panel.state}",),
    )


def _take(panel: Panel, name: DisplayName, session: Session, message: ButtonsUpward) -> None:
    if isinstance(message, Hold | Choose):
        panel.receive(session, message)
    elif not session.joined:
        session.joined = True
        session.send(panel.welcome(name.text))
        panel.join(session)
