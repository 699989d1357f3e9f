"""Web server of a car: its limits, and the site around its page."""

import re
from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from fpvcar.config.base import ConfigError, Section

PATH = re.compile(r"/(?:(?!\.+/)[\w.~-]{1,63}/){0,8}", re.A)
"""Base path: its segments need no percent-encoding, and none is "." or ".."."""
ORIGIN = re.compile(r"https?://[a-z\d](?:[\w.-]{0,251}\w)?(?::(\d{1,5}))?", re.A | re.I)
"""Origin of a page. Content-Security-Policy has no IPv6 addresses (CSP level 3, 2.3.1)."""
ORIGINS_MOST = 16


class Server(Section, frozen=True):
    """Access limits of the web server. IP literals, localhost and `car.name` are always allowed."""

    allowed_hosts: tuple[str, ...] = ()
    """Further names and addresses of the car, also in its certificate, such as in a tunnel."""
    base_path: str = "/"
    """Path of the page behind a reverse proxy, such as "/car/". The proxy may pass it on or strip
    it. With a path, drivers on the car's own computer need the code, too."""
    frame_ancestors: tuple[str, ...] = ()
    """Origins that may show the car's page in a frame, such as "https://home.example.org:8123"; by
    default none."""
    max_viewers: Annotated[int, Meta(ge=1, le=1000)] = 50
    """Sockets of each kind; clients with the right to drive have additional places."""
    max_connections: Annotated[int, Meta(ge=16, le=4096)] = 256
    """TCP connections in total; some 30 kB each, more with https."""
    max_per_address: Annotated[int, Meta(ge=4, le=4096)] = 64
    """TCP connections from one IPv4 address or one IPv6 /128; twice that from a /64."""
    first_takes_wheel: bool = False
    """Whether the first client with the right to drive gets the wheel without asking."""


def refuse_server(server: Server) -> None:
    """Refuse a path that hides the car's own ones, and origins that no page can have."""
    path = server.base_path
    if not PATH.fullmatch(path):
        raise ConfigError(
            f'server.base_path = "{path}": expected a path that begins and ends with "/", of at '
            'most 8 parts of A-Z, a-z, 0-9, ".", "_", "~" and "-", such as "/car/"'
        )
    if path != "/":
        _refuse_own(path)
    if len(server.frame_ancestors) > ORIGINS_MOST:
        raise ConfigError(
            f"server.frame_ancestors: {len(server.frame_ancestors)} origins; expected "
            f"{ORIGINS_MOST} at most"
        )
    for origin in server.frame_ancestors:
        _refuse_origin(origin)


def _refuse_own(path: str) -> None:
    from fpvcar.runtime import paths  # not above: `wheels` has no page

    first = path.split("/")[1]
    if first in ("api", "ws") or (paths.WEB / first).exists():
        raise ConfigError(
            f'server.base_path = "{path}": the car itself has "/{first}"; expected another path, '
            'such as "/car/"'
        )


def _refuse_origin(origin: str) -> None:
    match = ORIGIN.fullmatch(origin)
    if match is None or not 1 <= int(match[1] or 443) <= 65535:
        raise ConfigError(
            f'server.frame_ancestors: "{origin}" refused: expected the origin of one site, '
            'http:// or https:// with its name or IPv4 address and its port, without "*", path and '
            '"/" at the end, such as "https://home.example.org:8123"'
        )


def server_warnings(server: Server) -> Iterator[str]:
    """Yield warnings about frames in which the browser keeps no cookie of the car."""
    for origin in server.frame_ancestors:
        if origin.lower().startswith("http:"):
            yield (
                f'server.frame_ancestors: "{origin}" is without https: in its frames browsers '
                "keep no cookie of another site, so each visit needs the code and recordings stay "
                "locked; serve both that page and the car by https"
            )
