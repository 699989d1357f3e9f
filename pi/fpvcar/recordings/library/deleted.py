"""Register of deleted drives whose files stay because another drive shares them.

The register is one small file beside the recordings. A rebuilt list then still hides the deleted
ranges.
"""

import contextlib
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from fpvcar.recordings.library.drives import DeletedTest, Part
from fpvcar.recordings.library.notes import Notes
from fpvcar.recordings.library.summaries import Entry
from fpvcar.recordings.names import stem

NAME = ".deleted.json"
SLACK_S = 0.01
"""Times that differ by less than this are equal."""


class DeletedRange(NamedTuple):
    """Deleted range of a file that began at `start_ms`; `from_s` and `to_s` count from there.

    A car without a clock battery may reuse the name of a removed file. The start time tells the two
    files apart.
    """

    start_ms: float
    from_s: float
    to_s: float


class DeletionRegister:
    """Register of the deleted ranges in one folder. Blocks: call it from a thread."""

    def __init__(self, folder: Path) -> None:
        self._notes = Notes(folder, NAME, DeletedRange)

    def gone(self) -> DeletedTest:
        """Return a test for deleted ranges. If the card fails, it reports no range as deleted."""
        said: dict[str, list[DeletedRange]] = {}
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
        """Mark these parts as deleted. `there` lists the names of all remaining files.

        Raises OSError.
        """
        said = dict(self._notes.read())
        for one in parts:
            span = DeletedRange(one.start_ms, one.from_s, one.to_s)
            said[stem(one.name)] = [*said.get(stem(one.name), ()), span]
        self._notes.write(said, there)
