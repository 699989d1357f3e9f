"""Sealing of files that a previous run left open, and clean files for `log recover`."""

import contextlib
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from fpvcar.recordings import names
from fpvcar.recordings.mcap.chunks import Source
from fpvcar.recordings.mcap.tail import tail_of
from fpvcar.recordings.mcap.walk import Walk
from fpvcar.recordings.reader import Recording
from fpvcar.recordings.repair.recover import Ending, rewritten
from fpvcar.runtime import files
from fpvcar.runtime.clock import ClockNs

SLICE_NS = 100_000_000
"""Time limit of one sealing step: the current recording must be synced in time."""
AGAIN_MOST = 3
"""Maximum restarts of a file after card faults."""
Seal = Callable[[str], Iterator[None]]
"""Seal the named file in small steps; raise an exception if that is impossible."""
log = logging.getLogger("fpvcar.recorder")


def write_clean(recording: Recording, target: Path) -> int:
    """Write a synced, complete clean file and return its size; on failure, write no file.

    Raises FileExistsError if `target` exists, OSError otherwise.
    """
    return files.write_whole(target, rewritten(recording), replace=False)


def salvage(folder: Path, name: str) -> Iterator[None]:
    """Seal an unclosed file in small steps. Raises OSError if the file must stay unchanged.

    A file without a single chunk is deleted, unless it is damaged.

    The file is sealed in place, so no minute is copied during the recording of another one. If
    power fails during sealing, the next run repeats it. The loss is the data not synced before the
    power failure: a second at most.
    """
    part = folder / name
    sealed = folder / (name.removesuffix(names.OPEN) + names.SEALED)
    with contextlib.closing(Source(part)) as source:
        if tail_of(source) is None:  # otherwise power failed just before the rename
            ending = Ending()
            if source.size:
                for step in Walk(source, source.size).steps():
                    ending.note(step)
                    yield
            if not (ending.chunks or ending.damaged):
                part.unlink()
                log.info("%s: deleted, it was empty", name)
                return
            if not (ending.chunks and ending.readable):
                raise OSError("no data in it can be read")
            files.refuse_taken(sealed)
            _close(part, ending)
            yield
    files.refuse_taken(sealed)
    os.rename(part, sealed)
    files.sync(folder)
    log.info("%s: sealed, it was left open", name)


def _close(part: Path, ending: Ending) -> None:
    """Truncate a file, append its missing end, and sync."""
    file = os.open(part, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    with os.fdopen(file, "wb") as out:
        out.truncate(ending.cut)
        out.seek(ending.cut)
        out.write(ending.appended())
        out.flush()
        os.fdatasync(out.fileno())


class Salvager:
    """Sealing of one file after the other, in short steps.

    Files that raise an exception are skipped.
    """

    def __init__(self, seal: Seal, now_ns: ClockNs) -> None:
        self._seal, self._now_ns = seal, now_ns
        self._tried: set[str] = set()
        self._dropped: dict[str, int] = {}
        self._name = ""
        self._steps: Iterator[None] | None = None

    def advance(self, leftovers: list[str]) -> None:
        """Work for SLICE_NS plus one step. Never raises.

        Each file is removed from `leftovers` when its sealing begins. Per run, each file is tried
        once, except after `drop`.
        """
        until_ns = self._now_ns() + SLICE_NS
        while self._now_ns() < until_ns:
            try:
                self._steps = self._steps or self._next(leftovers)
                if self._steps is None:
                    return
                next(self._steps)
            except StopIteration:
                self._steps = None
            except Exception as fault:  # a damaged leftover must not stop the recorder
                self._steps = None
                log.warning("%s: left as it is: %s", self._name, fault)

    def drop(self) -> None:
        """Abandon the current file: the folder no longer belongs to this recorder.

        If the file is found again, sealing restarts. The number of restarts is limited, as this
        file may cause the card's fault.
        """
        if self._steps is not None:
            dropped = self._dropped.get(self._name, 0) + 1
            self._dropped[self._name] = dropped
            if dropped <= AGAIN_MOST:
                self._tried.discard(self._name)
        self._steps = None

    def _next(self, leftovers: list[str]) -> Iterator[None] | None:
        while leftovers:
            self._name = leftovers.pop(0)
            if self._name not in self._tried:
                self._tried.add(self._name)
                return self._seal(self._name)
        return None
