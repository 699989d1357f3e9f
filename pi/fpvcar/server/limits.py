"""How much of anything a peer may have: connections, messages, bytes, log lines.

All pure but `connection_limit`, which asks for descriptors; time is an argument.
"""

import logging
import resource
import time
from collections import Counter
from collections.abc import Callable

from fpvcar.server.access import network_of

RESERVED = 16
"""Connections beyond the limits for the networks of those who may drive."""
KNOWN_MAX = 16
OWN_DESCRIPTORS = 64
"""Descriptors of `run` itself: camera, wheels, pins, loop, page files being sent."""
BYTES_PER_S, BYTES_BURST = 65536.0, 524288.0
"""A driver's page sends 3 kB a second; its slip of 5000 messages is 425 kB."""
LINES_PER_S, LINES_BURST = 1.0, 10.0
log = logging.getLogger("fpvcar.access")


class Meter:
    """A token bucket: `rate` messages a second, bursts of `burst`."""

    def __init__(self, rate: float, burst: float) -> None:
        self.rate, self.burst = rate, burst
        self._tokens, self._at_s = burst, 0.0

    def allow(self, now_s: float) -> bool:
        """Takes one token; False if there is none."""
        elapsed_s = max(0.0, now_s - self._at_s) if self._at_s else 0.0
        self._at_s = now_s
        self._tokens = min(self.burst, self._tokens + elapsed_s * self.rate)
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True


class RateLimit:
    """How many bytes a second one peer may send, whatever they are."""

    def __init__(self, now_s: float) -> None:
        self._debt, self._at_s = 0.0, now_s

    def pause_s(self, size: int, now_s: float) -> float:
        """How long to read no more, after `size` bytes were read."""
        paid = (now_s - self._at_s) * BYTES_PER_S
        self._debt, self._at_s = max(0.0, self._debt - paid) + size, now_s
        return max(0.0, (self._debt - BYTES_BURST) / BYTES_PER_S)


class ConnectionLimit:
    """Counts who is inside, in all and from each network."""

    def __init__(
        self, most: int, most_per_address: int, reserved: int = RESERVED
    ) -> None:
        self.most, self.most_per_address = most, most_per_address
        self.reserved = reserved
        self.taken = 0
        self._of: Counter[str] = Counter()
        self._known: dict[str, None] = {}

    def know(self, address: str) -> None:
        """Opens the reserved places to the network of somebody who may drive."""
        network = network_of(address)
        self._known.pop(network, None)
        self._known[network] = None
        while len(self._known) > KNOWN_MAX:
            del self._known[next(iter(self._known))]

    def enter(self, address: str) -> str | None:
        """Takes a place and returns None; or says what is full, and takes none."""
        network = network_of(address)
        more = self.reserved if network in self._known else 0
        if self._of[network] >= self.most_per_address + more:
            return f"{self.most_per_address} are open from {address}"
        if self.taken >= self.most + more:
            return f"{self.most} are open"
        self._of[network] += 1
        self.taken += 1
        return None

    def leave(self, address: str) -> None:
        """Gives a place back."""
        network = network_of(address)
        self._of[network] -= 1
        self.taken -= 1
        if not self._of[network]:
            del self._of[network]


def connection_limit(most: int, most_per_address: int) -> ConnectionLimit:
    """A limit that the descriptors suffice for; raises RLIMIT_NOFILE if it can."""
    wanted = most + RESERVED + OWN_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft < wanted:
        most = max(1, soft - RESERVED - OWN_DESCRIPTORS)
        log.warning("room for %d connections: RLIMIT_NOFILE is %d", most, soft)
    return ConnectionLimit(most, most_per_address)


class LogRateLimit(logging.Filter):
    """Thins out lines that a crowd causes: ten alike pass, then one a second."""

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock_s = clock_s
        self._meters: dict[str, Meter] = {}
        self._left_out: Counter[str] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        kind = str(record.msg)
        meter = self._meters.setdefault(kind, Meter(LINES_PER_S, LINES_BURST))
        if not meter.allow(self._clock_s()):
            self._left_out[kind] += 1
            return False
        left_out = self._left_out.pop(kind, 0)
        if left_out:
            record.msg = f"{record.getMessage()} ({left_out} like it left out)"
            record.args = None
        return True
