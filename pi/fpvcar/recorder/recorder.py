"""Recorder of one car on the event loop: timestamps each message and queues it.

    put, picture -> handover (bounded, never blocks) -> thread

When the card stalls, the queue fills. Pictures are dropped first, up to the next key frame, then
all messages. Both losses are counted and reported.
"""

import contextlib
import logging
from collections.abc import Iterator
from typing import Any

import msgspec

from fpvcar import config
from fpvcar.recorder.encoder import SIZE, BeginCommand, Message, QueuedMessage
from fpvcar.recorder.handover import Handover
from fpvcar.recorder.live import Tap
from fpvcar.recorder.thread import ENDED, Clock, RecorderThread
from fpvcar.recorder.writer import Catalogue, places
from fpvcar.recordings import messages, names
from fpvcar.runtime import clock
from fpvcar.runtime.texts import Phrase, State
from fpvcar.runtime.units import MB, SECOND_NS
from fpvcar.wire.telemetry import Recording

STALLED_S = 2.0
CLOCK_SET_NS = 5 * SECOND_NS
"""A wall-clock change larger than this begins another recording."""
STOP_S = 2.0
FRAME = ("width", "height", "flip", "fov_deg")
"""Settings of the camera on which its intrinsics depend."""
RECORDER_SLOW = Phrase("recorder_slow", "the card has not answered for {seconds} s")
log = logging.getLogger("fpvcar.recorder")


