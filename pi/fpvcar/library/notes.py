"""Store of user notes on recordings: one small file beside them, keyed by recording."""

import logging
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from fpvcar.recordings.names import stem
from fpvcar.runtime import files

T = TypeVar("T")
UNREADABLE = (ValueError, msgspec.DecodeError, RecursionError)
log = logging.getLogger("fpvcar.recordings")


class Notes(Generic[T]):
    """Notes in file `name` of one folder; `kind` is the type of a note.

    Blocks: call it from a thread. Unreadable notes are left out, and the file that had them stays
    as .bad.
    """

    def __init__(self, folder: Path, name: str, kind: type[T]) -> None:
        self._path, self._bad = folder / name, (folder / name).with_suffix(".bad")
        self._kind = kind
        self._notes: dict[str, list[T]] | None = None

    def read(self) -> dict[str, list[T]]:
        """Return the notes by file stem. Reads the file on the first call only. Raises OSError."""
        if self._notes is not None:
            return self._notes
        try:
            text = self._path.read_bytes()
        except FileNotFoundError:
            text = b"{}"
        self._notes, faults = self._decoded(text)
        if faults:
            files.write_whole(self._bad, [text])
            log.warning("%s: a copy is kept as %s: %s", self._path, self._bad.name, faults[0])
        return self._notes

    def _decoded(self, text: bytes) -> tuple[dict[str, list[T]], list[Exception]]:
        """Return the readable notes, and the faults of the others."""
        notes: dict[str, list[T]] = {}
        faults: list[Exception] = []
        try:
            lists = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        except UNREADABLE as fault:
            return {}, [fault]
        for file, raw in lists.items():
            try:
                entries = msgspec.json.decode(raw, type=list[msgspec.Raw])
            except UNREADABLE as fault:
                faults.append(fault)
                continue
            for entry in entries:
                try:
                    note = msgspec.json.decode(entry, type=self._kind)
                except UNREADABLE as fault:
                    faults.append(fault)
                else:
                    notes.setdefault(file, []).append(note)
        return notes, faults

    def write(self, notes: Mapping[str, list[T]], file_names: Collection[str]) -> None:
        """Replace the file if its content changes. `file_names` lists the names of all recordings.

        Notes on other recordings are dropped. Raises OSError.
        """
        stems = {stem(name) for name in file_names}
        new = {file: values for file, values in notes.items() if values and file in stems}
        if new != self.read():
            files.write_whole(self._path, [msgspec.json.encode(new)])
            self._notes = new
