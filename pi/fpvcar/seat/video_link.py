"""Connection of a viewer, as the kernel reports it: its throughput and free room.

A connection has room if the kernel has taken all written data, and its unacknowledged bytes
(TIOCOUTQ) are below max(8 kB, delivered rate x (least round trip + 50 ms)). Measured on a narrow
link, pictures are then 100-160 ms old instead of 640 ms with small buffers alone. On a far link
(bitrate.FAR_S) the kernel must have sent them, too: where packets are lost TCP sends less than a
round trip's worth, and more would wait in its queue.
"""

import asyncio
import fcntl
import socket
import struct
import termios
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from fpvcar.video.bitrate import QUEUE_LEAST_BYTES, LinkMeter
from fpvcar.video.stream import Frame

SEND_BUFFER_BYTES, SEND_BUFFER_FAR_BYTES = 32768, 212_992
"""Least round trips of some ms need no more than the first; at 240 ms it would hold back 2 Mbit/s.
The second one is Linux's default limit, net.core.wmem_max."""
NOTSENT_LOWAT_BYTES = 16384

# include/uapi/linux/tcp.h, struct tcp_info: tcpi_rtt (u32, us) at byte 68, tcpi_bytes_acked (u64)
# at byte 120, tcpi_notsent_bytes (u32) at byte 144, tcpi_min_rtt (u32, us) at byte 148;
# tcpi_total_retrans (u32) at byte 100, tcpi_data_segs_out (u32) at byte 156, tcpi_dsack_dups (u32)
# at byte 216. Linux 4.19 and later.
TCP_INFO_BYTES = 220
TIMES, PACKETS = struct.Struct("=68xI48xQ16xII"), struct.Struct("=100xI52xI56xI")
OUTSTANDING = struct.Struct("=i")
NO_RTT = 0xFFFFFFFF  # no data was acknowledged yet
TLS_BYTES = 256
"""Most bytes that TLS adds to a unit in its connection's count."""


class LinkState(NamedTuple):
    """Counts of a connection: bytes acknowledged so far, bytes without an acknowledgement, and
    those among them that the kernel has not sent; the least round trip, and the excess of the
    current one."""

    acked: int
    unacked: int
    unsent: int
    rtt_s: float
    queue_s: float


class Link:
    """Kernel state of one connection, with or without TLS."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._socket: socket.socket = transport.get_extra_info("socket")
        self._fd = self._socket.fileno()
        self._due = 0
        self._far = False
        transport.set_write_buffer_limits(high=1, low=0)
        for level, option, value in (
            (socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES),
            (socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, NOTSENT_LOWAT_BYTES),
            (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
        ):
            self._socket.setsockopt(level, option, value)

    def read(self) -> LinkState:
        """Return the kernel's current counts. Raises OSError if the connection is closed."""
        # First: it fails if the connection is closed.
        info = self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES)
        rtt_us, acked, unsent, least_us = TIMES.unpack_from(info)
        answer = fcntl.ioctl(self._fd, termios.TIOCOUTQ, b"\0\0\0\0")
        (unacked,) = OUTSTANDING.unpack(answer)
        if least_us == NO_RTT:
            return LinkState(acked, unacked, unsent, 0.0, 0.0)
        queue_us = max(0, rtt_us - least_us)
        return LinkState(acked, unacked, unsent, least_us / 1e6, queue_us / 1e6)

    def enlarge(self) -> None:
        """Enlarge the send buffer, for the data under way on a far link."""
        if not self._far:
            self._far = True
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_FAR_BYTES)

    def packets(self) -> tuple[int, int]:
        """Return (packets sent so far, packets lost so far).

        Retransmissions that the peer reports as duplicates (DSACK, RFC 2883) do not count: their
        first copies were only late, as those to a busy computer are.
        """
        info = self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES)
        retransmitted, sent, duplicates = PACKETS.unpack_from(info)
        return sent, max(0, retransmitted - duplicates)

    def write(self, taken: int, framed: bytes) -> None:
        """Write a whole WebSocket frame; the kernel has taken `taken` bytes so far.

        This bypasses aiohttp's writer, since that builds a header and a copy for each viewer.
        """
        if self._transport.is_closing():
            raise ConnectionResetError("the viewer has disconnected")
        self._due = taken + len(framed)
        self._transport.write(framed)

    def empty(self, taken: int) -> bool:
        """Return whether the kernel has taken all written data.

        Under TLS the transport's own figure leaves out the bytes still held by the socket below it,
        so the kernel's count decides.
        """
        return taken >= self._due and self._transport.get_write_buffer_size() == 0

    @property
    def closing(self) -> bool:
        """Return whether the connection is ending or has ended."""
        return self._transport.is_closing()

    def abort(self) -> None:
        """Abort the connection and discard its queued data."""
        self._transport.abort()


class ViewerConnection:
    """Connection of a viewer, with its throughput and free room.

    `sent` and `delivered` are the numbers of the newest unit written, and of the newest unit
    acknowledged by the peer. See UndeliveredUnits.
    """

    def __init__(self, link: Link, now_s: float) -> None:
        self.link = link
        self.meter = LinkMeter(now_s, link.read().acked)
        self.unacked = 0
        self.queue_s = 0.0
        self.room = False
        self.sent = self.delivered = 0
        self._taken = 0
        self._ends: deque[tuple[int, int]] = deque()

    def update(self, now_s: float) -> None:
        """Update the figures from the kernel's state."""
        acked, unacked, unsent, rtt_s, self.queue_s = self.link.read()
        self.unacked, self._taken = unacked, acked + unacked
        self.meter.sample(now_s, acked, unacked, rtt_s, self.queue_s)
        while self._ends and self._has_arrived(acked, self._ends[0][1]):
            self.delivered = self._ends.popleft()[0]
        short = unacked < QUEUE_LEAST_BYTES or unacked < self.meter.limit_bytes
        self.room = short and self.link.empty(self._taken)
        if self.meter.far:
            self.link.enlarge()
            self.room = self.room and not unsent

    def _has_arrived(self, acked: int, end: int) -> bool:
        return acked >= end and (not self.unacked or acked >= end + TLS_BYTES)

    def send(self, now_s: float, framed: bytes, number: int = 0) -> None:
        """Write a frame; `number` is its unit's number, used to detect the arrival."""
        if number:
            self.sent = number
            self._ends.append((number, self._taken + len(framed)))
        self.meter.sent(now_s, self.unacked, len(framed))
        self.link.write(self._taken, framed)
        self.unacked += len(framed)
        self.room = False


class UndeliveredUnits:
    """Units that one of two connections has sent and neither has delivered yet.

    A unit is useless without the unit before it. If one connection stalls with a unit for which the
    other had no room, the other sends it too as soon as it has room. Each connection sends units in
    their order, and each unit once.
    """

    def __init__(self) -> None:
        self._units: deque[tuple[int, Frame]] = deque()
        self._count = 0

    def add(self, frame: Frame) -> int:
        """Store the next unit and return its number. A key frame replaces all older units."""
        if frame.key:
            self._units.clear()
        self._count += 1
        self._units.append((self._count, frame))
        return self._count

    def forget(self, connections: Iterable[ViewerConnection]) -> None:
        """Drop the units that have arrived."""
        delivered = max(connection.delivered for connection in connections)
        while self._units and self._units[0][0] <= delivered:
            self._units.popleft()

    def next_for(self, connection: ViewerConnection) -> tuple[int, Frame] | None:
        """Return the oldest unit that a connection has not sent, with its number."""
        return next((unit for unit in self._units if unit[0] > connection.sent), None)
