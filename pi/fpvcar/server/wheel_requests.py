"""Requests for the wheel: one at a time, answered by the driver or ended by time. Pure."""

from typing import Literal, NamedTuple

from fpvcar.server.http.limits import TokenBucket

ANSWER_S = 30.0
"""Time for the driver to answer a request."""
PAUSE_S = 30.0
"""Time after a refused or unanswered request until the same page may ask again."""
ASKS_PER_S, ASKS_BURST = 0.1, 5.0
"""Rate limit on requests of all pages together. It keeps a page that reconnects under new ids from
distracting the driver."""
ENDED_MAX = 64
"""Most pages whose pause is kept; the oldest one ends early."""
Outcome = Literal["later", "unanswered"]


class Asked(NamedTuple):
    """Request of one page, until the driver's time to answer is over."""

    client: str
    until_s: float


class Ended(NamedTuple):
    """Request that did not give its page the wheel, until the page may ask again."""

    outcome: Outcome
    until_s: float


class WheelRequests:
    """Request shown to the driver, and the pauses of pages whose request has ended."""

    def __init__(self) -> None:
        self.asked: Asked | None = None
        self._ended: dict[str, Ended] = {}
        self._limit = TokenBucket(ASKS_PER_S, ASKS_BURST)

    def ask(self, client: str, now_s: float) -> float:
        """Request the wheel. Returns 0.0 if the driver is asked, otherwise the wait in s."""
        self.expire(now_s)
        if self.asked is not None:
            return 0.0 if self.asked.client == client else self.asked.until_s - now_s
        ended = self._ended.get(client)
        if ended is not None:
            return ended.until_s - now_s
        if not self._limit.allow(now_s):
            return 1.0 / ASKS_PER_S
        self.asked = Asked(client, now_s + ANSWER_S)
        return 0.0

    def ended(self, client: str) -> Ended | None:
        """Return the ended request of a page that may not ask again yet."""
        return self._ended.get(client)

    def end(self, outcome: Outcome, now_s: float) -> None:
        """End the driver's current request without giving the wheel."""
        if self.asked is not None:
            self._ended[self.asked.client] = Ended(outcome, now_s + PAUSE_S)
            self.asked = None
            if len(self._ended) > ENDED_MAX:
                del self._ended[next(iter(self._ended))]

    def expire(self, now_s: float) -> None:
        """End a request whose time is over, and pauses likewise."""
        if self.asked is not None and self.asked.until_s <= now_s:
            self.end("unanswered", now_s)
        if any(ended.until_s <= now_s for ended in self._ended.values()):
            self._ended = {
                client: ended for client, ended in self._ended.items() if ended.until_s > now_s
            }

    def clear(self) -> None:
        """Discard all requests: the wheel has changed hands."""
        self.asked = None
        self._ended.clear()
