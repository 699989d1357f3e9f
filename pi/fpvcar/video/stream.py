"""Fan-out of one camera's access units to many viewers. The newest wins. Pure policy.

    camera -> Stream.publish -> Viewer.offer   a short queue per viewer
    video_socket: Viewer.next(room)            when the viewer's link has room

If the camera answers requests for key frames, at most two units wait. A third drops them all, and a
key frame is requested when the link has room again: requested at the drop, it would be stale on
arrival.

A recovery point is a key frame for a viewer that waits for one. For the others it is a unit like
any other: a decoder that starts at an intra refresh shows incomplete pictures for a second or two.

If the camera does not (any plain program, rpicam-vid, many webcams), a drop freezes the picture
until the next GOP. Up to BACKLOG_S of units wait instead. The page decodes them faster than they
were filmed and shows the newest one; a key frame clears the queue. No viewer waits for another.

Key frames cost every viewer's bandwidth. The driver's request is passed on at once. Other viewers'
requests are pooled: at most one in POOL_S, and only if no key frame came in between. Requests of
one viewer count once in WATCHER_AGAIN_S; the next GOP's key is never far away.
"""

import math
import struct
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol

from msgspec import Struct

from fpvcar.runtime.clock import Clock
from fpvcar.video.bitrate import Bitrate, LinkReport
from fpvcar.video.h264 import AccessUnit, is_gradual
from fpvcar.video.keys import KeyRequests
from fpvcar.wire.video import FPS_MOST, VIDEO_HEADER, pack_video_header

WAITING_MAX = 2
"""Queued units of one viewer, if the camera answers requests for key frames."""
BACKLOG_S, BACKLOG_MAX = 1.0, 60
"""Age and number of queued units of one viewer, if the camera does not. No drop within 1 s shows
an older picture than this queue: the alternative is a frozen picture."""
POOL_S = 0.5
FRESH_S = 0.1
"""Age up to which a newest key frame serves as the start for a new viewer."""
DRIVER_AGAIN_S = 0.3
WATCHER_AGAIN_S = 2.0
"""Interval between a watcher's requests for key frames."""
NO_DRIVER_S = 3.0
"""Time without a report of a driver's link after which the full bitrate is set."""
TEXT, BINARY = 0x81, 0x82
"""First byte of a WebSocket frame: FIN, and the opcode of such a message."""


class Source(Protocol):
    """Interface of a camera for requests. Returns False for requests that it cannot send."""

    def request_key(self) -> bool:
        """Request a key frame as soon as possible."""

    def set_bitrate(self, bitrate: int) -> bool:
        """Request another bitrate, in bit/s."""

    def set_fps(self, most: int) -> bool:
        """Request at most so many pictures a second."""


class Frame(Struct, frozen=True):
    """Access unit for every viewer, packed once: a /ws/video message in its WebSocket frame.

    `gradual`: a decoder can start here, but its first pictures are incomplete.
    """

    key: bool
    capture_us: int
    framed: bytes
    gradual: bool = False


def frame_head(size: int, kind: int) -> bytes:
    """Return the head of one unmasked frame, as a server sends it (RFC 6455, 5.2)."""
    if size < 126:
        return struct.pack(">BB", kind, size)
    if size < 1 << 16:
        return struct.pack(">BBH", kind, 126, size)
    return struct.pack(">BBQ", kind, 127, size)


class ViewerStats(NamedTuple):
    """Figures of a viewer: `fps` over the last second; `age_s` of the newest picture when it was
    sent."""

    driver: bool
    fps: int
    frames: int
    bytes: int
    dropped: int
    age_s: float | None


