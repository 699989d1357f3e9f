"""Core of the wheels on fake pins, and a clock that is turned by hand."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from fpvbench.world.bridge import CHIPS, Bridge
from fpvcar.config import AnyMotor, DcMotor, Profile, profiles
from fpvcar.devices.pins import PinsFault
from fpvcar.wheels.controller import Wheels
from fpvcar.wire.wheels import Answer, EscPulses, Setpoint, Status, WheelsReason, pack_setpoint
from testkit.pins.fake_pins import FakeBoard, FakePins, PlayedAccess

MS = 1_000_000
PROFILE = profiles.parse(
    {
        "car": {"name": "Test"},
        "motors": {
            "drive": {"forward": 17, "reverse": 27, "brake_s": 0.1},
            "steer": {"forward": 24, "reverse": 23},
        },
    }
)
PINS = PROFILE.motor_pins()
MOST = 3.0 / 6.2
T = TypeVar("T")


class Car:
    """Core with fake pins and a clock that is turned by hand."""

    def __init__(self, profile: Profile = PROFILE) -> None:
        self.profile, self.now_ns = profile, 1_000_000 * MS
        self.motors = profile.motors.pair
        self.pins = FakePins(lambda _: self.watch())
        self.board: FakeBoard | None = None
        self.alarms = self.freed = 0
        self.held = ""
        self.refuse: PinsFault | None = None
        self.wheels = Wheels(profile, PlayedAccess(self._connect, self._alarm, self._free))
        self.seq = 0
        self.pulses: EscPulses | None = None
        self.wheels.tick(self.now_ns)

    def watch(self) -> None:
        """Hook after every change of a pin."""

    def _alarm(self) -> None:
        self.alarms += 1

    def _free(self) -> str:
        self.freed += 1
        return self.held

    def _connect(self) -> FakeBoard:
        if self.refuse is not None:
            raise self.refuse
        self.pins.fault = None
        self.board = FakeBoard(self.profile, self.pins, self.now_ns / 1e9)
        return self.board

    def packet(self, drive: float, ahead_ms: float = 100, steer: float = 0.0) -> bytes:
        self.seq += 1
        deadline_ns = self.now_ns + int(ahead_ms * MS)
        return pack_setpoint(Setpoint(self.seq, deadline_ns, (drive, steer), self.pulses))

    def send(self, *packets: bytes) -> list[Answer]:
        return self.wheels.receive(packets, self.now_ns)

    def drive(self, drive: float, ahead_ms: float = 100) -> Answer:
        return self.send(self.packet(drive, ahead_ms))[-1]

    def skip(self, ms: float) -> None:
        """Advance the time with our processes stopped; the daemon's script runs."""
        self.now_ns += int(ms * MS)
        if self.board is not None:
            self.board.dead_man.pass_to(self.now_ns / 1e9)

    def wait(self, ms: float) -> list[Answer]:
        """Advance the time; the process does its due work."""
        until_ns, answers = self.now_ns + int(ms * MS), []
        while self.now_ns < until_ns:
            due_ns = self.wheels.due_ns or until_ns
            step_ns = max(min(due_ns, until_ns, self.now_ns + 20 * MS), self.now_ns + 1)
            self.skip((step_ns - self.now_ns) / MS)
            answers += self.wheels.tick(self.now_ns)
        return answers

    def ready(self) -> "Car":
        """Send zeros until they are applied and the dead man is awake."""
        for _ in range(3):
            assert self.drive(0.0).status == Status.APPLIED
            self.wait(20)
        return self

    def driving(self, drive: float = 0.3) -> "Car":
        assert self.ready().drive(drive).status == Status.APPLIED
        return self

    def bridge(self, motor: AnyMotor) -> Bridge:
        """Return the state of the motor's chip for its pins."""
        assert isinstance(motor, DcMotor)
        duties = (self.pins.duty(gpio) for gpio in motor.pins())
        return CHIPS[type(motor)].bridge(*duties)

    @property
    def powered(self) -> bool:
        """Return True if a motor is driven (braked does not count)."""
        return any(self.bridge(motor).drive for motor in self.motors)


def why(answer: Answer) -> tuple[Status, WheelsReason]:
    return answer.status, answer.reason


@contextmanager
def at_each_line(look: Callable[[], T]) -> Iterator[list[T]]:
    """Sample `look` at each log line of the wheels: a reader that hangs would stop them there."""
    found: list[T] = []

    def note(_: logging.LogRecord) -> bool:
        found.append(look())
        return True

    log = logging.getLogger("fpvcar.wheels")
    log.addFilter(note)
    try:
        yield found
    finally:
        log.removeFilter(note)
