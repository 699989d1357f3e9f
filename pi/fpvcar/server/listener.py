"""Who gets a connection at all: limits before a byte of it is read.

    accept -> Places.enter -> plain: aiohttp's protocol
                           -> https: the handshake, TLS_S at most, then the same
    each read: READ_BYTES at most; a plain peer beyond its Pace waits for a while

Ours instead of asyncio's own acceptor, which cannot count a TLS handshake, and which
on EMFILE tries its whole backlog again and plans a retry for each.
"""

import asyncio
import contextlib
import errno
import logging
import resource
import socket
import ssl
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from fpvcar.server.access import household_of

KEPT = 16
"""Places beyond the limits for the addresses of those who may drive."""
KNOWN_MAX = 16
BACKLOG = 128
TLS_S = 5.0
AGAIN_S = 0.2
RECEIVE_BYTES = 16384
READ_BYTES = 4096
"""Of asyncio's 256 kB of empty fragments one read would hold the loop up."""
BYTES_PER_S, BYTES_BURST = 65536.0, 524288.0
"""A driver's page sends 3 kB a second; its slip of 5000 messages is 425 kB."""
STUCK_MS = 15_000
"""What a peer leaves unread or unacknowledged for so long ends its connection."""
OWN_DESCRIPTORS = 64
"""Of `run` itself: camera, wheels, pins, loop, page files that are being sent."""
NO_SUCH_NETWORK = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})
"""Of "localhost", say: a machine without IPv6 listens on the other one."""
log = logging.getLogger("fpvcar.door")


class Places:
    """Counts who is inside, in all and from each address. Pure."""

    def __init__(self, most: int, most_per_address: int, kept: int = KEPT) -> None:
        self.most, self.most_per_address, self.kept = most, most_per_address, kept
        self.taken = 0
        self._of: Counter[str] = Counter()
        self._known: dict[str, None] = {}

    def know(self, address: str) -> None:
        """Somebody at this address may drive: the kept places are for it, too."""
        household = household_of(address)
        self._known.pop(household, None)
        self._known[household] = None
        while len(self._known) > KNOWN_MAX:
            del self._known[next(iter(self._known))]

    def enter(self, address: str) -> str | None:
        """Takes a place: None. Or what is full, in words; then nothing was taken."""
        household = household_of(address)
        more = self.kept if household in self._known else 0
        if self._of[household] >= self.most_per_address + more:
            return f"{self.most_per_address} are open from {address}"
        if self.taken >= self.most + more:
            return f"{self.most} are open"
        self._of[household] += 1
        self.taken += 1
        return None

    def leave(self, address: str) -> None:
        """Gives a place back."""
        household = household_of(address)
        self._of[household] -= 1
        self.taken -= 1
        if not self._of[household]:
            del self._of[household]


class Pace:
    """How fast one peer may send, whatever its bytes are. Pure."""

    def __init__(self, now_s: float) -> None:
        self._debt, self._at_s = 0.0, now_s

    def pause_s(self, size: int, now_s: float) -> float:
        """`size` more bytes were read: for how long to read no more."""
        paid = (now_s - self._at_s) * BYTES_PER_S
        self._debt, self._at_s = max(0.0, self._debt - paid) + size, now_s
        return max(0.0, (self._debt - BYTES_BURST) / BYTES_PER_S)


class _Guest(socket.socket):
    """A connection that gives its place back when its descriptor is closed.

    asyncio's transports read it by `recv`, below TLS by `recv_into`.
    """

    left: Callable[[], None] | None = None
    read: Callable[[int], None] | None = None

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        data = super().recv(min(size, READ_BYTES), flags)
        if self.read is not None:
            self.read(len(data))
        return data

    def recv_into(self, buffer: Any, size: int = 0, flags: int = 0, /) -> int:
        taken = super().recv_into(buffer, min(size or READ_BYTES, READ_BYTES), flags)
        if self.read is not None:
            self.read(taken)
        return taken

    def close(self) -> None:
        super().close()
        left, self.left = self.left, None
        if left is not None:
            left()


