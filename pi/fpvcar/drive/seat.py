"""Driver's seat: one holder, handed over on request, freed when unused. Pure."""

from dataclasses import dataclass

IDLE_S = 10.0
"""Time with only neutral wishes, or without a socket, after which another client may take the
seat."""


@dataclass(slots=True)
class Holder:
    """Current driver. `gone_s` is the time at which the socket was lost, None while it is open."""

    client: str
    name: str
    active_s: float
    gone_s: float | None = None


class Seat:
    """Driver's seat of the car. Clients are identified by their page's session id."""

    def __init__(self) -> None:
        self.holder: Holder | None = None

    def holds(self, client: str) -> bool:
        """Return whether this client holds the seat."""
        return self.holder is not None and self.holder.client == client

    def back(self, client: str, name: str) -> bool:
        """Give a returning client its own seat back at once; return whether it was the holder."""
        if self.holder is None or self.holder.client != client:
            return False
        self.holder.gone_s = None
        self.holder.name = name
        return True

    def take(self, client: str, name: str, grown_up: bool, now_s: float) -> float:
        """Request the seat. Returns 0.0 if the client now holds it, otherwise the least wait in
        s."""
        wait_s = 0.0 if grown_up or self.holds(client) else self.wait_s(now_s)
        if wait_s <= 0.0:
            self.holder = Holder(client, name, active_s=now_s)
        return wait_s

    def wait_s(self, now_s: float) -> float:
        """Return the time until another client could take the seat, 0.0 if it is free already."""
        if self.holder is None:
            return 0.0
        since_s = self.holder.active_s
        if self.holder.gone_s is not None:
            since_s = min(since_s, self.holder.gone_s)
        return max(0.0, since_s + IDLE_S - now_s)

    def wished(self, client: str, neutral: bool, now_s: float) -> None:
        """Record a wish of the driver; only a wish that is not neutral keeps the seat."""
        if self.holder is not None and self.holder.client == client and not neutral:
            self.holder.active_s = now_s

    def lost(self, client: str, now_s: float) -> None:
        """Record that the client's last socket is closed."""
        if self.holder is not None and self.holder.client == client:
            self.holder.gone_s = now_s

    def release(self, client: str) -> bool:
        """Free the seat; return whether this client held it."""
        if not self.holds(client):
            return False
        self.holder = None
        return True

    def expire(self, now_s: float) -> bool:
        """Free a seat after 10 s without a socket; return whether it was freed."""
        gone_s = self.holder.gone_s if self.holder else None
        if gone_s is None or now_s - gone_s < IDLE_S:
            return False
        self.holder = None
        return True
