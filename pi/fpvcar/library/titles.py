"""Store of the titles that users gave to drives, in one small file beside the recordings.

A title is keyed by moments, (file, s), one in each file of its drive. The title therefore survives
when the list is rebuilt, when a drive grows, and when the ring has removed the first files.
"""

import contextlib
from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec

from fpvcar.library.drives import Drive
from fpvcar.library.notes import Notes
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
        titles = TitlesByFile()
        with contextlib.suppress(OSError):
            titles = self._notes.read()
        return [
            msgspec.structs.replace(drive, title=_title(drive, titles)) if titles else drive
            for drive in drives
        ]

    def name(self, drive: Drive, title: str, file_names: Collection[str]) -> None:
        """Set the title of a drive; "" removes it. `file_names` lists the names of all files.

        Titles of other files are dropped. Raises OSError.
        """
        titles = dict(self._notes.read())
        for part, (file, moment_s) in zip(drive.parts, drive.moments, strict=True):
            titles[file] = [
                (at_s, text)
                for at_s, text in titles.get(file, [])
                if not part.from_s <= at_s <= part.to_s
            ]
            if title:
                titles[file].append((round(moment_s, 3), title))
        self._notes.write(titles, file_names)


def _title(drive: Drive, titles: TitlesByFile) -> str:
    for part in drive.parts:
        for at_s, text in titles.get(stem(part.name), []):
            if part.from_s <= at_s <= part.to_s:
                return text
    return ""
