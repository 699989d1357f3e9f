"""Rotation of recording files: write, seal, start the next one.

    begin -> write, write, ... -> a file every segment_s and after each drive, from a
                                  key frame on
    .part -> summary, synced, renamed: sealed

All calls run on the recorder's thread. After an OSError the current file is abandoned, and `write`
begins another. Times are those of the messages.
"""

import contextlib
import math
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from fpvcar import config
from fpvcar.library import checksums
from fpvcar.recorder.folder import Folder
from fpvcar.recorder.retention import CardFull, Ring
from fpvcar.recorder.writer import Catalogue, EncodedMessage, Writer
from fpvcar.recordings import messages, names
from fpvcar.recordings.names import OPEN, ROLLING
from fpvcar.runtime.units import SECOND_NS

GRACE_NS = 2 * SECOND_NS
"""Time that a full file waits for a key frame before it ends."""
MINUTE_NS = 60 * SECOND_NS
ROLLING_NS = 15 * SECOND_NS
"""Length of a file while recording is off: the last minute is five of them at most."""


def split(
    items: Sequence[EncodedMessage], start_ns: int, length_ns: int
) -> tuple[Sequence[EncodedMessage], Sequence[EncodedMessage]]:
    """Split off the items that no longer belong to a file begun at `start_ns`."""
    for at, item in enumerate(items):
        over_ns = item.log_ns - start_ns - length_ns
        if over_ns >= 0 and (item.key or over_ns >= GRACE_NS):
            return items[:at], items[at:]
    return items, ()


def _named(name: str, suffix: str = names.SEALED) -> str:
    """Return the name of the same file with another suffix."""
    parsed = names.parse(name)
    assert parsed is not None  # created or parsed by this module
    return names.file_name(parsed.recording, parsed.number, suffix)


class RecentFile(NamedTuple):
    """File that may belong to the last minute.

    An unclosed file comes from a run that died, or from a card fault.
    """

    name: str
    end_ns: int
    closed: bool = True


