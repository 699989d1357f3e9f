"""The recorder of one car: takes messages on the loop, writes them in a thread.

    loop:   put, picture -> queue (bounded; it never waits)
    thread: every sync_s: queue -> bytes -> tape: one chunk, one fdatasync

When the card stalls the queue fills: pictures are dropped first, up to the next key
frame, then everything; both are counted and told. Whatever the card does is a state in
words and tried again; nothing of it reaches `run`.
"""

import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from fpvcar import config
from fpvcar.recorder.encoder import SIZE, Begin, Encoder, Keep, Message, Noted
from fpvcar.recorder.rotation import Tape
from fpvcar.recorder.writer import Catalogue
from fpvcar.recordings import messages, names
from fpvcar.recordings.salvage import Salvager, Seal
from fpvcar.status import Recording
from fpvcar.threads import Turns
from fpvcar.units import MB, SECOND_NS

VIDEO_MOST, ALL_MOST = 6 * MB, 8 * MB
"""Bytes that may wait for the card: 20 s at 2 Mbit/s."""
AGAIN_S = 2.0
"""After a fault, until the card is tried again."""
STALLED_S = 2.0
CLOCK_SET_NS = 5 * SECOND_NS
"""The wall clock was set by more than this: another recording begins."""
STOP_S = 2.0
ENDED = "the recorder's thread ended by itself"
log = logging.getLogger("fpvcar.recorder")


class Clock(NamedTuple):
    """The two clocks, for tests."""

    monotonic_ns: Callable[[], int] = time.monotonic_ns
    utc_ns: Callable[[], int] = time.time_ns


