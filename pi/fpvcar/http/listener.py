"""Listener for connections; limits apply before the first byte is read.

    accept -> Places.enter -> plain: aiohttp's protocol
                           -> https: a handshake of TLS_S at most first
    each read: READ_BYTES at most; a plain peer beyond its RateLimit is paused, and its wishes
               delayed by the pause move nothing (FastPath.paced)

asyncio's own acceptor cannot count a TLS handshake, and on EMFILE it retries its whole backlog and
schedules a retry for each connection.
"""

import asyncio
import contextlib
import errno
import logging
import socket
import ssl
import time
from collections.abc import Callable, Hashable
from typing import Any

from fpvcar.http.fast_path import FastPath
from fpvcar.http.limits import Places, RateLimit

BACKLOG = 128
TLS_S = 5.0
AGAIN_S = 0.2
RECEIVE_BYTES = 16384
READ_BYTES = 4096
"""Most bytes per read. asyncio reads 256 kB at once; so many empty fragments would block the
loop."""
STUCK_MS = 15_000
"""Connections end after this time in milliseconds with unread or unacknowledged data."""
LOSSY = (
    (socket.IPPROTO_TCP, 16, 1),  # TCP_THIN_LINEAR_TIMEOUTS, of every kernel
    (socket.IPPROTO_TCP, 45, 20_000),  # TCP_RTO_MIN_US, of Linux 6.15 and later
)
"""Socket options for lossy links (linux/tcp.h).

If few bytes are under way, retransmissions keep a constant pace without exponential back-off, and
start 20 ms after the round-trip time instead of 200 ms.
"""
ANY = frozenset({"", "0.0.0.0", "::"})
"""Hosts that mean all addresses of this computer, IPv4 and IPv6: a phone finds NAME.local by
either."""
NO_SUCH_NETWORK = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})
"""Errors of one address among several: without IPv6, "localhost" is 127.0.0.1 alone."""
log = logging.getLogger("fpvcar.access")


class _Connection(socket.socket):
    """Connection that releases its place when its descriptor is closed.

    asyncio's transports read it by `recv`, below TLS by `recv_into`.
    """

    transport: asyncio.Transport | None = None
    on_close: Callable[[], None] | None = None
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

    def cut(self) -> None:
        """Abort the connection at once, in any state."""
        if self.transport is not None:
            self.transport.abort()
        else:  # in its handshake, or before
            with contextlib.suppress(OSError):
                self.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        super().close()
        on_close, self.on_close = self.on_close, None
        if on_close is not None:
            on_close()


