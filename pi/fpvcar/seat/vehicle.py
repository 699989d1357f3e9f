"""The car's core as its pages use it: cameras, lights, gate, sensors, recorder, sessions."""

import asyncio
from dataclasses import dataclass
from typing import NamedTuple

from fpvcar.drive.control import Control
from fpvcar.drive.saved import DisplayName
from fpvcar.recorder.feed import Feed
from fpvcar.runtime.service import Event
from fpvcar.runtime.texts import State
from fpvcar.seat.sessions import Sessions
from fpvcar.sensors.suite import SensorSuite
from fpvcar.video.camera import Camera
from fpvcar.video.picture import PictureSettings
from fpvcar.video.stream import Stream
from fpvcar.wire.telemetry import Recording


class Channel(NamedTuple):
    """Camera and its stream, at /ws/video?camera=NAME; `wanted` is set for each new viewer."""

    camera: Camera
    stream: Stream
    wanted: asyncio.Event


class Cameras:
    """Cameras of one car. Features add further ones before any page connects."""

    def __init__(self, first: Camera, stream: Stream, sessions: Sessions, blind_s: float) -> None:
        """`blind_s` is the age from which the gate counts a picture as missing."""
        self.first, self.stream = first, stream
        self.channels = {"": Channel(first, stream, asyncio.Event())}
        self.further: tuple[str, ...] = ()
        """Names of the further cameras."""
        self._sessions, self._blind_s = sessions, blind_s

    def add(self, name: str, channel: Channel) -> None:
        """Add a further camera under its name in the profile."""
        self.channels[name] = channel
        self.further += (name,)

    def state(self, large: str) -> State:
        """Return the state of the first camera, or a fault of the one that a page shows large."""
        return self.channels[large].camera.state if self.first.state == "ok" else self.first.state

    def picture_age_s(self, now_s: float) -> float | None:
        """Return the age of the picture for the gate: the first camera's.

        None while the driver looks at another camera without a picture younger than `blind_s`.
        A replay compares ages with the recorded pictures, which are the first camera's.
        """
        first_s = self.first.age_s(now_s)
        large = self._sessions.large() if self.further else ""
        if not large:
            return first_s
        own_s = self.channels[large].camera.age_s(now_s)
        return None if own_s is None or own_s >= self._blind_s else first_s


class LightEvents:
    """Events for the car's lights; a part with lamps subscribes."""

    def __init__(self) -> None:
        self.head = Event[bool]()
        """The head lights were switched on or off."""
        self.motion = Event[float, float, bool]()
        """Throttle, steering, and whether the car is stopped; published often."""
        self.recording = Event[Recording]()
        """State of the recorder; published often."""
        self.code = Event[str]()
        """A page in this network needs the drive code."""


@dataclass(frozen=True, kw_only=True)
class Vehicle:
    """Parts of one car's core, for the hub."""

    control: Control
    lights: LightEvents
    cameras: Cameras
    senses: SensorSuite
    name: DisplayName
    recorder: Feed
    sessions: Sessions
    picture: PictureSettings
