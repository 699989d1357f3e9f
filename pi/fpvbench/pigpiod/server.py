"""Shell of the emulator: sockets, the clock and one timer around a Daemon."""

import asyncio
import logging
import socket
import time
from collections import deque
from typing import cast

from fpvbench.pigpiod.daemon import Client, Daemon
from fpvbench.pigpiod.protocol import Cmd, Outcome, Parser, Request, Wait, encode_reply

BACKLOG = 100
UNSENT_MAX = 64 * 1024
"""Unread bytes at which a reader receives no more reports, as with EAGAIN."""
TURN = 50
"""Commands of one client executed in a row."""
log = logging.getLogger("fpvbench.pigpiod")


def clock_us() -> int:
    """Read CLOCK_MONOTONIC in microseconds; its low 32 bits are the tick."""
    return time.monotonic_ns() // 1000


class Server:
    """Listener and owner of the daemon's timer; connections call `after_commands`."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon
        self._timer: asyncio.TimerHandle | None = None
        self._timer_us = 0
        self._connections: set[Connection] = set()

    async def listen(self, host: str, port: int) -> asyncio.Server:
        """Listen for clients. Raises OSError if the address is in use."""
        loop = asyncio.get_running_loop()
        return await loop.create_server(lambda: Connection(self), host, port, backlog=BACKLOG)

    def execute(self, request: Request) -> Outcome:
        """Execute a command that arrived outside of a connection."""
        now_us = clock_us()
        outcome = self.daemon.execute(None, request, now_us)
        self.after_commands(now_us)
        return outcome

    def after_commands(self, now_us: int) -> None:
        """Set the timer to the daemon's next due time."""
        due_us = self.daemon.due_us(now_us)
        if self._timer is not None:
            if due_us is not None and self._timer_us <= due_us:
                return
            self._timer.cancel()
            self._timer = None
        if due_us is not None:
            loop = asyncio.get_running_loop()
            self._timer_us = due_us
            delay_s = max(0, due_us - now_us) / 1e6
            self._timer = loop.call_later(delay_s, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self.daemon.advance(clock_us())
        self.after_commands(clock_us())

    def add(self, connection: "Connection") -> None:
        """Register the connection of a new client."""
        self._connections.add(connection)

    def remove(self, connection: "Connection") -> None:
        """Remove the connection of a client that has disconnected."""
        self._connections.discard(connection)
        now_us = clock_us()
        self.daemon.disconnect(connection.client, now_us)
        self.after_commands(now_us)

    def close(self) -> None:
        """Stop the timer and all connections, then the daemon."""
        if self._timer is not None:
            self._timer.cancel()
        for connection in self._connections:
            connection.abort()
        self.daemon.close(clock_us())


class Connection(asyncio.Protocol):
    """Connection to one client: executes its commands one after the other, replies in order."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._parser = Parser()
        self._queue: deque[Request] = deque()
        self._waiting = self._choked = self._broken = False
        self.client = Client(self._report)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(UNSENT_MAX)
        self._socket = cast(socket.socket, transport.get_extra_info("socket"))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._server.add(self)

    def connection_lost(self, fault: Exception | None) -> None:
        self._queue.clear()
        self._server.remove(self)

    def data_received(self, data: bytes) -> None:
        self._parser.feed(data)
        try:
            self._queue.extend(self._parser.requests())
        except ValueError as fault:
            log.warning("connection closed: %s", fault)
            self._broken = True
        self._work()

    def pause_writing(self) -> None:
        self._choked = True
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._choked = False
        self._work()

    def abort(self) -> None:
        """Drop the client without sending pending replies."""
        self._transport.abort()

    def _work(self) -> None:
        """Execute queued commands, until a command waits or replies pile up.

        A client that floods is limited to TURN commands in a row, so scripts and reports of the
        other clients continue.
        """
        now_us = clock_us()
        for _ in range(TURN):
            if not self._queue or self._waiting or self._choked:
                break
            request = self._queue.popleft()
            now_us = clock_us()
            outcome = self._server.daemon.execute(self.client, request, now_us)
            self._answer(request, outcome)
        self._server.after_commands(now_us)
        if self._transport.is_closing():
            return
        if self._waiting or self._choked:
            self._transport.pause_reading()
        elif self._queue:
            self._transport.pause_reading()
            asyncio.get_running_loop().call_soon(self._work)
        elif self._broken:
            self._transport.close()
        else:
            self._transport.resume_reading()

    def _answer(self, request: Request, outcome: Outcome) -> None:
        if isinstance(outcome, Wait):
            self._waiting = True
            delay_s = max(0, outcome.until_us - clock_us()) / 1e6
            loop = asyncio.get_running_loop()
            loop.call_later(delay_s, self._go_on, request, outcome)
            return
        if request.cmd == Cmd.NOIB:
            # As pigpiod does on a connection that receives reports.
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 0)
        if not self._transport.is_closing():
            self._transport.write(encode_reply(request, outcome))

    def _go_on(self, request: Request, wait: Wait) -> None:
        # Also after the client has disconnected: PROCD must free its slot.
        self._waiting = False
        self._answer(request, wait.finish(max(clock_us(), wait.until_us)))
        if not self._waiting:
            self._work()

    def _report(self, data: bytes) -> bool:
        if self._transport.is_closing():
            return False
        if self._transport.get_write_buffer_size() < UNSENT_MAX:
            self._transport.write(data)
        return True