class Rotation:
    """Writer of consecutive recordings in a folder."""

    def __init__(self, folder: Folder, settings: config.Recording, catalogue: Catalogue) -> None:
        self.leftovers: list[str] = []
        """Unclosed files, to be sealed when there is time."""
        self.attended_ns: float = math.inf
        """Last time with a driver, CLOCK_MONOTONIC; inf if unknown, treated as now."""
        self._folder, self._settings, self._catalogue = folder, settings, catalogue
        self._ring = Ring(folder, settings)
        self._about: messages.About | None = None
        self._rolling = False
        self._number = 0
        self._entered = False
        self._file: int | None = None
        self._name = ""
        self._writer: Writer | None = None
        self._sums = checksums.Checksummer()
        self._good = 0
        self._written = False
        self._kept = False
        """True if the open file is to be kept."""
        self._ends_ns: float = math.inf
        """Latest end of the open file, UTC."""
        self._recent: list[RecentFile] = []

    # --- public interface ---

    @property
    def left(self) -> int | None:
        """Return the bytes until a file must be removed, as of the last write."""
        return self._ring.left

    @property
    def offset_ns(self) -> int:
        """Return the offset from CLOCK_MONOTONIC to the UTC of this recording."""
        return 0 if self._about is None else self._about.utc_offset_ns

    def begin(self, about: messages.About, rolling: bool) -> None:
        """Begin another recording without writing data yet.

        With `rolling`, only its last minute is kept. Raises OSError if the previous file could not
        be sealed; the previous recording then continues.
        """
        if self._file is not None:
            self._seal()
        shift_ns = about.utc_offset_ns - self.offset_ns  # change of the clock
        self._recent = [file._replace(end_ns=file.end_ns + shift_ns) for file in self._recent]
        self._about, self._rolling, self._number = about, rolling, 0

    def write(self, items: Sequence[EncodedMessage]) -> None:
        """Append at least one message and sync.

        Raises OSError; the whole chunk is then lost.
        """
        while items:
            if self._file is None:
                self._start(items[0].log_ns)
            writer, file = self._writer, self._file
            assert writer is not None and file is not None  # set by _start
            start_ns = writer.start_ns or items[0].log_ns
            mine, items = split(items, start_ns, self._length_ns(start_ns))
            if mine:
                self._append(file, writer.chunk(mine))
                self._folder.sync(file)
                self._good, self._written = writer.size, True
            if items:
                self._seal()
        self._look_for_room()

    def keep(self, now_ns: int) -> int:
        """Keep the last minute before UTC `now_ns`; return the number of files.

        The open file is part of it and ends at the next key frame. Raises OSError; the call may
        then be repeated.
        """
        if self._recent:
            self.enter(now_ns)
            existing = dict(self._folder.entries())  # files may have been deleted
            self._recent = [file for file in self._recent if file.name in existing]
        to_keep = [file for file in self._recent if file.end_ns >= now_ns - MINUTE_NS]
        for file in to_keep:
            final = _named(file.name) if file.closed else _named(file.name, OPEN)
            self._folder.touch(_named(file.name) + names.KEPT)
            if file.name != final:
                self._folder.rename(file.name, final)
            if not file.closed:
                self.leftovers.append(final)
            self._recent.remove(file)
        kept = len(to_keep)
        if self._file is not None and not self._kept:
            self._folder.touch(_named(self._name) + names.KEPT)
            if self._name.endswith(ROLLING):
                self._folder.rename(self._name, _named(self._name, OPEN))
                self._name = _named(self._name, OPEN)
            self._kept = True
            self.end_soon(now_ns)
            kept += 1
        return kept

    def end_soon(self, now_ns: int) -> None:
        """End the open file at the next key frame after UTC `now_ns`."""
        self._ends_ns = min(self._ends_ns, now_ns)

    def close(self) -> None:
        """Seal the open file, remove rolling files, release the folder. Raises OSError."""
        try:
            if self._file is not None:
                self._seal()
            for file in self._recent:
                if file.name.endswith(ROLLING) and self._entered:
                    self._folder.remove(file.name)
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Release all files after a fault. Never raises."""
        file, writer, self._file, self._writer = self._file, self._writer, None, None
        if file is not None:
            with contextlib.suppress(OSError):
                self._folder.shorten(file, self._good)  # a partial chunk is useless
            with contextlib.suppress(OSError):
                self._folder.close(file)
            if writer is None or not self._written:
                with contextlib.suppress(OSError):
                    self._folder.remove(self._name)
            elif not self._kept:
                self._recent.append(RecentFile(self._name, writer.end_ns, closed=False))
        self._entered, self.leftovers = False, []
        with contextlib.suppress(OSError):
            self._folder.leave()

    def enter(self, now_ns: int) -> None:
        """Lock the folder if necessary, and list unclosed files of a previous run in `leftovers`.

        Its rolling files count as the last minute, so they can be kept until they are older. Raises
        OSError.
        """
        if self._entered:
            return
        self._folder.enter()
        self._entered = True
        file_names = sorted(text for text, _ in self._folder.entries())
        self._recent = [file for file in self._recent if file.name in file_names]
        recent = {file.name for file in self._recent}
        for text in file_names:
            name = names.parse(text)
            if name is None:
                continue
            if name.suffix == OPEN:
                self.leftovers.append(text)
            elif name.suffix == ROLLING and text not in recent:
                self._recent.append(RecentFile(text, now_ns, closed=False))

    # --- one file ---

    def _length_ns(self, start_ns: int) -> int:
        """Return the length of a file that began at `start_ns`."""
        length_ns = int(self._settings.segment_s * SECOND_NS)
        if self._rolling:
            length_ns = ROLLING_NS
        return int(min(length_ns, self._ends_ns - start_ns))

    def _start(self, now_ns: int) -> None:
        assert self._about is not None  # `begin` was called before
        self.enter(now_ns)
        self._make_room()
        suffix = ROLLING if self._rolling else OPEN
        self._number = self._last_number() + 1
        name = names.file_name(self._about.recording, self._number, suffix)
        for end in names.BESIDE:  # of a removed file with the same name
            self._folder.remove(_named(name) + end)
        file = self._folder.create(name)
        self._file, self._name, self._good, self._written = file, name, 0, False
        self._kept, self._ends_ns = False, math.inf
        about = msgspec.structs.replace(self._about, segment=self._number)
        self._writer = Writer(self._catalogue, about)
        self._sums = checksums.Checksummer()
        self._append(file, [self._writer.begin()])
        self._good = self._writer.size

    def _last_number(self) -> int:
        """Return the highest number of this recording in the folder, with any suffix.

        Two recordings may begin in the same second.
        """
        assert self._about is not None
        recording, last = self._about.recording, self._number
        for text, _ in self._folder.entries():
            name = names.parse(text)
            if name is not None and name.recording == recording:
                last = max(last, name.number)
        return last

    def _seal(self) -> None:
        writer, file = self._writer, self._file
        assert writer is not None and file is not None
        self._append(file, [writer.end()])
        self._folder.sync(file)
        self._file = self._writer = None
        self._folder.close(file)
        name = self._name
        if name.endswith(OPEN):
            name = _named(name)
            self._folder.rename(self._name, name)
        if not self._kept:
            self._recent.append(RecentFile(name, writer.end_ns))
        self._forget_old(writer.end_ns)
        if name.endswith(names.SEALED):
            self._note_parked(name, writer.start_ns)
            with contextlib.suppress(OSError):  # if missing, checksums are computed on demand
                self._folder.write(name + names.SUMS, checksums.encoded(self._sums.sums()))

    def _append(self, file: int, parts: Sequence[bytes]) -> None:
        self._folder.append(file, parts)
        for part in parts:
            self._sums.add(part)

    def _note_parked(self, name: str, start_ns: int) -> None:
        """Mark a file without a driver as parked. If that fails, the file counts as a drive."""
        with contextlib.suppress(OSError):
            if self.attended_ns + self.offset_ns < start_ns:
                self._folder.touch(name + names.PARKED)
            else:  # a file of that name may have been removed without its mark
                self._folder.remove(name + names.PARKED)

    def _forget_old(self, now_ns: int) -> None:
        """Remove rolling files older than a minute; drop sealed ones from the list."""
        remaining = []
        for file in self._recent:
            if file.end_ns >= now_ns - MINUTE_NS:
                remaining.append(file)
            elif file.name.endswith(ROLLING):
                self._folder.remove(file.name)
        self._recent = remaining

    # --- disk space ---

    def _look_for_room(self) -> None:
        if self._ring.enough(self._good):
            return
        try:
            self._make_room()
        except CardFull:
            self._seal()  # the written data is complete
            raise

    def _make_room(self) -> None:
        assert self._about is not None  # `begin` was called before
        opened = (self._name, self._good) if self._file is not None else ("", 0)
        recent = {file.name for file in self._recent}
        self._ring.make_room(self._about.recording, opened, recent)
