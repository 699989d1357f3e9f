"""Fall from a high frame rate to STEADY_FPS while heat, load or the driver's link ask for it.

    camera -> FrameRate.take -> once a second: present causes -> FallBack.update
                                -> Stream.limit_fps -> "fps N" to the camera's process
                                -> Camera.lowered_rate -> pages, log

A slow device asks for fewer pictures by itself (web/video/remedy.js:Rate); the lower rate wins.
"""

import logging
from collections.abc import Callable, Collection
from typing import Literal

from fpvcar.config import Camera as CameraConfig
from fpvcar.runtime.texts import Phrase
from fpvcar.video.camera import Camera
from fpvcar.video.h264 import AccessUnit
from fpvcar.video.stream import Stream
from fpvcar.wire.video import FPS_MOST

STEADY_FPS = 30
"""Rate after a fall. Cameras that are set to this rate or a lower one never fall."""
CHECK_S = 1.0
FEW = 0.8
"""Share of the set rate below which pictures count as too few."""
SETTLE_S = 3.0
"""Time after a start, another rate or the first viewer before pictures count."""
SLOW_LINK = 0.5
"""Share of the highest bitrate below which the driver's link counts as slow."""
AGAIN_S, AGAIN_MOST_S = 20.0, 320.0
"""Calm time before the high rate is tried again. It doubles, up to the second value, with each
high rate that lasts for less than that."""

Cause = Literal["heat", "load", "link"]
LASTING_S: dict[Cause, float] = {"heat": 0.0, "load": 4.0, "link": 4.0}
"""Time for which a cause must be present, the most urgent cause first."""
REASONS: dict[Cause, Phrase] = {
    "heat": Phrase("rate_heat", "the processor is hot or slowed down"),
    "load": Phrase(
        "rate_load", "only {count} of {fps} arrived: the car is busy, or a webcam needs more light"
    ),
    "link": Phrase("rate_link", "the driver's link is slow"),
}
LOWERED = Phrase(
    "rate_lowered",
    "{least} instead of {fps} frames per second: {reason}; the car tries {fps} again by itself",
)
KEPT = Phrase(
    "rate_kept",
    "{fps} frames per second are too many: {reason}; this camera cannot change its rate while it "
    "runs, so choose {least}",
)
log = logging.getLogger("fpvcar.camera")


class FallBack:
    """Decision between the high rate and STEADY_FPS. Pure; times in seconds."""

    def __init__(self) -> None:
        self.cause: Cause | None = None
        """Cause of the present fall; None at the high rate."""
        self.again_s = AGAIN_S
        self._since_s: dict[Cause, float] = {}
        self._present_s = self._raised_s = float("-inf")

    def update(self, now_s: float, present: Collection[Cause]) -> None:
        """Process the causes that are present now."""
        since_s = self._since_s
        self._since_s = {name: since_s.get(name, now_s) for name in LASTING_S if name in present}
        lasting = [name for name, s in self._since_s.items() if now_s - s >= LASTING_S[name]]
        if present:
            self._present_s = now_s
        if self.cause is None and lasting:
            failed = now_s - self._raised_s < AGAIN_MOST_S
            self.again_s = min(2.0 * self.again_s, AGAIN_MOST_S) if failed else AGAIN_S
        if lasting and self.cause not in present:  # else the text would alternate
            self.cause = lasting[0]
        elif self.cause is not None and now_s - self._present_s >= self.again_s:
            self.cause, self._raised_s = None, now_s


class FrameRate:
    """Frame rate of a camera, lowered to STEADY_FPS and raised again by itself."""

    def __init__(
        self,
        stream: Stream,
        camera: Camera,
        settings: Callable[[], CameraConfig],
        hot: Callable[[], bool],
    ) -> None:
        """`settings` returns the settings within the camera's limits, `hot` whether the processor
        is hot or slowed down."""
        self._stream, self._camera, self._settings, self._hot = stream, camera, settings, hot
        self._fall = FallBack()
        self._fps = self._began_s = self._same_s = 0.0
        self._units = 0
        self._conditions: tuple[object, ...] = ()
        self._told: tuple[object, ...] = ()

    def take(self, unit: AccessUnit) -> None:
        """Count a unit; set the rate once a second."""
        self._units += 1
        now_s = unit.capture_us / 1e6
        passed_s = now_s - self._began_s
        if passed_s >= CHECK_S:
            counted, self._units, self._began_s = self._units / passed_s, 0, now_s
            self._check(now_s, counted)

    def _check(self, now_s: float, counted: float) -> None:
        settings = self._settings()
        fps = 0.0 if settings.command else settings.fps  # a foreign program has its own rate
        if fps != self._fps:
            self._fps, self._fall = fps, FallBack()
        if fps > STEADY_FPS:
            self._fall.update(now_s, self._causes(now_s, counted, settings.night))
        self._stream.limit_fps(FPS_MOST if self._fall.cause is None else STEADY_FPS)
        self._tell(counted)

    def _causes(self, now_s: float, counted: float, night: bool) -> list[Cause]:
        stream, bitrate = self._stream, self._stream.bitrate
        expected = self._fps if self._fall.cause is None else STEADY_FPS
        conditions = (expected, stream.fps_wish, self._camera.restarts, bool(stream.viewers))
        if conditions != self._conditions:
            self._conditions, self._same_s = conditions, now_s
        settled = now_s - self._same_s >= SETTLE_S
        # a long exposure, a page's wish and a picture without viewers lower the rate, too
        counts = settled and stream.viewers and not night and stream.fps_wish >= expected
        present: dict[Cause, object] = {
            "heat": self._hot(),
            "load": counts and counted < FEW * expected,
            "link": bitrate.lowered and bitrate.wanted < SLOW_LINK * bitrate.most,
        }
        return [cause for cause, holds in present.items() if holds]

    def _tell(self, counted: float) -> None:
        """Set the text for pages if it is another one; log each fall and its end."""
        cause, kept = self._fall.cause, self._camera.keeps_rate
        told = (cause, kept, self._fps)
        if told == self._told:
            return
        self._told, before, text = told, self._camera.lowered_rate, None
        if cause is not None:
            fps = f"{self._fps:g}"
            reason = REASONS[cause](fps=fps, count=f"{counted:.0f}")
            text = (KEPT if kept else LOWERED)(fps=fps, reason=reason, least=STEADY_FPS)
        self._camera.lowered_rate = text
        if text and not before:
            log.warning("%s", text)
        elif before and not text:
            log.info("%g frames per second again", self._fps)
