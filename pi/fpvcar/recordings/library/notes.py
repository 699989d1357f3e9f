"""Store of user notes on recordings: one small file beside them, keyed by recording."""

import logging
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from fpvcar.recordings.names import stem
from fpvcar.runtime import files

T = TypeVar("T")
log = logging.getLogger("fpvcar.recordings")


class Notes(Generic[T]):
    """Notes in file `name` of one folder; `kind` is the type of a note.

    Blocks: call it from a thread. An unreadable file is renamed to .bad.
    """

    def __init__(self, folder: Path, name: str, kind: type[T]) -> None:
        self._path, self._bad = folder / name, (folder / name).with_suffix(".bad")
        self._decoder: msgspec.json.Decoder[dict[str, list[T]]] = msgspec.json.Decoder(
            dict[str, list[kind]]  # type: ignore[valid-type]
        )
        self._notes: dict[str, list[T]] | None = None

    def read(self) -> dict[str, list[T]]:
        """Return the notes by file stem. Reads the file on the first call only. Raises OSError."""
        if self._notes is not None:
            return self._notes
        try:
            self._notes = self._decoder.decode(self._path.read_bytes())
        except FileNotFoundError:
            self._notes = {}
        except (ValueError, msgspec.DecodeError, RecursionError) as fault:
            self._path.replace(self._bad)
            log.warning("%s: set aside as %s: %s", self._path, self._bad.name, fault)
            self._notes = {}
        return self._notes

    def write(self, notes: Mapping[str, list[T]], file_names: Collection[str]) -> None:
        """Replace the file if its content changes. `file_names` lists the names of all recordings.

        Notes on other recordings are dropped. Raises OSError.
        """
        stems = {stem(name) for name in file_names}
        new = {file: values for file, values in notes.items() if values and file in stems}
        if new != self.read():
            files.write_whole(self._path, [msgspec.json.encode(new)])
            self._notes = new
