"""State messages to pages: a welcome, then a state ten times a second."""

from collections.abc import Sequence

from msgspec import Struct

from fpvcar import __version__
from fpvcar.config import Profile
from fpvcar.config.esc import unguarded
from fpvcar.drive.gate import GROWN_UPS, Cause, Latches
from fpvcar.runtime.texts import Text
from fpvcar.seat.drive_socket import Session
from fpvcar.seat.feature import Feature
from fpvcar.seat.settings import Settings
from fpvcar.seat.turns import Turns
from fpvcar.seat.vehicle import Vehicle
from fpvcar.wire import down
from fpvcar.wire.errors import VERSION

DRIVE_EVERY_MS = 40
"""Interval at which a page sends its wish."""
_REASONS = (
    Text("wheels_deadline", "deadline"),
    Text("wheels_bad_message", "bad message"),
    Text("wheels_exit", "exit"),
    Text("wheels_past", "past"),
    Text("wheels_too_far_ahead", "too far ahead"),
    Text("wheels_superseded", "superseded"),
    Text("wheels_zero_first", "zero first"),
)
WHEELS_REASONS = {text.english: text for text in _REASONS}
"""Reasons of a stop by `wheels`, as the saved settings have them."""


class CarState:
    """State of the car as sent to pages."""

    def __init__(
        self, profile: Profile, vehicle: Vehicle, turns: Turns, features: Sequence[Feature]
    ) -> None:
        self.seq = self._nonce = 0
        self.recording = vehicle.recorder.status()
        """Status of the recorder, at most hub.TIDY_S old."""
        self._profile, self._name, self._features = profile, vehicle.name, features
        self._control, self._cameras = vehicle.control, vehicle.cameras
        self._senses = vehicle.senses
        self._turns, self._seat = turns, turns.seat
        self._parts: dict[str, Struct] = {}

    def welcome(self, https_port: int, session: Session, now_s: float) -> down.Welcome:
        """Build the answer to a session's Hello."""
        profile = self._profile
        return down.Welcome(
            v=VERSION,
            car=self._name.text,
            version=__version__,
            clock_us=int(now_s * 1e6),
            silence_ms=round(profile.gate.silence_s * 1000),
            late_ms=round(profile.gate.late_s * 1000),
            drive_every_ms=DRIVE_EVERY_MS,
            range_stale_ms=round(profile.range_stale_s() * 1000),
            width=profile.camera.width,
            height=profile.camera.height,
            fps=profile.camera.fps,
            https_port=0 if session.way == "proxy" else https_port,
            code_needed=not session.rights.drive,
            has_lights=bool(profile.lights.head),
            video=session.video,
            named=self._name.chosen,
            cameras=self._cameras.further,
            features=tuple(feature.name for feature in self._features),
            unguarded=unguarded(profile),
            way=session.way,
        )

    def next_round(self, nonce: int) -> None:
        """Start a round of states; all states of a round share number and nonce."""
        self.seq += 1
        self._nonce = nonce
        states = ((feature.name, feature.state()) for feature in self._features)
        self._parts = {name: state for name, state in states if state is not None}

    def message(
        self, session: Session, viewers: int, settings: Settings, now_s: float
    ) -> down.State:
        """Build the current state for one page."""
        decision, holder = self._control.decision, self._seat.holder
        battery, ranges = self._senses.battery(now_s), self._senses.ranges(now_s)
        stop, recording = self.stop(), self.recording
        first = self._cameras.first
        wait_s = self._seat.wait_s(now_s)
        return down.State(
            seq=self.seq,
            clock_us=int(now_s * 1e6),
            nonce=self._nonce,
            role="driver" if self._seat.holds(session.client) else "watching",
            may_drive=session.rights.drive,
            grown_up=session.rights.grown_up,
            driver=holder.name if holder else None,
            seat_free=wait_s <= 0.0,
            throttle=decision.throttle,
            steer=decision.steer,
            reason=decision.reason,
            stop=stop,
            limit=self._control.limit,
            settings=settings.state,
            viewers=viewers,
            battery=battery,
            ranges=ranges,
            wheels=self._control.wheels,
            camera=self._cameras.state(session.large),
            encoder_hangs=first.encoder_hangs,
            camera_warning=first.warning,
            lowered_rate=first.lowered_rate,
            guard=self._control.guarding(),
            health=self._senses.health(now_s),
            recording=recording,
            parts=self._parts,
            lost=session.lost,
            wait_s=wait_s,
            asking=self._turns.asking(session, now_s),
        )

    def stop(self) -> down.Stop | None:
        """Return the cause that holds the car."""
        return stop_of(self._control.decision.latches)


def stop_of(latches: Latches) -> down.Stop | None:
    """Return the cause that holds a car, the hardest first."""
    if latches.hold is not None:
        cause = latches.hold.cause
        clears = "grown_up" if cause in GROWN_UPS else "resume"
        by = latches.hold.by
        return down.Stop(
            cause, clears, WHEELS_REASONS.get(by, by) if cause == Cause.WHEELS_STOPPED else by
        )
    return down.Stop(latches.arm, "neutral") if latches.arm is not None else None
