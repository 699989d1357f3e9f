"""/ws/video: one sender per viewer; a unit is sent only if the viewer's link has room.

    camera -> stream.publish -> Viewer.offer -> Sender.look -> kernel -> browser
                                                            -> /ws/copies, if open

The kernel has no event for free room (video_link.py): while a unit is queued, the sender polls
every POLL_S.
"""

import asyncio
import logging
import time
from collections.abc import Callable

from aiohttp import WSCloseCode, WSMessage, WSMsgType, web

from fpvcar.http.limits import TokenBucket
from fpvcar.http.text_session import CLOSE_S, open_socket
from fpvcar.seat.video_link import Link, UndeliveredUnits, ViewerConnection
from fpvcar.video.bitrate import Precedence
from fpvcar.video.packet_loss import LossMeter
from fpvcar.video.stream import DRIVER_AGAIN_S, Frame, Stream, Viewer
from fpvcar.wire import up
from fpvcar.wire.errors import WireError
from fpvcar.wire.video import parse_fps

TEXT_MAX_BYTES = 4096
KEYS_PER_S, KEYS_BURST, KEYS_ABUSE = 5.0, 5.0, 50
REPORT_S = 0.1
POLL_S = 0.005
POLL_DRIVER_MOST_S, POLL_MOST_S = 0.01, 0.05
"""Longest poll intervals. Polling slows down during a stall, so that a dead viewer costs no
time."""
NO_PROGRESS_S = 10.0
HEARTBEAT_S = 10.0
LOSSY = 0.01
"""Share of lost packets in the last seconds from which duplicated units are made smaller."""
QUEUED_S, ALONE_S = 0.06, 3.0
"""Excess round-trip time that indicates a full queue, and the time without copies after it.

If both connections exceed the least round trip by so much, their packets stand in a queue that
loses packets because it is full. Copies would fill it more, so they pause for a while. A single
slow connection does not count: its least round trip may date from a time with a shorter path.
"""
STRAINED_S = 0.05
"""Seconds without room for a unit of the large picture until the small picture pauses."""
EXPECTED = 'expected "key", "fps N" or a hello'
log = logging.getLogger("fpvcar.video")


