"""Owner of the gate with its own clock, camera and wheels."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from fpvcar.config import Profile, profiles
from fpvcar.drive.control import Control
from fpvcar.drive.gate import Cause
from fpvcar.drive.saved import SavedSettings, Saver
from fpvcar.runtime import paths
from fpvcar.runtime.texts import State
from fpvcar.wire import telemetry
from fpvcar.wire.wheels import Answer, Status, WheelsReason

PROFILE = profiles.load(paths.HARDWARE / "bench.toml")
TICK_NS = 20_000_000


class PlayedInputs(NamedTuple):
    """State of the car, played by a test."""

    picture_age_s: Callable[[float], float | None]
    volts: Callable[[float], float | None]
    ranges: Callable[[float], Sequence[telemetry.Range]]
    weak: Callable[[float], bool] = lambda now_s: False
    in_doubt: Callable[[], Cause | None] = lambda: None


class PlayedWheels(NamedTuple):
    """Link to the wheels, played by a test."""

    send: Callable[[tuple[float, ...], int], bool] = lambda duties, now_ns: True
    read_answers: Callable[..., None] = lambda to_end=False: None
    aim: Callable[[tuple[float, ...]], None] = lambda angles: None
    servo_state: Callable[[], State] = lambda: "ok"


class PlayedSaver(Saver):
    """Saver that passes each change to a function of the test."""

    def __init__(self, before: SavedSettings, save: Callable[[SavedSettings], None]) -> None:
        self.before, self._save = before, save

    def put(self, saved: SavedSettings) -> None:
        self._save(saved)


class Changes(asyncio.Event):
    """Event that counts how often it is set."""

    count = 0

    def set(self) -> None:
        self.count += 1


@dataclass
class Rig:
    """Control with its own clock, camera and wheels."""

    now_ns: int = 1_000_000_000
    picture_age_s: float | None = 0.03
    sent: list[tuple[float, ...]] = field(default_factory=list)
    changed: Changes = field(default_factory=Changes)
    seen: tuple[telemetry.Range, ...] = ()
    weak: bool = False
    in_doubt: Cause | None = None
    profile: Profile = PROFILE
    inputs: PlayedInputs = field(init=False)
    control: Control = field(init=False)

    def __post_init__(self) -> None:
        self.inputs = PlayedInputs(
            lambda _: self.picture_age_s,
            lambda _: 7.5,
            lambda _: self.seen,
            lambda now_s: self.weak,
            lambda: self.in_doubt,
        )
        self.control = self.control_of()
        self.answer(Status.APPLIED)

    def send(self, duties: tuple[float, ...], now_ns: int) -> bool:
        assert now_ns == self.now_ns
        self.sent.append(duties)
        return True

    def control_of(
        self,
        profile: Profile | None = None,
        wheels: PlayedWheels | None = None,
        saver: Saver | None = None,
    ) -> Control:
        """Return an owner of the gate on this clock, with these inputs."""
        return Control(
            profile or self.profile,
            wheels or PlayedWheels(self.send),
            self.inputs,
            self.changed,
            clock_ns=lambda: self.now_ns,
            saver=saver,
        )

    @property
    def changes(self) -> int:
        """Number of changes reported so far."""
        return self.changed.count

    def answer(self, status: Status, reason: WheelsReason = WheelsReason.NONE) -> None:
        self.control.wheels_answer(Answer(status, reason, 1, self.now_ns))

    def tick(self, count: int = 1) -> None:
        for _ in range(count):
            self.now_ns += TICK_NS
            self.control.step()

    def wish(self, throttle: float, steer: float = 0.0) -> None:
        self.control.wish(throttle, steer, self.now_ns / 1e9)

    def drive_off(self) -> None:
        self.wish(0.0)
        self.wish(1.0)
        assert self.moving

    @property
    def moving(self) -> bool:
        return any(self.sent[-1])

    @property
    def cause(self) -> Cause | None:
        latches = self.control.decision.latches
        return latches.hold.cause if latches.hold else latches.arm