class Viewer:
    """Queued units of one viewer. `wake` is called when `next` may return one."""

    def __init__(self, stream: "Stream", is_driver: Callable[[], bool]) -> None:
        self.is_driver = is_driver
        self._stream, self._keys = stream, stream.keys
        self.wake: Callable[[], None] = lambda: None
        self.needs_key = True
        self.fps_most = FPS_MOST
        """Most pictures a second that the page can show."""
        self._tokens, self._token_us = float(FPS_MOST), 0
        self.frames = self.bytes = self.dropped = 0
        self.asked_s: float | None = None
        self._waiting: deque[Frame] = deque()
        self._sent_s: deque[float] = deque(maxlen=240)
        self._age_s: float | None = None

    @property
    def waiting(self) -> int:
        """Number of units in this viewer's queue."""
        return len(self._waiting)

    @property
    def wants(self) -> bool:
        """Whether the link must be checked: a unit is queued, or a key frame is due."""
        return self.needs_key or bool(self._waiting)

    def offer(self, frame: Frame) -> None:
        """Queue a unit. A whole key frame supersedes the units queued before it."""
        if frame.key and (self.needs_key or not frame.gradual):
            self.dropped += len(self._waiting)
            self._waiting.clear()
            self.needs_key = False
            self._may_ask_again()
        elif self.needs_key or not self._affords(frame):
            self.dropped += 1
            return
        elif self._waiting and self._is_full(frame):
            self.dropped += len(self._waiting) + 1
            self._lose()
            return
        self._waiting.append(frame)
        self.wake()

    def _affords(self, frame: Frame) -> bool:
        """Return whether a watcher's page can show one more unit; else it waits for the next key
        frame, without a request. A driver's page lowers the camera's rate instead."""
        if self.fps_most == FPS_MOST or self.is_driver():
            return True
        passed_s = (frame.capture_us - self._token_us) / 1e6
        self._token_us = frame.capture_us
        self._tokens = min(self._tokens + passed_s * self.fps_most, self.fps_most) - 1.0
        if self._tokens > 0.0:
            return True
        self.needs_key, self.asked_s = True, frame.capture_us / 1e6
        return False

    def _is_full(self, frame: Frame) -> bool:
        if self._keys.answered:
            return len(self._waiting) >= WAITING_MAX
        backlog_s = (frame.capture_us - self._waiting[0].capture_us) / 1e6
        return backlog_s > BACKLOG_S or len(self._waiting) >= BACKLOG_MAX

    def next(self, room: bool, now_s: float) -> Frame | None:
        """Return the unit to send now, if the link has room; otherwise request a key frame if
        due."""
        if not room:
            return None
        if self._waiting:
            frame = self._waiting.popleft()
            self.frames += 1
            self.bytes += len(frame.framed)
            self._sent_s.append(now_s)
            self._age_s = max(0.0, now_s - frame.capture_us / 1e6)
            return frame
        if self.needs_key:
            again_s = DRIVER_AGAIN_S if self.is_driver() else WATCHER_AGAIN_S
            if self.asked_s is None or now_s - self.asked_s >= again_s:
                self.asked_s = now_s
                self._stream.ask_key(self)
        return None

    def wait_for_key(self) -> None:
        """Drop the queue and wait for a key frame, because the viewer's decoder cannot continue."""
        self.dropped += len(self._waiting)
        self._lose()

    def _lose(self) -> None:
        self._waiting.clear()
        self.needs_key = True
        self._may_ask_again()
        self.wake()

    def _may_ask_again(self) -> None:
        """Allow a driver a new request after each key frame, a watcher only after its pause."""
        if self.is_driver():
            self.asked_s = None

    def stats(self, now_s: float) -> ViewerStats:
        """Return the figures for the status page."""
        while self._sent_s and now_s - self._sent_s[0] >= 1.0:
            self._sent_s.popleft()
        return ViewerStats(
            self.is_driver(), len(self._sent_s), self.frames, self.bytes, self.dropped, self._age_s
        )


