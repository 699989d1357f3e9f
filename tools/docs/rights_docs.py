"""Generator of the table of rights in docs/access.md: `make docs`.

@handles of each message of /ws/drive -> right to send it
@answers of each route, SOCKETS       -> right to use it
"""

from collections.abc import Mapping
from pathlib import Path
from typing import get_args

from tools.docs import http_api
from tools.docs.wire_docs import tag_of
from tools.docs.written import filled

from fpvcar.intercom.socket import Intercom
from fpvcar.seat.authorization import Authorization
from fpvcar.seat.handlers import Right, declared
from fpvcar.seat.hub import Hub
from fpvcar.seat.settings import Settings
from fpvcar.seat.turns import Turns
from fpvcar.servos.feature import ServoAims
from fpvcar.wire import up

PAGE = Path(__file__).resolve().parents[2] / "docs" / "access.md"
PARTS = (Hub, Turns, Settings, Authorization, Intercom, ServoAims)
"""Classes with handlers of messages."""
SOCKETS: dict[str, str] = {
    "/ws/drive": Right.ANYONE,
    "/ws/video": Right.ANYONE,
    "/ws/copies": Right.AT_THE_WHEEL,
    "/ws/buttons": Right.ANYONE,
    "/ws/intercom": Right.AT_THE_WHEEL,
}
HEAD = "| right | messages of `/ws/drive` | routes and other sockets |\n|---|---|---|"


def messages() -> dict[type, Right]:
    """Return the right to each message of /ws/drive, in the order of wire/up.py."""
    rights = {
        declaration.message: declaration.right
        for part in PARTS
        for declaration, _ in declared(part)
    }
    return {message: rights[message] for message in get_args(up.Upward)}


def routes() -> dict[str, str]:
    """Return the right to each socket and each route of the HTTP API."""
    return {
        **SOCKETS,
        **{f"{call.method.upper()} {call.path}": call.right for call in http_api.calls()},
    }


def table() -> str:
    """Return the table, a row for each right."""
    sent = {f"`{tag_of(message)}`": right for message, right in messages().items()}
    asked = {f"`{route}`": right for route, right in routes().items()}
    rights = dict.fromkeys((*Right, *asked.values()))
    rows = [f"| {right} | {_named(sent, right)} | {_named(asked, right)} |" for right in rights]
    return "\n".join([HEAD, *rows])


def _named(rights: Mapping[str, str], right: str) -> str:
    return ", ".join(name for name, own in rights.items() if own == right)


def page() -> str:
    """Return the full text of docs/access.md."""
    return filled(PAGE.read_text(encoding="utf-8"), {"rights": table()})


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
