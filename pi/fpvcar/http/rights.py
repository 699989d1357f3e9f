"""Rights, in the same words for messages and routes, and their declaration at a route's handler.

    @admits(Right.GROWN_UP)
    async def _run(self, request: web.Request) -> web.Response:

Messages of /ws/drive: seat/handlers.py. `make docs` prints the table of rights in docs/access.md.
"""

import functools
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Any, TypeVar

from aiohttp import web

H = TypeVar("H", bound=Callable[..., Awaitable[web.StreamResponse]])


class Right(StrEnum):
    """People and programs that may send a message or use a route."""

    ANYONE = "anybody"
    DRIVER = "driver"
    DRIVERS_PAGE = "driver's page"
    """Driver; on this machine the car's own page, or a program with a cookie."""
    NAMES_CAR = "driver; once the car has a name, grown-up"
    AT_THE_WHEEL = "driver at the wheel"
    RESUMES = "driver at the wheel, or grown-up"
    LOOKS = "driver at the wheel, or viewer if a grown-up allows it"
    GROWN_UP = "grown-up"
    STATION = "station"
    STATION_OR_LOCAL = "station, or program on this machine"


BY_COOKIE = (Right.DRIVER, Right.DRIVERS_PAGE, Right.GROWN_UP)


def admits(right: Right) -> Callable[[H], H]:
    """Declare the right to a route. Clients without it are refused before the handler runs.

    Rights by cookie are checked by `_rights` of the handler's object. Sockets check the page's
    hello, and routes of stations the signature.
    """

    def declare(handler: H) -> H:
        admitted: Any = handler
        if right in BY_COOKIE:

            @functools.wraps(handler)
            async def admitted(owner: Any, request: web.Request) -> web.StreamResponse:
                owner._rights.check(right, request)
                return await handler(owner, request)

        admitted.right = right
        declared: H = admitted
        return declared

    return declare
