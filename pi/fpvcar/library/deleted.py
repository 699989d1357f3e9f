"""Register of deleted drives whose files stay because another drive shares them.

The register is one small file beside the recordings. A rebuilt list then still hides the deleted
ranges.
"""

import contextlib
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from fpvcar.library.drives import DeletedTest, Part
from fpvcar.library.notes import Notes
from fpvcar.library.summaries import Entry
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
        ranges: dict[str, list[DeletedRange]] = {}
        with contextlib.suppress(OSError):
            ranges = self._notes.read()

        def gone(file: Entry, from_s: float, to_s: float) -> bool:
            return any(
                span.start_ms == file.start_ms
                and span.from_s - SLACK_S <= from_s
                and to_s <= span.to_s + SLACK_S
                for span in ranges.get(stem(file.name), ())
            )

        return gone

    def note(self, parts: Iterable[Part], file_names: Collection[str]) -> None:
        """Mark these parts as deleted. `file_names` lists the names of all remaining files.

        Raises OSError.
        """
        ranges = dict(self._notes.read())
        for part in parts:
            span = DeletedRange(part.start_ms, part.from_s, part.to_s)
            ranges[stem(part.name)] = [*ranges.get(stem(part.name), ()), span]
        self._notes.write(ranges, file_names)