class Listener:
    """Listener on any number of sockets that share the places.

    `protocol` makes aiohttp's handler of one connection.
    """

    def __init__(self, places: Places, protocol: Callable[[], asyncio.BaseProtocol]) -> None:
        self._places, self._protocol = places, protocol
        self._jobs: set[asyncio.Task[None]] = set()
        self._accepting: list[asyncio.Task[None]] = []
        self._was_full = False

    async def open(self, host: str, port: int, context: ssl.SSLContext | None = None) -> None:
        """Listen until `close`. Raises OSError if listening fails."""
        listeners = await asyncio.to_thread(listening, host, port)
        for listener in listeners:
            self._accepting.append(self._start(self._accept_all(listener, context)))

    async def run(self) -> None:
        """Wait until accepting fails on a socket; raise the error."""
        await asyncio.gather(*self._accepting)

    async def close(self) -> None:
        """Stop listening and end connections that are still in a handshake."""
        for job in self._jobs:
            job.cancel()
        await asyncio.gather(*self._jobs, return_exceptions=True)

    def _start(self, job: "asyncio._CoroutineLike[None]") -> "asyncio.Task[None]":
        task = asyncio.create_task(job)
        self._jobs.add(task)
        task.add_done_callback(self._jobs.discard)
        return task

    async def _accept_all(self, listener: socket.socket, context: ssl.SSLContext | None) -> None:
        loop = asyncio.get_running_loop()
        with listener:
            while True:
                try:
                    peer, address = await loop.sock_accept(listener)
                except ConnectionError:
                    continue  # it has disconnected again
                except OSError as fault:  # no descriptor, no memory: others need them
                    log.warning("accept: %s; again in %g s", fault.strerror, AGAIN_S)
                    await asyncio.sleep(AGAIN_S)
                    continue
                self._let_in(peer, str(address[0]), context)
                await asyncio.sleep(0)  # many newcomers must not delay open connections

    def _let_in(self, peer: socket.socket, address: str, context: ssl.SSLContext | None) -> None:
        connection = _Connection(fileno=peer.detach())
        owner = connection_of(connection)
        refusal = self._places.enter(owner, address, connection.cut)
        if refusal is not None:
            self._turn_away(connection, refusal, plain=context is None)
            return
        self._was_full = False
        connection.on_close = lambda: self._places.leave(owner)
        try:
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, STUCK_MS)
        except OSError:  # it has disconnected again
            connection.close()
            return
        for level, option, value in LOSSY:
            with contextlib.suppress(OSError):  # a kernel without it
                connection.setsockopt(level, option, value)
        self._start(self._serve(connection, context))

    async def _serve(self, connection: _Connection, context: ssl.SSLContext | None) -> None:
        loop = asyncio.get_running_loop()
        timeout_s = None if context is None else TLS_S
        try:
            transport, _ = await loop.connect_accepted_socket(
                self._protocol, connection, ssl=context, ssl_handshake_timeout=timeout_s
            )
            connection.transport = transport
            if context is None:  # a paused TLS transport buffers, then delivers all
                connection.read = _paced(transport)
        except OSError:  # no TLS, or too slow, or disconnected; ssl.SSLError is one of these
            connection.close()

    def _turn_away(self, peer: socket.socket, refusal: str, plain: bool) -> None:
        """Refuse a connection; send the reason over plain http if this needs no waiting."""
        if not self._was_full:
            log.warning("connection refused: %s", refusal)
        self._was_full = True
        text = f"{refusal} already (server.max_connections, max_per_address).\n"
        answer = (
            "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\n"
            f"Content-Length: {len(text)}\r\nConnection: close\r\n\r\n{text}"
        )
        with peer, contextlib.suppress(OSError):
            peer.setblocking(False)
            if plain:
                peer.send(answer.encode())


def listening(host: str, port: int) -> list[socket.socket]:
    """Return a listening socket for each address of a host. Raises OSError."""
    found = socket.getaddrinfo(
        None if host in ANY else host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    listeners: list[socket.socket] = []
    absent: OSError | None = None
    for family, _, _, _, address in dict.fromkeys(found):
        try:
            listeners.append(_listening(family, address))
        except OSError as fault:
            reason = f"cannot listen on {host} port {port}: {fault.strerror}"
            absent = OSError(fault.errno, reason)
            if fault.errno not in NO_SUCH_NETWORK:
                break
    if absent is not None and (not listeners or absent.errno not in NO_SUCH_NETWORK):
        for listener in listeners:
            listener.close()
        raise absent
    return listeners


def connection_of(connection: socket.socket | asyncio.BaseTransport) -> Hashable:
    """Return the key of a connection's place: both ends' addresses, equal above and below TLS."""
    if isinstance(connection, asyncio.BaseTransport):
        info = connection.get_extra_info
        return info("peername"), info("sockname")
    try:
        return connection.getpeername(), connection.getsockname()
    except OSError:  # it has disconnected again
        return connection


def _paced(transport: asyncio.Transport) -> Callable[[int], None]:
    """Return a read callback for a connection; it pauses a peer that sends too fast."""
    loop, rate = asyncio.get_running_loop(), RateLimit(time.monotonic())

    def forget() -> None:
        protocol = transport.get_protocol()
        if isinstance(protocol, FastPath):
            protocol.paced()

    def go_on() -> None:
        forget()
        transport.resume_reading()

    def rest(pause_s: float) -> None:
        # If aiohttp itself has paused reading, that suffices, and aiohttp resumes it. Nothing is
        # read in the meantime that could make it pause.
        forget()
        if transport.is_reading():
            transport.pause_reading()
            loop.call_later(pause_s, go_on)

    def read(size: int) -> None:
        pause_s = rate.pause_s(size, time.monotonic())
        if pause_s > 0.0:
            loop.call_soon(rest, pause_s)  # after the protocol has processed these bytes

    return read


def _listening(family: int, address: tuple[Any, ...]) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # inherited; data beyond a peer's rate limit stays at its end
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener
