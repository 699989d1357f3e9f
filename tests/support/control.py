"""Owner of the gate with its own clock, camera and wheels."""

from dataclasses import dataclass, field

from fpvcar.config import profiles
from fpvcar.drive.control import Control, Inputs
from fpvcar.drive.gate import Cause
from fpvcar.runtime import paths
from fpvcar.wire import telemetry
from fpvcar.wire.wheels import Answer, Status, WheelsReason

PROFILE = profiles.load(paths.HARDWARE / "bench.toml")
TICK_NS = 20_000_000


@dataclass
class Rig:
    """Control with its own clock, camera and wheels."""

    now_ns: int = 1_000_000_000
    picture_age_s: float | None = 0.03
    sent: list[tuple[float, ...]] = field(default_factory=list)
    changes: int = 0
    seen: tuple[telemetry.Range, ...] = ()
    weak: bool = False
    in_doubt: Cause | None = None
    inputs: Inputs = field(init=False)
    control: Control = field(init=False)

    def __post_init__(self) -> None:
        self.inputs = Inputs(
            lambda _: self.picture_age_s,
            lambda _: 7.5,
            lambda _: self.seen,
            lambda now_s: self.weak,
            lambda: self.in_doubt,
        )
        self.control = Control(PROFILE, self.send, self.inputs, self.changed, lambda: self.now_ns)
        self.answer(Status.APPLIED)

    def send(self, duties: tuple[float, ...], now_ns: int) -> bool:
        assert now_ns == self.now_ns
        self.sent.append(duties)
        return True

    def changed(self) -> None:
        self.changes += 1

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
