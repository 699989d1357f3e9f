"""Construction of a car's recorder over a folder on its card. Wiring only."""

import functools
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from fpvcar import __version__
from fpvcar.config import Profile
from fpvcar.recorder.feed import Feed, Sources
from fpvcar.recorder.folder import Folder
from fpvcar.recorder.handover import Handover
from fpvcar.recorder.recorder import Recorder
from fpvcar.recorder.rotation import Rotation
from fpvcar.recorder.thread import SYSTEM_CLOCK, Clock, RecorderThread
from fpvcar.recorder.writer import Catalogue
from fpvcar.recordings import messages, mounts, topics
from fpvcar.recordings.repair.salvage import salvage


def about(profile: Profile) -> messages.About:
    """Return the description of the car for all its files."""
    return messages.About(profile.car.name, __version__, "", 0, 0, msgspec.to_builtins(profile))


def catalogue(sources: Sources, servos: Iterable[str] = ()) -> Catalogue:
    """Return all topics of a car; its range sensors, and its servos that do not steer, are known
    from the beginning."""
    ranges = sources.ranges.status(time.monotonic())
    return Catalogue(topics.topics([sensor.name for sensor in ranges], servos))


class CarRecorder:
    """Recorder of one car, with its feed."""

    def __init__(
        self, profile: Profile, directory: Path, sources: Sources, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        settings, topics = profile.recording, catalogue(sources, profile.servos)
        handover = Handover()
        self.thread = RecorderThread(
            handover,
            Rotation(Folder(directory), settings, topics),
            functools.partial(salvage, directory),
            settings.sync_s,
            clock,
        )
        self.recorder = Recorder(settings, about(profile), topics, handover, self.thread, clock)
        positions = mounts.positions(msgspec.to_builtins(profile))
        self.feed = Feed(self.recorder, sources, positions)
