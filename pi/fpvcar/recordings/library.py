"""Lists recordings in brief, as the recordings page shows them.

It reads the two ends of a closed file and the chunks with marks in them, the first
chunk of one that is being written, and only one that was never closed whole, once.
"""

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from fpvcar.mcap import parsing, records
from fpvcar.mcap.chunks import CHUNK_MOST, FileSource, Source, good_chunk, inner_records
from fpvcar.mcap.parsing import Damaged, PackageMissing
from fpvcar.mcap.tail import Tail, tail_of
from fpvcar.mcap.walk import Damage, Walk
from fpvcar.recordings import messages, names, reader
from fpvcar.recordings.index import Index, Stamp, stamp_of
from fpvcar.recordings.losses import missing
from fpvcar.recordings.overview import overview_of
from fpvcar.recordings.reader import ReadError
from fpvcar.units import SECOND_NS

WRITING_S = 10.0
"""A file that was written to so lately is still being written."""
ENTRIES_MAX = 10_000
UNSAVED_MOST = 16
"""Files that are looked into before the index is written: the card is spared."""


class Mark(Struct, frozen=True):
    """A moment that somebody wanted to find again. `t` is s from the file's start."""

    t: float
    text: str


class Entry(Struct, frozen=True):
    """One file. state: "closed", "open" (being written) or "damaged"; `lost` then says
    in words what is wrong."""

    name: str
    start_ms: float
    seconds: float
    bytes: int
    state: str
    lost: str = ""
    marks: tuple[Mark, ...] = ()
    pictures: int = 0


def files_in(directory: Path) -> list[Path]:
    """Finds the recordings of a directory. No link counts: it could lead out of it.

    Raises OSError, but for a directory that was not made yet: nothing was recorded.
    """
    with contextlib.suppress(FileNotFoundError), os.scandir(directory) as listing:
        return sorted(directory / one.name for one in listing if _is_recording(one))
    return []


def _is_recording(one: "os.DirEntry[str]") -> bool:
    try:
        one.name.encode()  # what is not UTF-8 cannot be told to a page
        return one.name.endswith((names.SEALED, names.OPEN)) and one.is_file(
            follow_symlinks=False
        )
    except (UnicodeEncodeError, OSError):
        return False


class Page(NamedTuple):
    """Some of the list; are there more before them?"""

    entries: list[Entry]
    more: bool


class Library:
    """The recordings that `files()` names. Blocks: call it from a thread."""

    def __init__(
        self, files: Callable[[], Iterable[Path]],
        clock_s: Callable[[], float] = time.time,
        rest: Callable[[], None] = lambda: None, folder: Path | None = None,
    ) -> None:  # fmt: skip
        """`rest` is called before each file that is looked into; `folder` has an index
        of what was seen (see index.py)."""
        self._files, self._clock_s, self._rest = files, clock_s, rest
        self._known: dict[Path, tuple[Stamp, Entry]] = {}
        self._index = Index(folder, Entry) if folder is not None else None
        self._read, self._unsaved = False, 0

    def path(self, name: str) -> Path | None:
        """Finds the recording of that name; no other file can be asked for.

        One that was sealed a moment ago still answers to the name it had before.
        """
        found = {path.name: path for path in self._files()}
        before = name.removesuffix(names.OPEN) + names.SEALED
        return found.get(name) or found.get(before)

    def writing(self, path: Path) -> bool:
        """Is this file still being written?"""
        try:
            return self._growing(path, path.stat())
        except OSError:
            return False

    def entries(self) -> list[Entry]:
        """Lists all of them, in the order of their names."""
        return self.page().entries

    def page(self, before: str = "", most: int = sys.maxsize) -> Page:
        """Lists the last `most` of those whose names are before `before`; "": of
        all."""
        paths = [one for one in self._files() if not before or one.name < before]
        self._read_index()
        found = [entry for one in paths[-most:] if (entry := self._entry(one))]
        self._write_index()
        return Page(found, len(paths) > most)

    def _growing(self, path: Path, about: os.stat_result) -> bool:
        is_open = path.name.endswith(names.OPEN)
        return is_open and self._clock_s() - about.st_mtime < WRITING_S

    def _entry(self, path: Path) -> Entry | None:
        stamp = Stamp(0, 0, 0)
        try:
            about = path.stat()
            stamp = stamp_of(about)
            if self._growing(path, about):
                return _open_entry(path, stamp)
            known = self._known.get(path)
            if known is None or known[0] != stamp:
                self._rest()
                known = self._known[path] = stamp, entry_of(path)
                self._unsaved += 1
            return known[1]
        except FileNotFoundError:  # the ring took it, or it was closed this moment
            return None
        except (OSError, ReadError, Damaged, PackageMissing) as fault:
            began_ms = stamp.changed_ns / 1e6
            return Entry(path.name, began_ms, 0.0, stamp.size, "damaged", str(fault))

    def _read_index(self) -> None:
        """Reads the index, the first time."""
        if self._index is None or self._read:
            return
        self._read, folder = True, self._index.folder
        for name, known in self._index.read().items():
            self._known.setdefault(folder / name, known)

    def _write_index(self) -> None:
        """Writes the index if enough is new; forgets what is not there any more."""
        if len(self._known) > ENTRIES_MAX or self._unsaved >= UNSAVED_MOST:
            there = set(self._files())
            self._known = {
                path: one for path, one in self._known.items() if path in there
            }
        if self._index is not None and self._unsaved >= UNSAVED_MOST:
            self._unsaved, folder = 0, self._index.folder
            self._index.write({
                path.name: one for path, one in self._known.items()
                if path.parent == folder
            })  # fmt: skip


