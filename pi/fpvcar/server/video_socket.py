"""/ws/video: one sender a viewer; a unit goes only when the viewer's link has room.

    camera -> stream.publish -> Viewer.offer -> _Sender.look -> kernel -> browser

Room: the kernel has taken all that was written, and its unacknowledged bytes
(TIOCOUTQ) are below max(8 kB, delivered rate x (least round trip + 50 ms)). There is
no event for that: while a unit waits the kernel is asked every POLL_S. Measured on a
narrow link, pictures are then 100-160 ms old instead of 640 with small buffers alone.
"""

import asyncio
import fcntl
import logging
import socket
import struct
import termios
import time
from collections.abc import Callable

from aiohttp import WSCloseCode, WSMessage, WSMsgType, web

from fpvcar.server.limits import Meter
from fpvcar.video.bitrate import LinkMeter
from fpvcar.video.losses import LossMeter
from fpvcar.video.stream import DRIVER_AGAIN_S, Stream, Viewer

SEND_BUFFER_BYTES = 32768
NOTSENT_LOWAT_BYTES = 16384
TEXT_MAX_BYTES = 4096
CLOSE_S = 1.0
KEYS_PER_S, KEYS_BURST, KEYS_ABUSE = 5.0, 5.0, 50
REPORT_S = 0.1
POLL_S = 0.005
POLL_DRIVER_MOST_S, POLL_MOST_S = 0.01, 0.05
"""The poll slows down with the stall: a dead viewer must cost nothing."""
NO_PROGRESS_S = 10.0
HEARTBEAT_S = 10.0
log = logging.getLogger("fpvcar.video")

# include/uapi/linux/tcp.h, struct tcp_info: tcpi_bytes_acked (u64) at byte 120,
# tcpi_min_rtt (u32, us) at byte 148; tcpi_total_retrans (u32) at byte 100,
# tcpi_data_segs_out (u32) at byte 156. Linux 4.6 and later.
TCP_INFO_BYTES = 160
BYTES_ACKED_AT, MIN_RTT_AT, AGAIN_AT, SENT_AT = 120, 148, 100, 156
NO_RTT = 0xFFFFFFFF  # nothing was acknowledged yet


class Link:
    """The kernel's view of one connection, TLS or not."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._socket: socket.socket = transport.get_extra_info("socket")
        self._due = 0
        transport.set_write_buffer_limits(high=1, low=0)
        for level, option, value in (
            (socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES),
            (socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, NOTSENT_LOWAT_BYTES),
            (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
        ):
            self._socket.setsockopt(level, option, value)

    def read(self) -> tuple[int, int, float]:
        """(bytes acknowledged so far, bytes outstanding, least round trip in s)."""
        info = self._socket.getsockopt(
            socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES
        )
        (acked,) = struct.unpack_from("=Q", info, BYTES_ACKED_AT)
        (rtt_us,) = struct.unpack_from("=I", info, MIN_RTT_AT)
        answer = fcntl.ioctl(self._socket.fileno(), termios.TIOCOUTQ, b"\0" * 4)
        (unacked,) = struct.unpack("=i", answer)
        return acked, unacked, 0.0 if rtt_us == NO_RTT else rtt_us / 1e6

    def packets(self) -> tuple[int, int]:
        """(packets sent so far, how many of these were sent again)."""
        info = self._socket.getsockopt(
            socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES
        )
        (sent,) = struct.unpack_from("=I", info, SENT_AT)
        (again,) = struct.unpack_from("=I", info, AGAIN_AT)
        return sent, again

    def write(self, taken: int, framed: bytes) -> None:
        """Writes a whole WebSocket frame; the kernel has taken `taken` so far.

        Past aiohttp's writer, which makes the header, and a copy, anew for each viewer.
        """
        if self._transport.is_closing():
            raise ConnectionResetError("the viewer has gone")
        self._due = taken + len(framed)
        self._transport.write(framed)

    def empty(self, taken: int) -> bool:
        """Has the kernel taken all that was written?

        Under TLS the transport's own figure leaves out what the socket below it
        still holds, so the kernel's count decides.
        """
        return taken >= self._due and self._transport.get_write_buffer_size() == 0

    def abort(self) -> None:
        """Cuts the connection, whatever waits in it."""
        self._transport.abort()


class _Sender:
    """Sends one viewer what its link can take: when a unit comes, and by its timer.

    No task: a unit goes to the kernel in the very callback in which it came.
    """

    def __init__(
        self, link: Link, viewer: Viewer, stream: Stream,
        tell_lost: Callable[[float | None], None],
    ) -> None:  # fmt: skip
        self._link, self._viewer, self._stream = link, viewer, stream
        self._losses, self._tell_lost = LossMeter(), tell_lost
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        now_s = time.monotonic()
        self._meter = LinkMeter(now_s, link.read()[0])
        self._blocked_s: float | None = None
        self._reported_s, self._reported_dropped = now_s, 0
        viewer.wake = self.look

    def close(self) -> None:
        """Looks no more."""
        self._viewer.wake = lambda: None
        if self._timer is not None:
            self._timer.cancel()

    def look(self) -> None:
        """Sends what there is room for. A fault takes this connection and no other."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        try:
            pause_s = self._look()
        except Exception as fault:
            self._link.abort()
            self.close()
            if not isinstance(fault, OSError):  # OSError: the connection is gone
                log.error("viewer's sender failed", exc_info=fault)
            return
        if pause_s is not None:
            self._timer = self._loop.call_later(pause_s, self.look)

    def _look(self) -> float | None:
        """Returns when to look again."""
        while True:
            now_s = time.monotonic()
            acked, unacked, rtt_s = self._link.read()
            self._meter.sample(now_s, acked, unacked, rtt_s)
            if now_s - self._meter.progress_s >= NO_PROGRESS_S:
                log.info("viewer closed: it read nothing for %.0f s", NO_PROGRESS_S)
                raise ConnectionAbortedError
            room = self._link.empty(acked + unacked)
            room = room and unacked < self._meter.limit_bytes
            self._report(now_s, room)
            if now_s >= self._losses.due_s:
                self._losses.sample(now_s, *self._link.packets())
                self._tell_lost(self._losses.share)
            frame = self._viewer.next(room, now_s)
            if frame is None:
                return self._pause_s(now_s, room, unacked)
            size = len(frame.framed)
            self._meter.sent(now_s, unacked, size)
            self._link.write(acked + unacked, frame.framed)
            if not self._viewer.waiting:
                return self._pause_s(now_s, False, unacked + size)

    def _report(self, now_s: float, room: bool) -> None:
        if room or not self._viewer.wants:
            self._blocked_s = None
        elif self._blocked_s is None:
            self._blocked_s = now_s
        if not (self._meter.settled(now_s) and self._viewer.is_driver()):
            self._reported_dropped = self._viewer.dropped
        elif now_s - self._reported_s >= REPORT_S:
            blocked_s = 0.0 if self._blocked_s is None else now_s - self._blocked_s
            dropped = self._viewer.dropped - self._reported_dropped
            self._reported_s, self._reported_dropped = now_s, self._viewer.dropped
            self._stream.report(self._viewer, self._meter.report(blocked_s, dropped))

    def _pause_s(self, now_s: float, room: bool, unacked: int) -> float | None:
        """When to look at the kernel again; None: only a new unit matters."""
        wants, stall_s = self._viewer.wants, now_s - self._meter.progress_s
        measured = unacked and (wants or not self._stream.bitrate.at_most)
        if measured and self._viewer.is_driver():
            return min(POLL_DRIVER_MOST_S, max(POLL_S, stall_s / 8))
        if not wants:
            return None
        if room:  # the key frame was asked for; ask again if it does not come
            return DRIVER_AGAIN_S
        return min(POLL_MOST_S, max(POLL_S, stall_s / 8))


