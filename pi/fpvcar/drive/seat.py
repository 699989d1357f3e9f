"""Who sits at the wheel: one seat, handed over, freed when unused. Pure."""

from dataclasses import dataclass

IDLE_S = 10.0
"""After so long with neutral wishes, or without a socket, the seat is for who asks."""


@dataclass(slots=True)
class Holder:
    """Who has the wheel. `gone_s` is when the socket was lost, None while it lives."""

    client: str
    name: str
    active_s: float
    gone_s: float | None = None


class Seat:
    """The driver's seat. Clients are the pages' session ids."""

    def __init__(self) -> None:
        self.holder: Holder | None = None

    def holds(self, client: str) -> bool:
        """Is it this client who drives?"""
        return self.holder is not None and self.holder.client == client

    def back(self, client: str, name: str) -> bool:
        """A page came (again): the same client gets its own seat back at once."""
        if self.holder is None or self.holder.client != client:
            return False
        self.holder.gone_s = None
        self.holder.name = name
        return True

    def take(self, client: str, name: str, grown_up: bool, now_s: float) -> float:
        """Asks for the seat. 0.0 if it is now theirs; else s to wait at least."""
        wait_s = 0.0 if grown_up or self.holds(client) else self.wait_s(now_s)
        if wait_s <= 0.0:
            self.holder = Holder(client, name, active_s=now_s)
        return wait_s

    def wait_s(self, now_s: float) -> float:
        """How long until somebody else could have the seat, 0.0 if free already."""
        if self.holder is None:
            return 0.0
        since_s = self.holder.active_s
        if self.holder.gone_s is not None:
            since_s = min(since_s, self.holder.gone_s)
        return max(0.0, since_s + IDLE_S - now_s)

    def wished(self, client: str, neutral: bool, now_s: float) -> None:
        """Notes a wish of the driver; only one that is not neutral keeps the seat."""
        if self.holder is not None and self.holder.client == client and not neutral:
            self.holder.active_s = now_s

    def lost(self, client: str, now_s: float) -> None:
        """The client's last socket is gone."""
        if self.holder is not None and self.holder.client == client:
            self.holder.gone_s = now_s

    def release(self, client: str) -> bool:
        """Gives the seat away."""
        if not self.holds(client):
            return False
        self.holder = None
        return True

    def expire(self, now_s: float) -> bool:
        """Frees a seat whose socket has been gone for 10 s; True if it did."""
        gone_s = self.holder.gone_s if self.holder else None
        if gone_s is None or now_s - gone_s < IDLE_S:
            return False
        self.holder = None
        return True
