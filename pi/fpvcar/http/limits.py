"""Limits for peers: connections, messages, bytes, log lines.

All functions are pure except `connection_places`, which raises the descriptor limit. Time is an
argument.
"""

import logging
import math
import resource
import time
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import IntEnum

from fpvcar.http.addresses import network_of
from fpvcar.runtime.clock import Clock

RESERVED = 16
"""Extra sockets per kind beyond its limit, for drivers and for hellos."""
NETWORK_SHARES = 2
OWN_DESCRIPTORS = 64
"""Descriptors of `run` itself: camera, wheels, pins, loop, page files being sent."""
BYTES_PER_S, BYTES_BURST = 65536.0, 524288.0
"""Byte rate and burst per peer. A driver's page sends 3 kB a second; an accidental burst of 5000
messages is 425 kB."""
LINES_PER_S, LINES_BURST = 1.0, 10.0
log = logging.getLogger("fpvcar.access")


class TokenBucket:
    """Token bucket: `rate` messages a second, bursts of `burst`."""

    def __init__(self, rate: float, burst: float) -> None:
        self.rate, self.burst = rate, burst
        self._tokens, self._at_s = burst, -math.inf

    def allow(self, now_s: float) -> bool:
        """Take one token; return False if the bucket is empty."""
        earned = (now_s - self._at_s) * self.rate
        self._tokens, self._at_s = min(self.burst, self._tokens + earned), now_s
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True


class RateLimit:
    """Limit on the bytes per second that one peer may send, of any kind."""

    def __init__(self, now_s: float) -> None:
        self._debt, self._at_s = 0.0, now_s

    def pause_s(self, size: int, now_s: float) -> float:
        """Return the seconds to stop reading, after `size` bytes were read."""
        paid = (now_s - self._at_s) * BYTES_PER_S
        self._debt, self._at_s = max(0.0, self._debt - paid) + size, now_s
        return max(0.0, (self._debt - BYTES_BURST) / BYTES_PER_S)


End = Callable[[], None]
"""Function that ends a connection, which has to give way."""


class Rank(IntEnum):
    """Priority of a connection; the lowest rank gives way first if places are short."""

    SILENT = 0
    """Sent no message that is specific to the car's own pages."""
    WATCHES = 1
    DRIVES = 2


@dataclass(slots=True)
class _Place:
    address: str
    network: str
    end: End
    rank: Rank


class Places:
    """Connection limit in total, with a share per address.

    An address is an IPv4 address or an IPv6 /128; an IPv6 /64 has two shares. If all places are
    taken, a newcomer replaces the connection of the lowest rank. Among equals it replaces one from
    the network, then from the address, with the most connections, if these are more than the
    newcomer's own; among those, the oldest. A driver is never replaced, and has `reserved` extra
    places.
    """

    def __init__(self, most: int, most_per_address: int, reserved: int = 0) -> None:
        self.most, self.most_per_address = most, most_per_address
        self.reserved = reserved
        self._held: dict[Hashable, _Place] = {}
        self._of: Counter[str] = Counter()

    @property
    def taken(self) -> int:
        """Number of places that are taken now."""
        return len(self._held)

    def enter(
        self, owner: Hashable, address: str, end: End, rank: Rank = Rank.SILENT
    ) -> str | None:
        """Take a place and return None; or return the limit that is reached.

        `end()` is called when the owner has to give way; its place is free by then.
        """
        newcomer = _Place(address, f"{network_of(address)}/64", end, rank)
        network = newcomer.network
        most = self.most + (self.reserved if rank is Rank.DRIVES else 0)
        if self._of[address] >= self.most_per_address:
            return f"{self.most_per_address} are open from {address}"
        if self._of[network] >= NETWORK_SHARES * self.most_per_address:
            if not self._make_room(newcomer, of_its_network=True):
                return f"{self._of[network]} are open from the network of {address}"
        elif self.taken >= most and not self._make_room(newcomer, of_its_network=False):
            return f"{self.most} are open"
        self._held[owner] = newcomer
        self._of.update((address, network))
        return None

    def _make_room(self, newcomer: _Place, of_its_network: bool) -> bool:
        """End the connection that gives way to the newcomer; return False if all have priority."""
        least: Hashable = None
        lowest: tuple[int, ...] = (Rank.DRIVES,)
        for owner, place in self._held.items():
            if of_its_network and place.network != newcomer.network:
                continue
            key = (place.rank, -self._of[place.network], -self._of[place.address])
            if key < lowest:
                least, lowest = owner, key
        if least is None:
            return False
        place = self._held[least]
        share = "address" if of_its_network else "network"
        theirs, own = (self._of[getattr(candidate, share)] for candidate in (place, newcomer))
        fair = theirs > own + place.rank
        if place.rank >= newcomer.rank and not fair:
            return False
        self.leave(least)
        place.end()
        return True

    def promote(self, owner: Hashable, rank: Rank) -> None:
        """Raise the rank of an owner that has identified itself."""
        if owner in self._held:
            self._held[owner].rank = rank

    def leave(self, owner: Hashable) -> None:
        """Release a place if it is still held."""
        place = self._held.pop(owner, None)
        if place is None:
            return
        for share in (place.address, place.network):
            self._of[share] -= 1
            if not self._of[share]:
                del self._of[share]


