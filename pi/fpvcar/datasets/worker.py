"""Process that makes a dataset for a page: jobs.Order on stdin, lines of jobs.Step on stdout.

    python -m fpvcar.datasets.worker

Exit status: 0 with a summary, 1 with a fault.
"""

import os
import sys
from pathlib import Path

import msgspec

from fpvcar.datasets import export, libraries
from fpvcar.datasets.grid import Size
from fpvcar.datasets.jobs import DatasetRequest, DatasetSummary, Order, Step
from fpvcar.recordings.export.export import Report
from fpvcar.recordings.mcap.parsing import RecordingError
from fpvcar.runtime.texts import VERBATIM, fault_text

EVERY_S = 0.25
"""Time between two lines of progress."""


def tell(step: Step) -> None:
    """Write a line to stdout."""
    sys.stdout.buffer.write(msgspec.json.encode(step) + b"\n")
    sys.stdout.buffer.flush()


class Losses(Report):
    """Losses of an export, told at once."""

    def __init__(self) -> None:
        super().__init__(lambda text: None)

    def say(self, text: str) -> None:
        """Tell a loss; the page shows names without their folders."""
        super().say(text)
        words = (os.path.basename(word) if word.startswith("/") else word for word in text.split())
        tell(Step(lost=VERBATIM(text=" ".join(words))))


class Told:
    """Progress as lines on stdout, of `total` bytes."""

    def __init__(self, total: int) -> None:
        self._total, self._told_s = total, -EVERY_S

    def to(self, done: float, now_s: float) -> None:
        """Tell the bytes read, from time to time."""
        if now_s - self._told_s >= EVERY_S:
            self._told_s = now_s
            tell(Step(done=min(round(done), self._total), total=self._total))

    def end(self) -> None:
        """Tell nothing: the summary follows."""


def make(order: Order) -> DatasetSummary:
    """Write the dataset of an order. Raises RecordingError, OSError."""
    out = Path(order.out)
    if order.request is None:
        settings, paths = export.begun(out)
    else:
        settings, paths = settings_of(order.request), [Path(path) for path in order.paths]
    if install := libraries.to_install(settings.kind):
        raise RecordingError(install)
    return export.write(settings, out, paths, Losses(), Told, order.reserve)


def settings_of(request: DatasetRequest) -> export.Settings:
    """Return the options of an export."""
    return export.Settings(
        kind=request.kind,
        fps=request.fps,
        size=Size(request.width, request.height) if request.width else None,
        copy=request.copy,
        marks=request.marks,
        drives=[
            export.Drive(drive.files, round(drive.from_ms * 1e6), round(drive.to_ms * 1e6))
            for drive in request.drives
        ],
    )


def main() -> int:
    """Run one order; return the exit status."""
    try:
        summary = make(msgspec.json.decode(sys.stdin.buffer.read(), type=Order))
    except (RecordingError, OSError) as fault:
        tell(Step(fault=fault_text(fault)))
        return 1
    tell(Step(summary=summary))
    return 0


if __name__ == "__main__":
    sys.exit(main())