class Stream:
    """Distributor of the source's units to all viewers. Not thread-safe."""

    def __init__(
        self,
        source: Source,
        most_bitrate: int = 2_000_000,
        clock_s: Clock = time.monotonic,
        small_divisor: int = 1,
    ) -> None:
        """Create a stream; as the driver's small picture it has a part of the bitrate."""
        self._source, self.small_divisor = source, small_divisor
        self.keys = KeyRequests()
        self.viewers: list[Viewer] = []
        self.gone = (0, 0, 0)
        """Frames, bytes and drops of viewers that have left."""
        self.sequence = 0
        self.bitrate = Bitrate(most_bitrate)
        self.fps_wish = self._fps_limit = self._fps = FPS_MOST
        self._clock_s = clock_s
        self._newest: AccessUnit | None = None
        self._pooled = False
        self._asked_s = float("-inf")
        self._reported_s = float("-inf")

    def publish(self, unit: AccessUnit) -> None:
        """Pass a unit to every viewer, the driver first; never waits."""
        now_s = self._clock_s()
        self._newest = unit
        self.sequence += 1
        if self.keys.units is not None:
            self.keys.received(unit.key)
        if self.viewers:
            frame, viewers = self._frame(unit), self.viewers
            if len(viewers) > 1:
                viewers = sorted(viewers, key=lambda viewer: not viewer.is_driver())
            for viewer in viewers:
                viewer.offer(frame)
        if unit.key:
            self._pooled = False
        elif self._pooled and now_s - self._asked_s >= POOL_S:
            self._request_key(now_s)
        if now_s - self._reported_s >= NO_DRIVER_S:
            self._reported_s = math.inf  # until the next report
            self._set_bitrate(self.bitrate.full())
            self._set_fps(FPS_MOST)

    def _frame(self, unit: AccessUnit) -> Frame:
        """Pack the newest unit."""
        data = unit.data
        head = frame_head(VIDEO_HEADER.size + len(data), BINARY)
        header = pack_video_header(unit.key, self.sequence - 1, unit.capture_us, len(data))
        gradual = unit.key and is_gradual(data)
        return Frame(unit.key, unit.capture_us, b"".join((head, header, data)), gradual)

    def add_viewer(self, is_driver: Callable[[], bool]) -> Viewer:
        """Add a viewer that starts at the newest unit if that is a fresh key frame, or requests
        one."""
        viewer = Viewer(self, is_driver)
        now_s, newest = self._clock_s(), self._newest
        self.viewers.append(viewer)
        if newest and newest.key and now_s - newest.capture_us / 1e6 <= FRESH_S:
            viewer.offer(self._frame(newest))
        else:
            viewer.next(True, now_s)
        return viewer

    def remove(self, viewer: Viewer) -> None:
        """Remove a viewer; its figures stay in the totals."""
        self.viewers.remove(viewer)
        frames, sent, dropped = self.gone
        self.gone = (frames + viewer.frames, sent + viewer.bytes, dropped + viewer.dropped)

    def report(self, viewer: Viewer, link: LinkReport) -> None:
        """Process the report of a viewer's link; the driver's sets the bitrate and the rate."""
        if viewer.is_driver():
            self._set_fps(viewer.fps_most)
            self._reported_s = self._clock_s()
            self._set_bitrate(self.bitrate.update(self._reported_s, link))

    def _set_bitrate(self, bitrate: int | None) -> None:
        if bitrate is not None:
            self._source.set_bitrate(bitrate)

    def limit_fps(self, most: int) -> None:
        """Limit the camera's rate, whatever the driver's page requests."""
        self._fps_limit = most
        self._set_fps(self.fps_wish)

    def _set_fps(self, wish: int) -> None:
        self.fps_wish = wish
        if (most := min(wish, self._fps_limit)) != self._fps:
            self._fps = most
            self._source.set_fps(most)

    def ask_key(self, viewer: Viewer) -> None:
        """Request a key frame for a viewer; those of watchers are pooled."""
        now_s = self._clock_s()
        if viewer.is_driver() or now_s - self._asked_s >= POOL_S:
            self._request_key(now_s)
        else:
            self._pooled = True

    def _request_key(self, now_s: float) -> None:
        self._pooled, self._asked_s = False, now_s
        self.keys.requested(self._source.request_key())
