"""The car as the server uses it: an interface for each of its parts."""

from dataclasses import dataclass
from typing import Protocol

from fpvcar import config
from fpvcar.drive.control import Control
from fpvcar.drive.saved import DisplayName
from fpvcar.runtime.texts import State, Text
from fpvcar.wire import telemetry, up
from fpvcar.wire.telemetry import Recording


class Lights(Protocol):
    """Lights of the car: panel.Panel."""

    def set_head(self, on: bool) -> None:
        """Switch the head lights on or off."""

    def follow(self, throttle: float, steer: float, stopped: bool) -> None:
        """Set rear lights and indicators to match the car's motion."""

    def record(self, recording: telemetry.Recording | None) -> None:
        """Set an LED to match the recorder's state."""

    def blink_code(self, network: str) -> None:
        """Blink the drive code on an LED, if present, for a page in this network."""


class Picture(Protocol):
    """Settings of the picture: picture.PictureSettings."""

    def change(self, settings: config.Picture) -> str | None:
        """Apply the settings; return the name of a setting that the camera lacks, None on
        success."""


class Intercom(Protocol):
    """Intercom of the car: intercom_socket.Intercom."""

    on: bool
    """Whether a grown-up has switched the intercom on."""

    def switch(self, on: bool) -> str:
        """Turn the intercom on or off; return the missing program, "" on success."""


class Sensors(Protocol):
    """Sensors of the car: suite.SensorSuite."""

    def ranges(self, now_s: float) -> tuple[telemetry.Range, ...]:
        """Return one entry per range sensor."""

    def battery(self, now_s: float) -> telemetry.Battery | None:
        """Return the state of the pack, or None without a sensor for it."""

    def health(self, now_s: float) -> telemetry.Health:
        """Return the health of the computer in the car."""

    def attend(self, here: bool) -> None:
        """Set whether pages are connected; without pages sensors may rest."""


class Stateful(Protocol):
    """Part with a state: the camera, or the panel."""

    @property
    def state(self) -> State:
        """Current state."""


class Filming(Stateful, Protocol):
    """First camera, as the server uses it."""

    @property
    def encoder_hangs(self) -> bool:
        """Whether its pictures are smaller because the board's encoder hangs."""

    @property
    def warning(self) -> Text | None:
        """Property of its pictures that some viewers cannot show, and the remedy."""

    @property
    def lowered_rate(self) -> Text | None:
        """Reason for a lower rate than the set one."""

    @property
    def status(self) -> str:
        """State for programs."""


class Second(Stateful, Protocol):
    """Second camera, as the server uses it."""

    name: str
    """Name in the profile."""


class Recorder(Protocol):
    """Recorder as used by the server. Calls neither block nor raise."""

    def wish(self, drive: up.Drive, name: str, verdict: str, seen_us: int) -> None:
        """Record a `drive`: "fresh", "late", "stale", "old" or "not at the wheel".

        `seen_us` is the creation time of the message acknowledged by the wish; 0 if unknown.
        """

    def turn(self, name: str | None, why: str) -> None:
        """Record that `name` has the wheel; None if the seat is free."""

    def latency(self, name: str, drives: bool, report: up.Report, lost: float | None) -> None:
        """Record the measurements of a page."""

    def switch(self, on: bool, name: str) -> None:
        """Turn recording on or off on behalf of `name`."""

    def keep(self, name: str) -> None:
        """Keep the last minute on behalf of `name`."""

    def mark(self, text: str, name: str) -> None:
        """Mark this moment on behalf of `name`."""

    def status(self) -> Recording | None:
        """Return the state shown on pages; None without a recorder."""


class NoRecorder:
    """Recorder for a car without recording."""

    def wish(self, drive: up.Drive, name: str, verdict: str, seen_us: int) -> None:
        pass

    def turn(self, name: str | None, why: str) -> None:
        pass

    def latency(self, name: str, drives: bool, report: up.Report, lost: float | None) -> None:
        pass

    def switch(self, on: bool, name: str) -> None:
        pass

    def keep(self, name: str) -> None:
        pass

    def mark(self, text: str, name: str) -> None:
        pass

    def status(self) -> Recording | None:
        return None


@dataclass(frozen=True, kw_only=True)
class Vehicle:
    """Parts of one car, for the server."""

    control: Control
    lights: Lights
    camera: Filming
    senses: Sensors
    name: DisplayName
    second: Second | None = None
    recorder: Recorder = NoRecorder()
    picture: Picture | None = None
    """Settings of the picture; None for a camera without settings."""
    intercom: Intercom | None = None
