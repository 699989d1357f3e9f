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
        self._said: dict[str, list[T]] | None = None

    def read(self) -> dict[str, list[T]]:
        """Return the notes by file stem. Reads the file on the first call only. Raises OSError."""
        if self._said is not None:
            return self._said
        try:
            self._said = self._decoder.decode(self._path.read_bytes())
        except FileNotFoundError:
            self._said = {}
        except (ValueError, msgspec.DecodeError, RecursionError) as fault:
            self._path.replace(self._bad)
            log.warning("%s: set aside as %s: %s", self._path, self._bad.name, fault)
            self._said = {}
        return self._said

    def write(self, said: Mapping[str, list[T]], there: Collection[str]) -> None:
        """Replace the file if its content changes. `there` lists the names of all recordings.

        Notes on other recordings are dropped. Raises OSError.
        """
        known = {stem(one) for one in there}
        new = {file: some for file, some in said.items() if some and file in known}
        if new != self.read():
            files.write_whole(self._path, [msgspec.json.encode(new)])
            self._said = new
