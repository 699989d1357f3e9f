"""Admission of sockets: places of each kind, and the ranks of the connections below."""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from aiohttp import web

from fpvcar.http.limits import Places, Rank
from fpvcar.http.listener import connection_of


class Admission:
    """Admission of one car; `most` is the profile's server.max_viewers."""

    def __init__(self, connections: Places, most: int) -> None:
        self._connections, self.most = connections, most

    def promote(self, request: web.Request, rank: Rank) -> None:
        """Raise the rank of a request's connection, so that others give way first."""
        if request.transport is not None:
            self._connections.promote(connection_of(request.transport), rank)

    def sockets(self, path: str, most: int | None = None) -> "SocketPlaces":
        """Create the places of the sockets at `path`, by default as many as viewers."""
        most = self.most if most is None else most
        return SocketPlaces(self, path, Places(most, most))


class SocketPlaces:
    """Places of the sockets at one path."""

    def __init__(self, admission: Admission, path: str, places: Places) -> None:
        self._admission, self._path, self._places = admission, path, places

    @contextmanager
    def place(self, request: web.Request, rank: Rank) -> Iterator["Place"]:
        """Hold a place for a socket. Raises HTTPServiceUnavailable."""
        cut = cutting(request)
        full = self._places.enter(cut, request.remote or "", cut, rank)
        if full is not None:
            raise no_place(full, self._path)
        try:
            yield Place(self._admission, self._places, request, cut)
        finally:
            self._places.leave(cut)


class Place(NamedTuple):
    """Place of one socket."""

    admission: Admission
    places: Places
    request: web.Request
    owner: Hashable

    def promote(self, rank: Rank) -> None:
        """Raise the rank of the socket and of its connection, once its page has proved it."""
        self.places.promote(self.owner, rank)
        self.admission.promote(self.request, rank)


def no_place(full: str, path: str) -> web.HTTPServiceUnavailable:
    """Return the refusal of a socket; `full` names the limit."""
    return web.HTTPServiceUnavailable(text=f"{full} already at {path} (server.max_viewers).\n")


def cutting(request: web.Request) -> Callable[[], None]:
    """Return a function that aborts a request's connection, including queued data."""

    def cut() -> None:
        if request.transport is not None:
            request.transport.abort()

    return cut
