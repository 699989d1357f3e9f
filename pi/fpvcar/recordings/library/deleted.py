"""Remembers what people deleted of files that stay, as another drive is in them, too.

It is kept in one small file beside them, so that a list made anew does not show it.
"""

import contextlib
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from fpvcar.recordings.library.drives import Gone, Part
from fpvcar.recordings.library.notes import Notes
from fpvcar.recordings.library.summaries import Entry
from fpvcar.recordings.names import stem

NAME = ".deleted.json"
SLACK_S = 0.01
"""Times that differ by less are the same."""


class Span(NamedTuple):
    """What was deleted of a file that began at `start_ms`; s from there.

    A car without a battery for its clock may give the name of a file that is gone to
    another one, but not its start.
    """

    start_ms: float
    from_s: float
    to_s: float


class Deleted:
    """The file of one folder. Blocks: call it from a thread."""

    def __init__(self, folder: Path) -> None:
        self._notes = Notes(folder, NAME, Span)

    def gone(self) -> Gone:
        """Tells what of a file was deleted; nothing where the card fails."""
        said: dict[str, list[Span]] = {}
        with contextlib.suppress(OSError):
            said = self._notes.read()

        def gone(file: Entry, from_s: float, to_s: float) -> bool:
            return any(
                one.start_ms == file.start_ms
                and one.from_s - SLACK_S <= from_s
                and to_s <= one.to_s + SLACK_S
                for one in said.get(stem(file.name), ())
            )

        return gone

    def note(self, parts: Iterable[Part], there: Collection[str]) -> None:
        """Remembers that these are deleted. `there` are the names of all files that
        stay. Raises OSError."""
        said = dict(self._notes.read())
        for one in parts:
            span = Span(one.start_ms, one.from_s, one.to_s)
            said[stem(one.name)] = [*said.get(stem(one.name), ()), span]
        self._notes.write(said, there)