class Recorder:
    """`put` and its like are called on the loop and cost microseconds.

    `salvage(name)` seals a file that a run before left open, a little at each step.
    """

    def __init__(
        self, settings: config.Recording, about: messages.About, catalogue: Catalogue,
        tape: Tape, salvage: Seal, clock: Clock | None = None,
    ) -> None:  # fmt: skip
        self.on = settings.on
        self.kept = self.begun = 0
        """How often a minute was kept, and a recording began."""
        self._settings, self._about, self._catalogue = settings, about, catalogue
        self._tape, self._clock = tape, clock or Clock()
        self._salvager = Salvager(salvage, self._clock.monotonic_ns)
        self._queue: deque[Noted | Begin | Keep] = deque()
        self._encoder, self._writes = Encoder(), False
        self._sequences = dict.fromkeys(catalogue.numbers, 0)
        # Of each pair one is the loop's, one the thread's: so they need no lock.
        self._put_bytes = self._taken_bytes = 0
        self._refused = self._lost = 0
        self._to_key, self._full = True, False
        self._keep_waits = False
        self._keep_due: Keep | None = None
        self._words, self._writing_s = "ok", 0.0
        self._again_s, self._mended, self._told = 0.0, "", 0
        self._turns = Turns(
            "recorder", self._let_go, self.turn, self._end, settings.sync_s
        )
        self.offset_ns = 0
        self._began_ns = 0
        self._begin()

    # --- on the loop ---

    def start(self) -> None:
        """Starts the thread."""
        self._turns.start()

    def stop(self) -> None:
        """Seals what is open; a card that stalls is left alone after STOP_S."""
        self._turns.stop(STOP_S)

    @property
    def idle(self) -> bool:
        """Nothing is written, not even to be kept later."""
        return not (self.on or self._settings.minute)

    def put(self, topic: str, message: Message, at_ns: int | None = None) -> None:
        """A message that is known now; `at_ns`: when it was so (CLOCK_MONOTONIC)."""
        if self.idle:
            return
        if self._waiting + SIZE > ALL_MOST:
            self._refused += 1
            return
        self._append(topic, self._clock.monotonic_ns(), at_ns, message)

    def picture(self, key: bool, capture_ns: int, unit: bytes) -> None:
        """An access unit. With little room it waits for the next key frame."""
        if self.idle:
            return
        if self._waiting + len(unit) > VIDEO_MOST:
            self._to_key = self._full = True
        elif key:
            self._to_key = self._full = False
        if self._to_key:
            self._sequences[messages.CAMERA] += 1
            self._refused += self._full
            return
        picture = messages.Picture(max(0, capture_ns + self.offset_ns), unit)
        now_ns = self._clock.monotonic_ns()
        self._append(messages.CAMERA, now_ns, capture_ns, picture, len(unit), key)

    def note(
        self, text: str, level: int = messages.INFO, name: str = messages.RECORDER,
        topic: str = messages.EVENT,
    ) -> None:  # fmt: skip
        """An event, or a mark."""
        utc_ns = max(0, self._clock.monotonic_ns() + self.offset_ns)
        self.put(topic, messages.Event(utc_ns, level, text, name))

    def switch(self, on: bool) -> None:
        """Recording on or off; off, the last minute is still there to be kept."""
        if on != self.on:
            self.on = on
            self._begin()

    def keep(self) -> None:
        """The last minute stays, whatever the ring does."""
        if not self._keep_waits:  # else the card hangs, and somebody pushes again
            self._keep_waits = True
            self._queue.append(Keep(self._clock.monotonic_ns()))

    def attend(self, now: bool = True) -> None:
        """Somebody has the wheel, or marks something: the ring spares that. False:
        nobody ever did; without a word everything is spared."""
        self._tape.attended_ns = self._clock.monotonic_ns() if now else 0

    def second(self) -> None:
        """Once a second: says what was lost. If the wall clock was set, this recording
        keeps its own time, and another begins; so it does after a thread that ended."""
        if self._turns.dead:
            log.error("%s; it is started again", ENDED)
            self._words, self._writing_s, self._keep_waits = ENDED, 0.0, False
            self._turns.start()
            self._begin()
        by_ns = self._offset_now() - self.offset_ns
        if abs(by_ns) > CLOCK_SET_NS:
            self.note(
                f"the clock was set by {by_ns / SECOND_NS:+.0f} s", messages.WARNING
            )
            self._begin()
        mended, dropped = self._mended, self.dropped
        if mended and self._words == "ok":
            self._mended = ""
            self.note(f"recording goes on after: {mended}", messages.WARNING)
        if dropped > self._told and self._words == "ok":
            lost, self._told = dropped - self._told, dropped
            self.note(f"{lost} messages were not recorded", messages.WARNING)

    @property
    def dropped(self) -> int:
        """Messages that were not recorded, because the card did not take them."""
        return self._refused + self._lost

    def status(self) -> Recording:
        """What pages show of the recorder."""
        left = self._tape.left
        seconds = (self._clock.monotonic_ns() - self._began_ns) / SECOND_NS
        return Recording(
            self.on, self._state(), seconds, left and left / MB, self.kept,
            self.dropped, self._settings.station,
        )  # fmt: skip

    def _state(self) -> str:
        if self._turns.dead:
            return ENDED
        writing_s = self._writing_s
        if writing_s:
            stalled_s = self._clock.monotonic_ns() / SECOND_NS - writing_s
            if stalled_s > STALLED_S:
                return f"the card has not answered for {stalled_s:.0f} s"
        return self._words

    @property
    def _waiting(self) -> int:
        return self._put_bytes - self._taken_bytes

    def _offset_now(self) -> int:
        return self._clock.utc_ns() - self._clock.monotonic_ns()

    def _begin(self) -> None:
        self.offset_ns, self._began_ns = self._offset_now(), self._clock.monotonic_ns()
        name = names.recording_name(self._about.car, self._began_ns + self.offset_ns)
        about = messages.About(
            self._about.car, self._about.version, name, 0, self.offset_ns,
            self._about.profile,
        )  # fmt: skip
        self._queue.append(Begin(about, not self.on, self.idle))
        self.begun += 1
        self._to_key = True

    def _append(
        self, topic: str, now_ns: int, at_ns: int | None, message: Message,
        size: int = SIZE, key: bool = False,
    ) -> None:  # fmt: skip
        sequence = self._sequences[topic]
        self._sequences[topic] = sequence + 1
        log_ns = max(0, now_ns + self.offset_ns)
        at = log_ns if at_ns is None else max(0, at_ns + self.offset_ns)
        number = self._catalogue.numbers[topic]
        self._put_bytes += size
        self._queue.append(Noted(number, sequence, log_ns, at, message, size, key))

    # --- the thread ---

    def turn(self) -> None:
        """Writes what waits: one chunk, synced; then seals some of what was left open.
        Raises nothing that can be thought of."""
        now_s = self._clock.monotonic_ns() / SECOND_NS
        batch, size = list[Noted | Begin | Keep](), 0
        self._writing_s = now_s
        try:
            self._keep_again()
            for _ in range(len(self._queue)):
                one = self._queue.popleft()
                batch.append(one)
                if isinstance(one, Noted):
                    size += one.size
                elif isinstance(one, Keep):
                    self._keep_waits = False
            self._write(batch, now_s)
            if not self._turns.ending:
                self._salvager.some(self._tape.leftovers)
        except Exception as fault:  # the car drives on, whatever this is
            if isinstance(fault, OSError):
                self._failed(fault.strerror or str(fault), True)
            else:
                self._failed(repr(fault), False)
            self._again_s = now_s + AGAIN_S
        finally:
            self._taken_bytes += size
            self._writing_s = 0.0

    def _write(self, batch: Sequence[Noted | Begin | Keep], now_s: float) -> None:
        noted: list[Noted] = []
        for number, one in enumerate(batch):
            if isinstance(one, Noted):
                noted.append(one)
                continue
            try:
                self._flush(noted, now_s)
                self._command(one)
            except Exception:
                self._let_go()
                self._skip(batch[number:])
                raise
            noted = []
        self._flush(noted, now_s)

    def _skip(self, batch: Sequence[Noted | Begin | Keep]) -> None:
        """After a fault. What was asked for must not be lost with what goes."""
        for one in batch:
            if isinstance(one, Begin):
                self._command(one)  # writes nothing: nothing is open
            elif isinstance(one, Noted):
                self._lost += 1
            else:  # the first one means what came since, too
                self._keep_due = self._keep_due or one

    def _keep_again(self) -> None:
        """A minute that the card did not keep when it was asked to."""
        due, self._keep_due = self._keep_due, None
        if due is not None:
            try:
                self._command(due)
            except OSError:  # whether the card is well is for others to say
                self._keep_due = due

    def _flush(self, noted: list[Noted], now_s: float) -> None:
        if not noted:
            return
        if now_s < self._again_s or not self._writes:
            self._lost += len(noted) if now_s < self._again_s else 0
            return
        written = 0
        try:
            items = self._encoder.items(noted)
            self._tape.write(items)
            written = len(items)
        finally:
            self._lost += len(noted) - written
        if self._words != "ok":
            log.info("recording goes on")
            self._mended, self._words = self._words, "ok"

    def _command(self, one: Begin | Keep) -> None:
        if isinstance(one, Begin):
            self._writes = not one.idle
            self._tape.begin(one.about, one.rolling)
        elif self._tape.keep(one.now_ns + self._tape.offset_ns):
            self.kept += 1

    def _failed(self, words: str, known: bool) -> None:
        if words != self._words:
            log.warning("not recording: %s", words, exc_info=not known)
        self._words = words
        self._let_go()

    def _let_go(self) -> None:
        """Of what a fault, or a thread that ended, left half done."""
        self._salvager.drop()
        self._tape.abandon()

    def _end(self) -> None:
        self._salvager.drop()
        with contextlib.suppress(OSError):
            self._tape.close()
