"""List of recording summaries for the recordings page.

For a closed file, only its two ends and the chunks with marks are read. A file that was never
closed is read whole, once. A file that is being written is read again every AGAIN_S.
"""

import contextlib
import os
import sys
import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from fpvcar.library import summaries
from fpvcar.library.index import IndexFile, Stamp, stamp_of
from fpvcar.library.summaries import Entry
from fpvcar.recordings import names
from fpvcar.recordings.mcap.parsing import PackageMissing, RecordError, RecordingError
from fpvcar.runtime import files
from fpvcar.runtime.clock import Clock
from fpvcar.runtime.workers import Rest, no_rest

WRITING_S = 10.0
"""A file modified within this many seconds is still being written."""
AGAIN_S = 5.0
"""Seconds until a file that is being written is read again."""
ENTRIES_MAX = 10_000
UNSAVED_MOST = 16
"""Scanned files after which the index is written. The limit reduces wear of the card."""
UNREADABLE = (OSError, RecordingError, RecordError)
"""Exceptions that `entry_of` may raise."""


def files_in(directory: Path) -> list[Path]:
    """Return the recordings of a directory. Symbolic links are ignored: they could lead out of it.

    A missing directory gives an empty list, as it is created by the first recording. Raises OSError
    otherwise.
    """
    with contextlib.suppress(FileNotFoundError), os.scandir(directory) as listing:
        return sorted(directory / entry.name for entry in listing if _is_recording(entry))
    return []


def _is_recording(entry: "os.DirEntry[str]") -> bool:
    try:
        entry.name.encode()  # names that are not UTF-8 cannot be sent to a page
        return entry.name.endswith((names.SEALED, names.OPEN)) and entry.is_file(
            follow_symlinks=False
        )
    except (UnicodeEncodeError, OSError):
        return False


class Page(NamedTuple):
    """Page of the list; `more` is true if older files precede it."""

    entries: list[Entry]
    more: bool


class IndexedFiles(NamedTuple):
    """Summaries of the scanned files, and the number of files not scanned yet."""

    entries: list[Entry]
    unread: int


