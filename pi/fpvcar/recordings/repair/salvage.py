"""Seals what a run before left open, and writes the clean file of `log recover`."""

import contextlib
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from fpvcar.mcap.chunks import FileSource
from fpvcar.mcap.tail import tail_of
from fpvcar.mcap.walk import Walk
from fpvcar.recordings import names
from fpvcar.recordings.reader import Recording
from fpvcar.recordings.repair.recover import Ending, rewritten
from fpvcar.runtime import files

SLICE_NS = 100_000_000
"""How long something is sealed at a time: the run of now has to sync."""
AGAIN_MOST = 3
"""How often one that a fault of the card interrupted is begun anew."""
Seal = Callable[[str], Iterator[None]]
"""Seals the file of a name, a little at each step; raises where it cannot."""
log = logging.getLogger("fpvcar.recorder")


def write_clean(recording: Recording, target: Path) -> int:
    """Writes a clean file, synced, whole or not at all; returns its size.

    Raises FileExistsError rather than replace a file, OSError otherwise.
    """
    return files.write_whole(target, rewritten(recording), replace=False)


def salvage(folder: Path, name: str) -> Iterator[None]:
    """Seals a file that was never closed, a little at each step; raises OSError for one
    that stays as it is. Only a file without so much as a chunk goes.

    It is sealed where it stands: no minute is copied while another one is written, and
    if power goes meanwhile, this is done again. What the cut had cost is what had not
    been synced yet: a second at most.
    """
    part = folder / name
    sealed = folder / (name.removesuffix(names.OPEN) + names.SEALED)
    with contextlib.closing(FileSource(part)) as source:
        if tail_of(source) is None:  # else power went before it had its name
            ending = Ending()
            if source.size:
                for one in Walk(source, source.size).steps():
                    ending.note(one)
                    yield
            if not (ending.chunks or ending.damaged):
                part.unlink()
                log.info("%s: goes, nothing had been written to it", name)
                return
            if not (ending.chunks and ending.readable):
                raise OSError("nothing in it can be read")
            files.refuse_taken(sealed)
            _close(part, ending)
            yield
    files.refuse_taken(sealed)
    os.rename(part, sealed)
    files.sync(folder)
    log.info("%s: sealed, it was left open", name)


def _close(part: Path, ending: Ending) -> None:
    """Cuts a file, appends what it lacks, and syncs."""
    file = os.open(part, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    with os.fdopen(file, "wb") as out:
        out.truncate(ending.cut)
        out.seek(ending.cut)
        out.write(ending.appended())
        out.flush()
        os.fdatasync(out.fileno())


class Salvager:
    """Seals one file after the other, for a moment at a time. A file at which anything
    is raised is left alone."""

    def __init__(self, seal: Seal, now_ns: Callable[[], int]) -> None:
        self._seal, self._now_ns = seal, now_ns
        self._tried: set[str] = set()
        self._dropped: dict[str, int] = {}
        self._name = ""
        self._steps: Iterator[None] | None = None

    def some(self, leftovers: list[str]) -> None:
        """Goes on for SLICE_NS and a step; takes off `leftovers` what it begins, and
        none twice in a run but what was dropped. Never raises."""
        until_ns = self._now_ns() + SLICE_NS
        while self._now_ns() < until_ns:
            try:
                self._steps = self._steps or self._next(leftovers)
                if self._steps is None:
                    return
                next(self._steps)
            except StopIteration:
                self._steps = None
            except Exception as fault:  # a leftover stops nobody
                self._steps = None
                log.warning("%s: left as it is: %s", self._name, fault)

    def drop(self) -> None:
        """Lets go of a folder that is not ours any more. What was being sealed may be
        begun anew when it is found again, but not for ever: it may be what the card
        fails at."""
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
