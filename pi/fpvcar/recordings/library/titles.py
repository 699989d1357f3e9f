"""Store of the titles that users gave to drives, in one small file beside the recordings.

A title is keyed by moments, (file, s), one in each file of its drive. The title therefore survives
when the list is rebuilt, when a drive grows, and when the ring has removed the first files.
"""

import contextlib
from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec

from fpvcar.recordings.library.drives import Drive
from fpvcar.recordings.library.notes import Notes
from fpvcar.recordings.names import stem

NAME = ".titles.json"
TITLE_MOST = 64
TitlesByFile = dict[str, list[tuple[float, str]]]


class Titles:
    """Titles of the drives in one folder. Blocks: call it from a thread."""

    def __init__(self, folder: Path) -> None:
        self._notes = Notes(folder, NAME, tuple[float, str])

    def named(self, drives: Sequence[Drive]) -> list[Drive]:
        """Return the drives with their titles; without titles if the card fails."""
        said = TitlesByFile()
        with contextlib.suppress(OSError):
            said = self._notes.read()
        return [
            msgspec.structs.replace(one, title=_title(one, said)) if said else one for one in drives
        ]

    def name(self, drive: Drive, title: str, there: Collection[str]) -> None:
        """Set the title of a drive; "" removes it. `there` lists the names of all files.

        Titles of other files are dropped. Raises OSError.
        """
        said = dict(self._notes.read())
        for one, (file, moment_s) in zip(drive.parts, drive.moments, strict=True):
            said[file] = [
                (at_s, text)
                for at_s, text in said.get(file, [])
                if not one.from_s <= at_s <= one.to_s
            ]
            if title:
                said[file].append((round(moment_s, 3), title))
        self._notes.write(said, there)


def _title(drive: Drive, said: TitlesByFile) -> str:
    for one in drive.parts:
        for at_s, text in said.get(stem(one.name), []):
            if one.from_s <= at_s <= one.to_s:
                return text
    return ""
