"""Wiring only: builds the recorder of a car, over a folder on its card."""

import functools
import time
from pathlib import Path

import msgspec

from fpvcar import __version__
from fpvcar.config import Profile
from fpvcar.recorder.feed import Feed, Parts
from fpvcar.recorder.folder import Folder
from fpvcar.recorder.recorder import Recorder
from fpvcar.recorder.rotation import Tape
from fpvcar.recorder.writer import Catalogue
from fpvcar.recordings import messages, topics
from fpvcar.recordings.salvage import salvage


def about(profile: Profile) -> messages.About:
    """What all files of a car say of it."""
    return messages.About(
        profile.car.name, __version__, "", 0, 0, msgspec.to_builtins(profile)
    )


def catalogue(parts: Parts) -> Catalogue:
    """All topics of a car; its range sensors are known from the beginning."""
    ranges = parts.ranges(time.monotonic())
    return Catalogue(topics.topics([one.name for one in ranges]))


class Desk:
    """The recorder of one car and what feeds it."""

    def __init__(self, profile: Profile, directory: Path, parts: Parts) -> None:
        self.directory, topics = directory, catalogue(parts)
        tape = Tape(Folder(directory), profile.recording, topics)
        self.recorder = Recorder(
            profile.recording, about(profile), topics, tape,
            functools.partial(salvage, directory),
        )  # fmt: skip
        self.feed = Feed(self.recorder, parts)
