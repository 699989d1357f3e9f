"""Replay of recordings in files: one result for each drive.

files, sorted by time -> files of one drive -> replay.run -> ReplayedDrive
"""

import itertools
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from fpvcar.config import ConfigError
from fpvcar.recordings import messages
from fpvcar.recordings.export import export
from fpvcar.recordings.export.export import OpenRecording
from fpvcar.recordings.messages import About, FormatError
from fpvcar.recordings.names import Say
from fpvcar.recordings.repair import damage
from fpvcar.recordings.repair.damage import INCOMPLETE
from fpvcar.recordings.replay import replay
from fpvcar.recordings.replay.ages import CapturedPicture
from fpvcar.recordings.replay.check_inputs import RecordedWish
from fpvcar.recordings.replay.replay import DIFFERENCES_MAX, ReplayResult


class ReplayedDrive(NamedTuple):
    """Replayed files of a drive, and the result; `cut_short`: recorded data is missing.

    `about` is the description in the first file. `fault`: the reason why `result` is None.
    """

    files: list[Path]
    about: About | None
    result: ReplayResult | None = None
    cut_short: bool = False
    fault: str = ""

    @property
    def status(self) -> int:
        """Return 0 if all is as recorded, 1 if not, INCOMPLETE if some steps are missing or could
        not be replayed."""
        result = self.result
        if result is None or result.differing or not result.steps:
            return 1
        return INCOMPLETE if self.cut_short or result.holes or result.unsure else 0

    def utc_ns(self, monotonic_ns: int) -> int:
        """Return the UTC time of a time of the car's own clock."""
        return monotonic_ns + (self.about.utc_offset_ns if self.about else 0)


def replay_drives(
    paths: Sequence[Path], say: Say, most: int = DIFFERENCES_MAX
) -> Iterator[ReplayedDrive]:
    """Replay recordings, drive by drive. At most `most` differences of each are kept; losses of
    the files go to `say`. Raises RecordingError, OSError."""
    with closing(export.one_by_one(export.in_order(paths, say), say)) as inputs:
        for _, files in itertools.groupby(inputs, _recording_of):
            yield _replay(files, most)


def _recording_of(file: OpenRecording) -> str:
    """Return the name of a file's recording; its files are run in sequence."""
    about = file.recording.about
    return about.recording if about else str(file.path)


def _replay(files: Iterator[OpenRecording], most: int) -> ReplayedDrive:
    """Replay one drive; the first file's description holds for all its files."""
    first, replayed = next(files), list[Path]()
    about = first.recording.about
    if about is None:
        replayed.append(first.path)
        return ReplayedDrive(replayed, None, fault="contains no profile, so it cannot be replayed")

    cut_short = False

    def recorded() -> Iterator[messages.Step | RecordedWish | CapturedPicture]:
        nonlocal cut_short
        for path, recording in itertools.chain([first], files):
            replayed.append(path)
            cut_short = cut_short or damage.cut_short(path, recording)
            inputs = recording.messages(set(replay.TOPICS))
            yield from replay.inputs_of(inputs, about.utc_offset_ns)

    try:
        result = replay.run(about.parsed(), recorded(), most)
    except (ConfigError, FormatError) as fault:
        replayed = replayed or [first.path]
        return ReplayedDrive(replayed, about, fault=str(fault))
    return ReplayedDrive(replayed, about, result, cut_short)
