"""Thread of the recorder: writes the messages queued by the event loop.

    every sync_s: handover -> encoder: bytes -> rotation: one chunk, one fdatasync

Card faults are reported as a state text and the card is retried. No fault reaches `run`.
"""

import contextlib
import logging
import time
from collections.abc import Sequence
from typing import NamedTuple

from fpvcar.recorder.encoder import BeginCommand, Encoder, KeepCommand, QueuedMessage, RestCommand
from fpvcar.recorder.handover import Entry, Handover
from fpvcar.recorder.rotation import Rotation
from fpvcar.recordings.repair.salvage import Salvager, Seal
from fpvcar.runtime.clock import ClockNs
from fpvcar.runtime.texts import VERBATIM, State, Text, os_reason
from fpvcar.runtime.units import SECOND_NS
from fpvcar.runtime.workers import Runner

AGAIN_S = 2.0
"""Back-off after a card fault, in seconds."""
ENDED = Text("recorder_ended", "the recorder's thread ended by itself")
log = logging.getLogger("fpvcar.recorder")


class Clock(NamedTuple):
    """Monotonic and UTC clock, replaced in tests."""

    monotonic_ns: ClockNs = time.monotonic_ns
    utc_ns: ClockNs = time.time_ns


SYSTEM_CLOCK = Clock()


class RecorderThread(Runner):
    """Recorder loop in its thread. The event loop calls `start`, `stop` and `revive`.

    The event loop reads the public fields. It writes them only while the thread is not running.
    """

    def __init__(
        self, handover: Handover, rotation: Rotation, seal: Seal, sync_s: float, clock: Clock
    ) -> None:
        """Take `seal(name)`, which seals a file left open by a previous run in small steps."""
        super().__init__("recorder")
        self._sync_s = sync_s
        self.state: State = "ok"
        self.writing_since_s = 0.0
        """Start time of the current turn; 0 between turns."""
        self.lost = self.kept = 0
        """Number of messages taken but not written, and of minutes kept."""
        self.recoveries = 0
        self.recovered_from: State = "ok"
        """Fault before the last recovery."""
        self._handover, self._rotation = handover, rotation
        self._clock = clock
        self._salvager = Salvager(seal, clock.monotonic_ns)
        self._encoder, self._writes = Encoder(), False
        self._keep_due: KeepCommand | None = None
        self._again_s = 0.0

    @property
    def left(self) -> int | None:
        """Return the bytes until a file must be removed, as of the last write."""
        return self._rotation.left

    def revive(self) -> None:
        """Restart the thread after it died; called on the loop."""
        log.error("%s; it is started again", ENDED)
        self.state, self.writing_since_s = ENDED, 0.0
        self.start()

    def _run(self) -> None:
        """Call `turn` every `sync_s`, and once more at the end."""
        self._let_go()
        self.pause(self._sync_s)
        while not self.ending:
            began_s = time.monotonic()
            self.turn()
            self.pause(self._sync_s - (time.monotonic() - began_s))
        self.turn()
        self._end()

    def turn(self) -> None:
        """Write the queued messages as one synced chunk, then seal some leftovers.

        Catches every Exception.
        """
        now_s, taken = self._clock.monotonic_ns() / SECOND_NS, list[Entry]()
        self.writing_since_s = now_s
        try:
            self._rotation.attended_ns = self._handover.attended_ns
            self._keep_again()
            taken = self._handover.take()
            self._write(taken, now_s)
            if not self.ending:
                self._salvager.advance(self._rotation.leftovers)
        except Exception as fault:  # the car must drive on after any fault
            if isinstance(fault, OSError):
                self._failed(os_reason(fault), True)
            else:
                self._failed(VERBATIM(text=repr(fault)), False)
            self._again_s = now_s + AGAIN_S
        finally:
            self._handover.give_back(taken)
            self.writing_since_s = 0.0

    def _write(self, taken: Sequence[Entry], now_s: float) -> None:
        pending: list[QueuedMessage] = []
        for number, entry in enumerate(taken):
            if isinstance(entry, QueuedMessage):
                pending.append(entry)
                continue
            try:
                self._flush(pending, now_s)
                self._command(entry)
            except Exception:
                self._let_go()
                self._skip(taken[number:])
                raise
            pending = []
        self._flush(pending, now_s)

    def _skip(self, entries: Sequence[Entry]) -> None:
        """Drop messages after a fault, but keep commands."""
        for entry in entries:
            if isinstance(entry, BeginCommand):
                self._command(entry)  # no file is open, so this writes no data
            elif isinstance(entry, QueuedMessage):
                self.lost += 1
            elif isinstance(entry, KeepCommand):  # the first request includes later ones
                self._keep_due = self._keep_due or entry

    def _keep_again(self) -> None:
        """Retry a keep request that failed."""
        due, self._keep_due = self._keep_due, None
        if due is not None:
            try:
                self._command(due)
            except OSError:  # other writes report the card's state
                self._keep_due = due

    def _flush(self, pending: list[QueuedMessage], now_s: float) -> None:
        if not pending:
            return
        if now_s < self._again_s or not self._writes:
            self.lost += len(pending) if now_s < self._again_s else 0
            return
        written = 0
        try:
            items = self._encoder.items(pending)
            self._rotation.write(items)
            written = len(items)
        finally:
            self.lost += len(pending) - written
        if self.state != "ok":
            log.info("recording resumed")
            self.recovered_from, self.state = self.state, "ok"
            self.recoveries += 1

    def _command(self, command: BeginCommand | KeepCommand | RestCommand) -> None:
        if isinstance(command, BeginCommand):
            self._writes = not command.idle
            self._rotation.begin(command.about, command.rolling)
        elif isinstance(command, RestCommand):
            self._rotation.end_soon(command.now_ns + self._rotation.offset_ns)
        elif self._rotation.keep(command.now_ns + self._rotation.offset_ns):
            self.kept += 1

    def _failed(self, reason: Text, expected: bool) -> None:
        if reason != self.state:
            log.warning("not recording: %s", reason, exc_info=not expected)
        self.state = reason
        self._let_go()

    def _let_go(self) -> None:
        """Abandon unfinished work after a fault or the end of the thread."""
        self._salvager.drop()
        self._rotation.abandon()

    def _end(self) -> None:
        self._salvager.drop()
        with contextlib.suppress(OSError):
            self._rotation.close()