class RecordingIndex:
    """Recordings returned by `listed()`. Blocks: call it from a thread."""

    def __init__(
        self,
        listed: Callable[[], Iterable[Path]],
        clock_s: Clock = time.time,
        rest: Rest = no_rest,
        folder: Path | None = None,
    ) -> None:
        """Call `rest` before scanning each file. `folder` contains the files and the index.

        Files may also be in folders below `folder`. See index.py.
        """
        self._files, self._clock_s, self._rest = listed, clock_s, rest
        self._known: dict[Path, tuple[Stamp, Entry]] = {}
        self._growing_known: dict[Path, tuple[float, Entry]] = {}
        self._index = IndexFile(folder, Entry) if folder is not None else None
        self._read, self._unsaved = False, 0

    def paths(self, file_names: Iterable[str]) -> dict[str, Path]:
        """Return the recordings with these names. No other file can be requested.

        A file that was sealed a moment ago is also found under its previous name.
        """
        by_name = {path.name: path for path in self._files()}
        sealed = {name: name.removesuffix(names.OPEN) + names.SEALED for name in file_names}
        matches = {name: by_name.get(name) or by_name.get(sealed[name]) for name in sealed}
        return {name: path for name, path in matches.items() if path is not None}

    def writing(self, path: Path) -> bool:
        """Return whether this file is still being written."""
        try:
            return self._growing(path, path.stat())
        except OSError:
            return False

    def entries(self) -> list[Entry]:
        """List all recordings, ordered by name."""
        return self.page().entries

    def page(self, before: str = "", most: int = sys.maxsize) -> Page:
        """List the last `most` files whose names sort before `before`; "" for no limit."""
        paths = [path for path in self._files() if not before or path.name < before]
        self._read_index()
        entries = [entry for path in paths[-most:] if (entry := self._entry(path))]
        self._write_index()
        return Page(entries, len(paths) > most)

    def scan(self, look_s: float) -> IndexedFiles:
        """List files in the index and files being written; scan new ones for up to `look_s`.

        New files are scanned newest first.
        """
        self._read_index()
        spent_s, entries, unread = 0.0, list[Entry](), 0
        for path in reversed(list(self._files())):
            self._rest()
            entry = self._remembered(path)
            if entry is None:
                began_s = self._clock_s()
                if spent_s >= look_s and not path.name.endswith(names.OPEN):
                    unread += 1
                    continue
                entry = self._entry(path)
                spent_s += self._clock_s() - began_s
            if entry is not None:
                entries.append(entry)
        self._write_index()
        return IndexedFiles(entries[::-1], unread)

    def remove(self, file_names: Collection[str]) -> list[str]:
        """Delete sealed files with these names and their side files, permanently and synced.

        Returns the names of the deleted files. Raises OSError.
        """
        folders, deleted = set[Path](), list[str]()
        for path in list(self._files()):
            if path.name in file_names and path.name.endswith(names.SEALED):
                for name in (*(path.name + end for end in names.BESIDE), path.name):
                    path.with_name(name).unlink(missing_ok=True)
                folders.add(path.parent)
                deleted.append(path.name)
                self._known.pop(path, None)
        for folder in folders:
            files.sync(folder)
        return deleted

    def _growing(self, path: Path, about: os.stat_result) -> bool:
        is_open = path.name.endswith(names.OPEN)
        return is_open and self._clock_s() - about.st_mtime < WRITING_S

    def _remembered(self, path: Path) -> Entry | None:
        cached = self._known.get(path)
        with contextlib.suppress(OSError):
            if cached is not None and cached[0] == stamp_of(path.stat()):
                return cached[1]
        return None

    def _entry(self, path: Path) -> Entry | None:
        """Return the summary of one file; None if the file was removed in the moment before."""
        stamp = Stamp(0, 0, 0)
        try:
            about = path.stat()
            stamp = stamp_of(about)
            if self._growing(path, about):
                return self._open_entry(path, stamp)
            cached = self._known.get(path)
            if cached is None or cached[0] != stamp:
                self._rest()
                return self._note(path, stamp, summaries.entry_of(path, self._rest))
            return cached[1]
        except FileNotFoundError:  # removed by the ring, or closed at this moment
            return None
        except UNREADABLE as fault:
            entry = unreadable_entry(path, stamp, fault)
            temporary = isinstance(fault, OSError | PackageMissing)
            return entry if temporary else self._note(path, stamp, entry)

    def _note(self, path: Path, stamp: Stamp, entry: Entry) -> Entry:
        self._known[path] = stamp, entry
        self._unsaved += 1
        return entry

    def _open_entry(self, path: Path, stamp: Stamp) -> Entry:
        """Summarise a file that is being written, at most once every AGAIN_S."""
        now_s = self._clock_s()
        cached = self._growing_known.get(path)
        if cached is None or not 0.0 <= now_s - cached[0] < AGAIN_S:
            cached = now_s, summaries.open_entry(path, stamp, self._rest)
            self._growing_known = {path: cached}  # only one file is written at a time
        return cached[1]

    def _read_index(self) -> None:
        """Read the index on the first call."""
        if self._index is None or self._read:
            return
        self._read, folder = True, self._index.folder
        for name, known in self._index.read(self._rest).items():
            self._known.setdefault(folder / name, known)

    def _write_index(self) -> None:
        """Write the index after enough new files; drop entries of removed files."""
        if len(self._known) > ENTRIES_MAX or self._unsaved >= UNSAVED_MOST:
            existing = set(self._files())
            self._known = {path: cached for path, cached in self._known.items() if path in existing}
        if self._index is not None and self._unsaved >= UNSAVED_MOST:
            self._unsaved, folder = 0, self._index.folder
            self._index.write(
                {
                    str(path.relative_to(folder)): cached
                    for path, cached in self._known.items()
                    if path.is_relative_to(folder)
                }
            )


def unreadable_entry(path: Path, stamp: Stamp, fault: Exception) -> Entry:
    """Return a summary of an unreadable file with the reason."""
    began_ms, reason = stamp.changed_ns / 1e6, _words(path, fault)
    return Entry(path.name, began_ms, 0.0, stamp.size, "damaged", 0, reason)


def _words(path: Path, fault: Exception) -> str:
    """Return the reason a file cannot be read, without the file's name."""
    if isinstance(fault, OSError):
        return fault.strerror or str(fault)
    return str(fault).removeprefix(f"{path}: ")