class ViewerPlaces:
    """Places at /ws/video, where the URL names a page and only a hello proves it.

    The name is no secret. When all places are taken, the name of a page that may drive
    lets a socket wait for its hello. `RESERVED` sockets may wait; one more ends the
    oldest of the network that has the most of them, so that the newest always waits.
    A socket is known by the function that ends it.
    """

    def __init__(self, most: int) -> None:
        self._places = Places(most, most + RESERVED, RESERVED)
        self._waiting: dict[End, str] = {}

    def enter(self, end: End, address: str, rank: Rank, driver: bool) -> str | None:
        """Admit a socket, or let it wait if it names a `driver`; else return the full limit."""
        full = self._places.enter(end, address, end, rank)
        if full is None or not driver:
            return full
        if len(self._waiting) >= RESERVED:
            ((crowd, _),) = Counter(self._waiting.values()).most_common(1)
            oldest = next(waiting for waiting, network in self._waiting.items() if network == crowd)
            del self._waiting[oldest]
            oldest()
        self._waiting[end] = network_of(address)
        return None

    def admit(self, end: End, address: str, rank: Rank) -> str | None:
        """Give a socket a place by the rank that its hello proved; or return what is full."""
        self.leave(end)
        return self._places.enter(end, address, end, rank)

    def expire(self, end: End, address: str) -> None:
        """Make a watcher of a socket that still waits for its hello; end it if all is full."""
        if end in self._waiting and self.admit(end, address, Rank.WATCHES):
            end()

    def leave(self, end: End) -> None:
        """Give back the place of a socket, if it has one."""
        self._waiting.pop(end, None)
        self._places.leave(end)


def connection_places(most: int, most_per_address: int) -> Places:
    """Create places for as many connections as descriptors allow; raise RLIMIT_NOFILE if
    possible."""
    needed = most + RESERVED + OWN_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft < needed:
        most = max(1, soft - RESERVED - OWN_DESCRIPTORS)
        log.warning("room for %d connections: RLIMIT_NOFILE is %d", most, soft)
    return Places(most, most_per_address)


class LogRateLimit:
    """Log filter that limits repeated lines: ten of a kind pass, then one a second."""

    def __init__(self, clock_s: Clock = time.monotonic) -> None:
        self._clock_s = clock_s
        self._meters: dict[str, TokenBucket] = {}
        self._left_out: Counter[str] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        """Called by `logging`: False drops the record."""
        kind = str(record.msg)
        meter = self._meters.setdefault(kind, TokenBucket(LINES_PER_S, LINES_BURST))
        if not meter.allow(self._clock_s()):
            self._left_out[kind] += 1
            return False
        left_out = self._left_out.pop(kind, 0)
        if left_out:
            record.msg = f"{record.getMessage()} ({left_out} like it left out)"
            record.args = None
        return True