class Recorder:
    """Recorder interface for the loop. Every call except `stop` takes microseconds."""

    def __init__(
        self,
        settings: config.Recording,
        about: messages.About,
        catalogue: Catalogue,
        handover: Handover,
        thread: RecorderThread,
        clock: Clock,
    ) -> None:
        self.on = settings.on
        self.taps = set[Tap]()
        """Readers of a live copy."""
        self._idle = False
        self.begun = 0
        """Number of recordings begun so far."""
        self.offset_ns = 0
        """Offset from CLOCK_MONOTONIC to the UTC of the current recording."""
        self._settings, self._about, self._catalogue = settings, about, catalogue
        self._handover, self._thread, self._clock = handover, thread, clock
        self._frame: dict[str, Any] = {}
        self._sequences = dict.fromkeys(catalogue.numbers, 0)
        self._refused = self._dropped_noted = self._recoveries_noted = 0
        self._to_key, self._full = True, False
        self.began_ns = 0
        """Start of the current recording, CLOCK_MONOTONIC."""
        self._begin()

    def start(self) -> None:
        self._thread.start()

    @property
    def idle(self) -> bool:
        """True if no message is used: not written, not even for a later `keep`, nor read live."""
        return self._idle and not self.taps

    @contextlib.contextmanager
    def tapped(self) -> Iterator[Tap]:
        """Copy all messages to a new tap."""
        tap = Tap(self._catalogue)
        self.taps.add(tap)
        try:
            yield tap
        finally:
            self.taps.discard(tap)

    def introduce(self) -> None:
        """Send the live readers what each chunk of a file begins with: the car, its sensors'
        positions, and its camera's intrinsics."""
        if self.taps:
            about, log_ns = self._begun_about, self._clock.monotonic_ns() + self.offset_ns
            for topic, message in ((messages.ABOUT, about), *places(about)(log_ns)):
                queued = QueuedMessage(self._catalogue.numbers[topic], 0, log_ns, log_ns, message)
                for tap in self.taps:
                    tap.put(queued)

    def stop(self) -> None:
        """Seal the open file. If the card stalls, give up after STOP_S."""
        self._thread.stop(STOP_S)

    # --- recorded messages ---

    def put(self, topic: str, message: Message, at_ns: int | None = None) -> None:
        """Record a message; `at_ns` is the time of the event (CLOCK_MONOTONIC), now if None."""
        if self.idle:
            return
        if at_ns is None:
            at_ns = self._clock.monotonic_ns()
        utc_ns = max(0, at_ns + self.offset_ns)
        self._hand_over(topic, message, utc_ns, utc_ns)

    def picture(self, key: bool, capture_ns: int, unit: bytes) -> None:
        """Record an access unit. If space is short, drop pictures until the next key frame."""
        if self.idle:
            return
        if not self._handover.has_room(len(unit)):
            self._to_key = self._full = True
        elif key:
            self._to_key = self._full = False
        if self._to_key:
            self._sequences[messages.CAMERA] += 1
            self._refused += self._full
            return
        now_ns = self._clock.monotonic_ns() + self.offset_ns
        capture_ns = max(0, capture_ns + self.offset_ns)
        picture = messages.Picture(capture_ns, unit)
        self._hand_over(messages.CAMERA, picture, now_ns, capture_ns, len(unit), key)

    def note(
        self,
        text: str,
        level: int = messages.INFO,
        name: str = messages.RECORDER,
        topic: str = messages.EVENT,
    ) -> None:
        """Record an event or a mark."""
        utc_ns = max(0, self._clock.monotonic_ns() + self.offset_ns)
        self.put(topic, messages.Event(utc_ns, level, text, name))

    def _hand_over(
        self,
        topic: str,
        message: Message,
        log_ns: int,
        publish_ns: int,
        size: int = SIZE,
        key: bool = False,
    ) -> None:
        sequence, number = self._sequences[topic], self._catalogue.numbers[topic]
        queued = QueuedMessage(number, sequence, log_ns, publish_ns, message, size, key)
        for tap in self.taps:
            tap.put(queued)
        if self._idle:
            return
        if self._handover.put(queued):
            self._sequences[topic] = sequence + 1
        else:
            self._refused += 1

    # --- user commands and clock changes ---

    def switch(self, on: bool) -> None:
        """Turn recording on or off. When off, the last minute can still be kept."""
        if on != self.on:
            self.on = on
            self._begin()

    def tune(self, profile: config.Profile) -> None:
        """Begin another recording if the car's profile has changed."""
        self._renew(msgspec.to_builtins(profile))

    def reframe(self, camera: config.Camera) -> None:
        """Begin another recording, if pictures have another size or flip now: the
        camera's intrinsics in a file are those of its pictures."""
        self._frame = {name: getattr(camera, name) for name in FRAME}
        self._renew(self._about.profile)

    def _renew(self, profile: dict[str, Any]) -> None:
        new = {**profile, "camera": {**profile["camera"], **self._frame}}
        if new != self._about.profile:
            self._about = msgspec.structs.replace(self._about, profile=new)
            self._begin()

    def keep(self) -> None:
        """Keep the last minute; the ring will not remove it."""
        self._handover.keep(self._clock.monotonic_ns())

    def rest(self) -> None:
        """Report that the car has stopped: the file ends at the next key frame.

        A base station then receives the drive soon.
        """
        self._handover.rest(self._clock.monotonic_ns())

    def attend(self, now: bool = True) -> None:
        """Report a driver or a mark; the ring spares files of this time.

        With `now` False, there has been no driver yet. Without any call, the ring treats all files
        as drives.
        """
        self._handover.attended_ns = self._clock.monotonic_ns() if now else 0

    def second(self) -> None:
        """Record losses and clock changes. Must be called once a second.

        If the wall clock was set, the current recording keeps its own time and another one begins.
        Another one also begins after the thread has died.
        """
        thread = self._thread
        if thread.dead:
            thread.revive()
            self._begin()
        shift_ns = self._offset_now() - self.offset_ns
        if abs(shift_ns) > CLOCK_SET_NS:
            self.note(f"the clock was set by {shift_ns / SECOND_NS:+.0f} s", messages.WARNING)
            self._begin()
        if thread.state != "ok":
            return
        if thread.recoveries > self._recoveries_noted:
            self._recoveries_noted = thread.recoveries
            text = f"recording resumed after: {thread.recovered_from}"
            self.note(text, messages.WARNING)
        dropped = self.dropped
        if dropped > self._dropped_noted:
            lost, self._dropped_noted = dropped - self._dropped_noted, dropped
            self.note(f"{lost} messages were not recorded", messages.WARNING)

    def _begin(self) -> None:
        self._idle = not (self.on or self._settings.minute)
        self.offset_ns, self.began_ns = self._offset_now(), self._clock.monotonic_ns()
        self._say_if_old((self.began_ns + self.offset_ns) / SECOND_NS)
        name = names.recording_name(self._about.car, self.began_ns + self.offset_ns)
        about = messages.About(
            self._about.car, self._about.version, name, 0, self.offset_ns, self._about.profile
        )
        self._begun_about = about
        self._handover.begin(BeginCommand(about, not self.on, self._idle))
        self.begun += 1
        self._to_key = True

    def _say_if_old(self, utc_s: float) -> None:
        """Log a warning if the clock is wrong, for example in 1970: the ring removes by date."""
        if self._idle or clock.plausible(utc_s):
            return
        log.warning(
            "this recording gets a wrong date, and is among the first to go when room "
            "is needed: bring it home soon (the page Recordings). A new one begins as "
            "soon as the clock is right: %s",
            clock.fault(utc_s),
        )

    def _offset_now(self) -> int:
        return self._clock.utc_ns() - self._clock.monotonic_ns()

    # --- status for pages ---

    @property
    def dropped(self) -> int:
        """Return the number of messages lost because the card did not accept them."""
        return self._refused + self._thread.lost

    def status(self) -> Recording:
        """Return the recorder's status for pages."""
        left_bytes = self._thread.left
        seconds = (self._clock.monotonic_ns() - self.began_ns) / SECOND_NS
        return Recording(
            self.on,
            self._state(),
            seconds,
            left_bytes and left_bytes / MB,
            self._thread.kept,
            self.dropped,
            self._settings.station,
        )

    def _state(self) -> State:
        if self._thread.dead:
            return ENDED
        since_s = self._thread.writing_since_s
        if since_s:
            stalled_s = self._clock.monotonic_ns() / SECOND_NS - since_s
            if stalled_s > STALLED_S:
                return RECORDER_SLOW(seconds=f"{stalled_s:.0f}")
        return self._thread.state