class Doorway:
    """Accepts on any number of listeners; all share the places.

    `protocol` makes aiohttp's handler of one connection.
    """

    def __init__(
        self, places: Places, protocol: Callable[[], asyncio.BaseProtocol]
    ) -> None:
        self.places, self._protocol = places, protocol
        self._jobs: set[asyncio.Task[None]] = set()
        self._said_full = False

    async def open(
        self, host: str, port: int, context: ssl.SSLContext | None = None
    ) -> None:
        """Listens until `close`. Raises OSError if it cannot."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        absent: OSError | None = None
        listeners = []
        for family, _, _, _, where in dict.fromkeys(found):
            try:
                listeners.append(_listener(family, where))
            except OSError as fault:
                words = f"cannot listen on {host} port {port}: {fault.strerror}"
                absent = OSError(fault.errno, words)
                if fault.errno not in NO_SUCH_NETWORK:
                    raise absent from None
        if absent is not None and not listeners:
            raise absent
        for listener in listeners:
            self._start(self._accept_all(listener, context))

    async def close(self) -> None:
        """Ends the listeners and whoever is still in a handshake."""
        for job in self._jobs:
            job.cancel()
        await asyncio.gather(*self._jobs, return_exceptions=True)

    def _start(self, job: "asyncio._CoroutineLike[None]") -> None:
        task = asyncio.create_task(job)
        self._jobs.add(task)
        task.add_done_callback(self._jobs.discard)

    async def _accept_all(
        self, listener: socket.socket, context: ssl.SSLContext | None
    ) -> None:
        loop = asyncio.get_running_loop()
        with listener:
            while True:
                try:
                    peer, where = await loop.sock_accept(listener)
                except ConnectionError:
                    continue  # it has gone again
                except OSError as fault:  # no descriptor, no memory: others need them
                    log.warning("accept: %s; again in %g s", fault.strerror, AGAIN_S)
                    await asyncio.sleep(AGAIN_S)
                    continue
                self._let_in(peer, str(where[0]), context)
                await asyncio.sleep(0)  # a crowd at the door holds nobody up inside

    def _let_in(
        self, peer: socket.socket, address: str, context: ssl.SSLContext | None
    ) -> None:
        refusal = self.places.enter(address)
        if refusal is not None:
            self._turn_away(peer, refusal, plain=context is None)
            return
        self._said_full = False
        guest = _Guest(fileno=peer.detach())
        guest.left = lambda: self.places.leave(address)
        guest.setblocking(False)
        guest.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, STUCK_MS)
        self._start(self._serve(guest, context))

    async def _serve(self, guest: _Guest, context: ssl.SSLContext | None) -> None:
        loop = asyncio.get_running_loop()
        timeout_s = None if context is None else TLS_S
        try:
            transport, _ = await loop.connect_accepted_socket(
                self._protocol, guest, ssl=context, ssl_handshake_timeout=timeout_s
            )
            if context is None:  # a paused TLS transport reads on, and then all at once
                guest.read = _paced(transport)
        except OSError:  # no TLS, or too slowly, or gone; ssl.SSLError is one of these
            guest.close()

    def _turn_away(self, peer: socket.socket, refusal: str, plain: bool) -> None:
        """Says why if the peer can understand it at once, and never waits."""
        if not self._said_full:
            log.warning("connection refused: %s", refusal)
        self._said_full = True
        words = f"{refusal} already (server.max_connections, max_per_address).\n"
        answer = (
            "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\n"
            f"Content-Length: {len(words)}\r\nConnection: close\r\n\r\n{words}"
        )
        with peer, contextlib.suppress(OSError):
            peer.setblocking(False)
            if plain:
                peer.send(answer.encode())


def _paced(transport: asyncio.Transport) -> Callable[[int], None]:
    """What a connection calls after each read."""
    loop, pace = asyncio.get_running_loop(), Pace(time.monotonic())

    def rest(pause_s: float) -> None:
        # Where aiohttp itself has paused it, that will do, and it resumes by itself;
        # nothing is read in the meantime that could make it pause.
        if transport.is_reading():
            transport.pause_reading()
            loop.call_later(pause_s, transport.resume_reading)

    def read(size: int) -> None:
        pause_s = pace.pause_s(size, time.monotonic())
        if pause_s > 0.0:
            loop.call_soon(rest, pause_s)  # after the protocol has had these bytes

    return read


def _listener(family: int, where: tuple[Any, ...]) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # inherited; what a peer beyond its pace has sent waits at its end
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(where)
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


def places(most: int, most_per_address: int) -> Places:
    """Places for which there are descriptors; the soft limit is raised if need be."""
    wanted = most + KEPT + OWN_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft < wanted:
        most = max(1, soft - KEPT - OWN_DESCRIPTORS)
        log.warning("room for %d connections: RLIMIT_NOFILE is %d", most, soft)
    return Places(most, most_per_address)
