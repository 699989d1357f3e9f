"""Requests for the wheel, answered by the driver one by one, or ended by time. Pure."""

from typing import Literal, NamedTuple

from fpvcar.server.http.limits import TokenBucket

ANSWER_S = 30.0
"""Time for the driver to answer a request."""
PAUSE_S = 30.0
"""Time after a refused or unanswered request until the same page may ask again."""
ASKS_PER_S, ASKS_BURST = 0.1, 5.0
"""Rate limit on requests of all pages together. It bounds the number of stored requests."""


class Request(NamedTuple):
    """Request of one page: waiting for the driver until `until_s`, or refused until then."""

    phase: Literal["waits", "later", "unanswered"]
    until_s: float


class WheelRequests:
    """Requests by client, the oldest first."""

    def __init__(self) -> None:
        self._requests: dict[str, Request] = {}
        self._limit = TokenBucket(ASKS_PER_S, ASKS_BURST)

    def ask(self, client: str, now_s: float) -> float:
        """Request the wheel. Returns 0.0 if the request waits, otherwise the pause left in s."""
        self.expire(now_s)
        request = self._requests.get(client)
        if request is not None:
            return 0.0 if request.phase == "waits" else request.until_s - now_s
        if not self._limit.allow(now_s):
            return 1.0 / ASKS_PER_S
        self._requests[client] = Request("waits", now_s + ANSWER_S)
        return 0.0

    def of(self, client: str) -> Request | None:
        """Return the request of a page."""
        return self._requests.get(client)

    def waiting(self) -> list[str]:
        """Return the clients whose requests wait for the driver."""
        return [client for client, request in self._requests.items() if request.phase == "waits"]

    def end(self, client: str, phase: Literal["later", "unanswered"], now_s: float) -> None:
        """End a request without giving the wheel."""
        self._requests[client] = Request(phase, now_s + PAUSE_S)

    def expire(self, now_s: float) -> None:
        """End requests whose time is over, and pauses likewise."""
        for client, request in list(self._requests.items()):
            if request.until_s > now_s:
                continue
            if request.phase == "waits":
                self.end(client, "unanswered", now_s)
            else:
                del self._requests[client]

    def clear(self) -> None:
        """Discard all requests: the wheel has changed hands."""
        self._requests.clear()
