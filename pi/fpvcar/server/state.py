"""What every page is told of the car: one state, ten times a second."""

from typing import Protocol

from fpvcar import status
from fpvcar.drive.control import Control
from fpvcar.drive.gate import Cause
from fpvcar.drive.seat import Seat
from fpvcar.server.drive_socket import Session
from fpvcar.server.recorder import Recorder
from fpvcar.wire import down


class Senses(Protocol):
    """What is asked of senses.Senses."""

    def ranges(self, now_s: float) -> tuple[status.Range, ...]:
        """One entry a range sensor."""

    def battery(self, now_s: float) -> status.Battery | None:
        """The pack, or None where nothing measures it."""

    def health(self, now_s: float) -> status.Health:
        """The computer in the car."""


class Camera(Protocol):
    """What is asked of camera.Camera."""

    @property
    def state(self) -> str:
        """ "ok" or what is wrong, in words."""


class Telling:
    """Makes states; `seq` counts the rounds."""

    def __init__(
        self, control: Control, seat: Seat, senses: Senses, camera: Camera,
        recorder: Recorder,
    ) -> None:  # fmt: skip
        self.seq = 0
        self._control, self._seat, self._senses = control, seat, senses
        self._camera, self._recorder = camera, recorder

    def state(
        self, session: Session, viewers: int, head_lights: bool, now_s: float
    ) -> down.State:
        """The state of now, for one page."""
        decision, holder = self._control.decision, self._seat.holder
        return down.State(
            seq=self.seq,
            clock_us=int(now_s * 1e6),
            role="driver" if self._seat.holds(session.client) else "watching",
            may_drive=session.rights.drive,
            grown_up=session.rights.grown_up,
            driver=holder.name if holder else None,
            seat_free=self._seat.wait_s(now_s) <= 0.0,
            throttle=decision.throttle,
            steer=decision.steer,
            reason=decision.reason,
            stop=self.stop(),
            limit=self._control.limit,
            head_lights=head_lights,
            viewers=viewers,
            battery=self._senses.battery(now_s),
            ranges=self._senses.ranges(now_s),
            wheels=self._control.wheels,
            camera=self._camera.state,
            guard=self._control.guarding(),
            health=self._senses.health(now_s),
            recording=self._recorder.status(),
        )

    def stop(self) -> down.Stop | None:
        """What holds the car, the hardest first."""
        latches = self._control.decision.latches
        if latches.hold is not None:
            cause = latches.hold.cause
            clears = "grown_up" if cause is Cause.ESTOP_GROWN_UP else "resume"
            return down.Stop(cause, clears, latches.hold.by)
        return down.Stop(latches.arm, "neutral") if latches.arm is not None else None
