"""Keeps what people said of recordings in one small file beside them, by file."""

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
    """The file `name` of one folder; `kind` is what one note is. Blocks: call it from a
    thread. A file that cannot be read is set aside."""

    def __init__(self, folder: Path, name: str, kind: type[T]) -> None:
        self._path, self._bad = folder / name, (folder / name).with_suffix(".bad")
        self._decoder: msgspec.json.Decoder[dict[str, list[T]]] = msgspec.json.Decoder(
            dict[str, list[kind]]  # type: ignore[valid-type]
        )
        self._said: dict[str, list[T]] | None = None

    def read(self) -> dict[str, list[T]]:
        """Reads it, the first time: the notes of each file's stem. Raises OSError."""
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
        """Replaces it, if that changes it. `there` are the names of all files: what was
        said of others is forgotten. Raises OSError."""
        known = {stem(one) for one in there}
        new = {file: some for file, some in said.items() if some and file in known}
        if new != self.read():
            files.write_whole(self._path, [msgspec.json.encode(new)])
            self._said = new