def entry_of(path: Path) -> Entry:
    """Looks into a file that is not written to any more. Raises ReadError, Damaged,
    OSError."""
    source = FileSource(path)
    try:
        tail = tail_of(source)
        if tail is None:
            return _unclosed_entry(path)
        brief = overview_of(path)
        marks = _marks(_recorded_marks(source, tail), brief.start_ns)
    finally:
        source.close()
    return Entry(
        path.name, brief.start_ns / 1e6, (brief.end_ns - brief.start_ns) / SECOND_NS,
        brief.size, "closed", "", marks, brief.counts.get(messages.CAMERA, 0),
    )  # fmt: skip


def _unclosed_entry(path: Path) -> Entry:
    with reader.read(path) as found:
        marks = _marks(
            ((one.log_ns, one.data) for one in found.messages({messages.MARK})),
            found.start_ns,
        )
        return Entry(
            path.name, found.start_ns / 1e6,
            (found.end_ns - found.start_ns) / SECOND_NS, found.size, "damaged",
            "; ".join(missing(found)), marks, found.counts[messages.CAMERA],
        )  # fmt: skip


def _open_entry(path: Path, stamp: Stamp) -> Entry:
    """A file that is being written: its beginning, and when it was written to last."""
    source, start_ns = FileSource(path), stamp.changed_ns
    try:
        for step in Walk(source, source.size).steps():
            if not isinstance(step, Damage) and step.opcode == records.CHUNK:
                start_ns = parsing.take_chunk(step.body).start_ns
                break
    finally:
        source.close()
    seconds = max(0.0, (stamp.changed_ns - start_ns) / SECOND_NS)
    return Entry(path.name, start_ns / 1e6, seconds, stamp.size, "open", pictures=1)


def _channel_of(message: bytes | memoryview) -> int:
    return int.from_bytes(message[:2], "little")


def _marks(found: Iterable[tuple[int, bytes]], start_ns: int) -> tuple[Mark, ...]:
    marks = []
    for log_ns, data in found:
        try:
            event = messages.decode(messages.MARK, data)
        except messages.FormatError:
            continue
        if isinstance(event, messages.Event):
            marks.append(Mark((log_ns - start_ns) / SECOND_NS, event.text))
    return tuple(marks)


def _recorded_marks(source: Source, tail: Tail) -> Iterable[tuple[int, bytes]]:
    """Yields (log_ns, data) of the messages on /mark, by the summary's index of chunks.

    Raises Damaged, OSError.
    """
    channels = [
        parsing.take_channel(body)
        for opcode, body in tail.records
        if opcode == records.CHANNEL
    ]
    number = next((one.number for one in channels if one.topic == messages.MARK), None)
    for opcode, body in tail.records:
        if opcode != records.CHUNK_INDEX or number is None:
            continue
        fields = parsing.Fields(body)
        fields.take(16)
        at, length = fields.number(8), fields.number(8)
        if number in _indexed(fields) and length <= CHUNK_MOST:
            yield from _messages(source.read(at, length), number)


def _indexed(fields: parsing.Fields) -> set[int]:
    """The channels that have messages in a chunk."""
    inner, found = parsing.Fields(fields.take(fields.number(4))), set()
    while inner.left:
        found.add(inner.number(2))
        inner.take(8)
    return found


def _messages(chunk: bytes, number: int) -> Iterable[tuple[int, bytes]]:
    try:
        inner = good_chunk(chunk[records.HEAD.size :])
    except Damaged:
        return
    for opcode, body in inner_records(inner):
        if opcode == records.MESSAGE and _channel_of(body) == number:
            log_ns = int.from_bytes(body[6:14], "little")
            yield log_ns, bytes(body[records.MESSAGE_FIXED :])