class Sender:
    """Video sender of one viewer, run by each new unit and by a timer, within the link's capacity.

    It uses no task: a unit is passed to the kernel in the same callback in which it arrived.
    """

    def __init__(
        self,
        link: Link,
        viewer: Viewer,
        stream: Stream,
        tell_lost: Callable[[float | None], None],
        large: Callable[[], "Sender | None"] = lambda: None,
    ) -> None:
        """Create a sender. For the small picture `large()` returns the sender of the page's large
        picture, otherwise None."""
        self._viewer, self._stream = viewer, stream
        self._large, self._precedence, self._pauses = large, Precedence(), False
        self._losses, self._tell_lost = LossMeter(), tell_lost
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        now_s = time.monotonic()
        self._first = ViewerConnection(link, now_s)
        self._copies: ViewerConnection | None = None
        self._undelivered = UndeliveredUnits()
        self._queued_s = float("-inf")
        self._blocked_s: float | None = None
        self._reported_s, self._reported_dropped = now_s, 0
        viewer.wake = self.look

    def copy_to(self, link: Link) -> None:
        """Duplicate each unit on this connection from now on; abort an older copy connection.

        Under packet loss the first copy to arrive is rarely late: with 10 of 100 packets lost and 8
        kB per unit, 99 of 100 units arrived within 28 to 41 ms instead of 92 to 128 ms. Alternating
        between the connections, or using the second one once the first stalls, took 91 to 152 ms.
        """
        self._end_copies()
        self._copies = ViewerConnection(link, time.monotonic())

    def copy_no_more(self, link: Link) -> None:
        """Stop using this copy connection after it has closed."""
        if self._copies is not None and self._copies.link is link:
            self._copies = None

    def _end_copies(self) -> None:
        if self._copies is not None:
            self._copies.link.abort()
            self._copies = None

    def close(self) -> None:
        """Stop polling, and abort the copy connection."""
        self._viewer.wake = lambda: None
        if self._timer is not None:
            self._timer.cancel()
        self._end_copies()

    def look(self) -> None:
        """Send the units for which the link has room. A fault ends this connection only."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        try:
            pause_s = self._look()
        except Exception as fault:
            self._first.link.abort()
            self.close()
            if not isinstance(fault, OSError):  # OSError: the connection is gone
                log.error("viewer's sender failed", exc_info=fault)
            return
        if pause_s is not None:
            self._timer = self._loop.call_later(pause_s, self.look)

    def strained(self, now_s: float) -> bool:
        """Return whether the link limits this picture: a unit waits, or the driver's bitrate is
        lowered."""
        waits = self._blocked_s is not None and now_s - self._blocked_s >= STRAINED_S
        return waits or (self._viewer.is_driver() and self._stream.bitrate.lowered)

    def _look(self) -> float | None:
        """Send units and return the delay of the next poll in seconds; None to wait for a new
        unit."""
        while True:
            now_s = time.monotonic()
            self._first.update(now_s)
            if now_s - self._first.meter.progress_s >= NO_PROGRESS_S:
                log.info("viewer closed: it read nothing for %.0f s", NO_PROGRESS_S)
                raise ConnectionAbortedError
            copies = self._copies and self._update_copies(self._copies, now_s)
            large = self._large()
            strained = large is not None and large.strained(now_s)
            self._pauses = large is not None and self._precedence.yields(now_s, strained)
            room = self._first.room or (copies is not None and copies.room)
            if room or not self._viewer.wants:
                self._blocked_s = None
            elif self._blocked_s is None:
                self._blocked_s = now_s
            if now_s - self._reported_s >= REPORT_S:
                self._report(now_s, copies)
            if now_s >= self._losses.due_s:
                self._losses.sample(now_s, *self._first.link.packets())
                self._tell_lost(self._losses.share)
            if self._pauses:
                return self._pause_s(now_s, self._viewer.wants, False)
            if copies is None:
                frame, lagging = self._viewer.next(room, now_s), False
                if frame is not None:
                    self._first.send(now_s, frame.framed)
            else:
                frame, lagging = self._send_twice([self._first, copies], now_s)
            wants = self._viewer.wants
            if frame is None or not wants:
                pause_s = self._pause_s(now_s, wants, room and frame is None)
                return min(pause_s or POLL_S, POLL_S) if lagging else pause_s

    def _send_twice(
        self, connections: list[ViewerConnection], now_s: float
    ) -> tuple[Frame | None, bool]:
        """Send the next unit on each connection with room; return it, and whether one of them
        lacks a unit."""
        lagging = self._catch_up(connections, now_s)
        connections = [connection for connection in connections if connection.room]
        frame = self._viewer.next(bool(connections), now_s)
        if frame is not None:
            number, lagging = self._undelivered.add(frame), len(connections) < 2
            for connection in connections:
                connection.send(now_s, frame.framed, number)
        return frame, lagging

    def _catch_up(self, connections: list[ViewerConnection], now_s: float) -> bool:
        """Send on each connection with room the oldest unit that only the other one has sent.

        Units that have arrived are skipped. Returns whether more such units remain.
        """
        self._undelivered.forget(connections)
        lagging = False
        for connection in connections:
            unit = self._undelivered.next_for(connection)
            if unit is not None and connection.room:
                number, frame = unit
                connection.send(now_s, frame.framed, number)
                unit = self._undelivered.next_for(connection)
            lagging = lagging or unit is not None
        return lagging

    def _update_copies(self, copies: ViewerConnection, now_s: float) -> ViewerConnection | None:
        """Return the second connection if it is open and useful; its faults do not affect the
        viewer."""
        try:
            copies.update(now_s)
        except OSError:  # it is gone
            self._copies = None
        else:
            stalled = now_s - copies.meter.progress_s >= NO_PROGRESS_S
            if stalled or copies.link.closing:
                self._end_copies()
            if min(self._first.queue_s, copies.queue_s) >= QUEUED_S:
                self._queued_s = now_s
        return None if now_s - self._queued_s < ALONE_S else self._copies

    def _report(self, now_s: float, copies: ViewerConnection | None) -> None:
        dropped = self._viewer.dropped - self._reported_dropped
        self._reported_s, self._reported_dropped = now_s, self._viewer.dropped
        settled = self._first.meter.settled(now_s)
        if self._pauses or not (settled and self._viewer.is_driver()):
            return
        blocked_s = 0.0 if self._blocked_s is None else now_s - self._blocked_s
        divisor = 1 if self._large() is None else self._stream.small_divisor
        report = self._first.meter.report(blocked_s, dropped)._replace(divisor=divisor)
        if copies is not None:
            copies_report = copies.meter.report(blocked_s, dropped)
            lossy = self._losses.recent >= LOSSY
            divisor *= 2 if lossy else 1
            report = max(report, copies_report)._replace(divisor=divisor)
        self._stream.report(self._viewer, report)

    def _pause_s(self, now_s: float, wants: bool, room: bool) -> float | None:
        """Return the delay of the next poll in seconds; None to wait for a new unit."""
        stall_s = now_s - self._first.meter.progress_s
        measured = self._first.unacked and (wants or not self._stream.bitrate.at_most)
        if measured and self._viewer.is_driver():
            return min(POLL_DRIVER_MOST_S, max(POLL_S, stall_s / 8))
        if not wants:
            return None
        if room:  # the key frame was requested; repeat the request if it does not arrive
            return DRIVER_AGAIN_S
        return min(POLL_MOST_S, max(POLL_S, stall_s / 8))


async def serve_viewer(
    request: web.Request,
    stream: Stream,
    *,
    greet: Callable[[str], str | None],
    is_driver: Callable[[], bool],
    tell_lost: Callable[[float | None], None],
    senders: dict[str, Sender],
    large: Callable[[], Sender | None] = lambda: None,
) -> web.WebSocketResponse:
    """Run one /ws/video socket until it ends. See wire/video.py for its messages.

    The id in the URL is no secret. The socket belongs to the page after a hello: `greet` takes its
    client id and returns why it is refused, or None; then `senders` holds the sender under the id
    in the URL. Of a page's sockets only the newest counts: `is_driver()` returns whether the page
    drives, and `tell_lost` receives the share of lost packets once a second. `large()`
    returns the sender of the page's large picture, None for the large picture itself.
    """
    name = request.query.get("id", "")
    ws = await open_socket(request, TEXT_MAX_BYTES, HEARTBEAT_S)
    if request.transport is None:  # disconnected during the handshake
        return ws
    link, sender = Link(request.transport), None

    def own() -> bool:
        return sender is not None and senders.get(name) is sender

    def hello(client: str) -> str | None:
        refusal = greet(client)
        if refusal is None and sender is not None:
            senders[name] = sender
        return refusal

    def lost(share: float | None) -> None:
        if own():
            tell_lost(share)

    viewer = stream.add_viewer(lambda: own() and is_driver())
    try:
        sender = Sender(link, viewer, stream, lost, large)
        sender.look()
        try:
            refusal = await _listen(ws, viewer, hello)
        finally:
            sender.close()
            if own():
                del senders[name]
    finally:
        stream.remove(viewer)
    if refusal is not None:
        log.info("viewer %s closed: %s", request.remote, refusal[1])
        await _close(ws, link, *refusal)
    return ws


async def _close(ws: web.WebSocketResponse, link: Link, code: int, reason: str) -> None:
    try:
        async with asyncio.timeout(CLOSE_S):
            await ws.close(code=code, message=reason.encode()[:120])
    except TimeoutError:  # it does not read either
        link.abort()


async def _listen(
    ws: web.WebSocketResponse, viewer: Viewer, hello: Callable[[str], str | None]
) -> tuple[int, str] | None:
    """Read until the browser closes; return (code, reason) for a refused frame, None otherwise."""
    meter, ignored = TokenBucket(KEYS_PER_S, KEYS_BURST), 0
    async for message in ws:
        control = message.type in (WSMsgType.PING, WSMsgType.PONG)
        allowed = meter.allow(time.monotonic())
        ignored = 0 if allowed else ignored + 1
        key, fps = message.data == "key", parse_fps(message.data)
        if not (control or key or fps):
            reason = _refusal(message, hello)
            if reason is not None:
                return reason
        if allowed and key:
            viewer.wait_for_key()
        elif allowed and fps:
            viewer.fps_most = fps
        elif allowed and message.type is WSMsgType.PING:
            await ws.pong(message.data)
        if ignored >= KEYS_ABUSE:
            limit = f"expected at most {KEYS_PER_S:.0f} a second"
            return WSCloseCode.POLICY_VIOLATION, f'too many "key" ({limit})'
    return None


def _refusal(message: WSMessage, hello: Callable[[str], str | None]) -> tuple[int, str] | None:
    """Accept a hello; return (code, reason) for other frames."""
    if message.type is not WSMsgType.TEXT:
        return WSCloseCode.UNSUPPORTED_DATA, f"binary frame refused ({EXPECTED})"
    try:
        greeting = up.parse_upward(message.data)
    except WireError:
        greeting = None
    if not isinstance(greeting, up.Hello):
        excerpt = message.data[:20]
        return WSCloseCode.POLICY_VIOLATION, f'"{excerpt}" refused ({EXPECTED})'
    reason = hello(greeting.client)
    return None if reason is None else (WSCloseCode.POLICY_VIOLATION, f"hello refused: {reason}")
