"""Keeps the names that people gave to drives, in one small file beside them.

A name hangs on moments, (file, s), one in each file of its drive: it stays when the
list is made anew, when a drive grows, and when the ring has removed its first files.
"""

import contextlib
import logging
from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec

from fpvcar import files
from fpvcar.recordings.drives import Drive, stem

NAME = ".titles.json"
TITLE_MOST = 64
Said = dict[str, list[tuple[float, str]]]
log = logging.getLogger("fpvcar.recordings")


class Titles:
    """The file of one folder. Blocks: call it from a thread. One that cannot be read
    is set aside."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._said: Said | None = None

    def named(self, drives: Sequence[Drive]) -> list[Drive]:
        """Gives the drives their names; none where the card fails."""
        said = Said()
        with contextlib.suppress(OSError):
            said = self._read()
        return [
            msgspec.structs.replace(one, title=_title(one, said)) if said else one
            for one in drives
        ]

    def name(self, drive: Drive, title: str, there: Collection[str]) -> None:
        """Names a drive; "": as before anybody named it. `there` are the names of all
        files: what was said of others is forgotten. Raises OSError."""
        known = {stem(one) for one in there}
        said = {file: some for file, some in self._read().items() if file in known}
        for one, (file, moment_s) in zip(drive.parts, drive.moments, strict=True):
            said[file] = [
                (at_s, text) for at_s, text in said.get(file, [])
                if not one.from_s <= at_s <= one.to_s
            ]  # fmt: skip
            if title:
                said[file].append((round(moment_s, 3), title))
        said = {file: some for file, some in said.items() if some}
        files.write_whole(self._path, [msgspec.json.encode(said)])
        self._said = said

    def _read(self) -> Said:
        if self._said is not None:
            return self._said
        try:
            self._said = msgspec.json.decode(self._path.read_bytes(), type=Said)
        except FileNotFoundError:
            self._said = {}
        except (ValueError, RecursionError) as fault:
            self._path.replace(self._path.with_suffix(".bad"))
            log.warning("%s: set aside as .titles.bad: %s", self._path, fault)
            self._said = {}
        return self._said


def _title(drive: Drive, said: Said) -> str:
    for one in drive.parts:
        for at_s, text in said.get(stem(one.name), []):
            if one.from_s <= at_s <= one.to_s:
                return text
    return ""