async def serve_viewer(
    request: web.Request, stream: Stream, is_driver: Callable[[], bool],
    tell_lost: Callable[[float | None], None],
) -> web.WebSocketResponse:  # fmt: skip
    """Runs one /ws/video socket until it ends. See wire/video.py for what passes.

    `tell_lost` hears once a second which share of the packets was sent again.
    """
    ws = web.WebSocketResponse(
        compress=False,
        max_msg_size=TEXT_MAX_BYTES,
        heartbeat=HEARTBEAT_S,
        timeout=CLOSE_S,
        autoping=False,
    )
    await ws.prepare(request)
    if request.transport is None:  # gone meanwhile
        return ws
    link = Link(request.transport)
    viewer = stream.add_viewer(is_driver)
    try:
        sender = _Sender(link, viewer, stream, tell_lost)
        sender.look()
        try:
            refusal = await _listen(ws, viewer)
        finally:
            sender.close()
    finally:
        stream.remove(viewer)
    if refusal is not None:
        code, reason = refusal
        log.info("viewer %s closed: %s", request.remote, reason)
        try:
            async with asyncio.timeout(CLOSE_S):
                await ws.close(code=code, message=reason.encode()[:120])
        except TimeoutError:  # it does not read either
            link.abort()
    return ws


async def _listen(
    ws: web.WebSocketResponse, viewer: Viewer
) -> tuple[int, str] | None:  # fmt: skip
    """Until the browser closes (None) or sends what is refused (code, reason)."""
    meter, ignored = Meter(KEYS_PER_S, KEYS_BURST), 0
    async for message in ws:
        control = message.type in (WSMsgType.PING, WSMsgType.PONG)
        reason = None if control else _refusal(message)
        if reason is not None:
            return reason
        allowed = meter.allow(time.monotonic())
        ignored = 0 if allowed else ignored + 1
        if allowed and not control:
            viewer.lost_place()
        elif allowed and message.type is WSMsgType.PING:
            await ws.pong(message.data)
        if ignored >= KEYS_ABUSE:
            limit = f"expected at most {KEYS_PER_S:.0f} a second"
            return WSCloseCode.POLICY_VIOLATION, f'too many "key" ({limit})'
    return None


def _refusal(message: WSMessage) -> tuple[int, str] | None:
    if message.type is not WSMsgType.TEXT:
        return WSCloseCode.UNSUPPORTED_DATA, 'binary frame refused (expected "key")'
    if message.data != "key":
        shown = message.data[:20]
        return WSCloseCode.POLICY_VIOLATION, f'"{shown}" refused (expected "key")'
    return None
