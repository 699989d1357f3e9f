"""Driver stints in one file: name, times, distance and stop causes. Pure.

The recorder tallies the messages it writes and stores the result as the last message of each file,
so a list of thousands of files reads no steps. For files without it (never closed, or from an older
version), the same tally is computed from their steps.
"""

from collections import Counter

from fpvcar import config
from fpvcar.recordings import codec, messages
from fpvcar.recordings.messages import Step, Stint, Turn
from fpvcar.recordings.reader import Recording
from fpvcar.runtime.units import SECOND_NS

HOLE_NS = 2 * SECOND_NS
"""Longest gap between steps within a stint. The driver is unknown after it, so the stint ends."""
STEP_MOST_NS = 100_000_000
"""Longest time that one setpoint counts for. The motors are released after it."""
TOPICS = frozenset({messages.STEP, messages.DRIVER})


class _OpenStint:
    """Stint that is still in progress."""

    def __init__(self, name: str, now_ns: int) -> None:
        self.name, self.from_ns, self.to_ns = name, now_ns, now_ns
        self.metres, self.stops = 0.0, Counter[str]()

    def closed(self) -> Stint:
        """Return the stint, rounded for the list."""
        return Stint(self.from_ns, self.to_ns, self.name, round(self.metres, 2), dict(self.stops))


class Tally:
    """Tally of driver stints. Pass the messages of TOPICS in the order of their times."""

    def __init__(self, top_mps: float) -> None:
        """Take the car's speed at full throttle, `top_mps`."""
        self.has_steps = False
        """True after the first step. Without steps, the driver is unknown."""
        self._top_mps = top_mps
        self._done: list[Stint] = []
        self._open: _OpenStint | None = None
        self._name = ""
        self._cause: str | None = ""

    def stints(self) -> tuple[Stint, ...]:
        """Return the stints so far, including the one in progress."""
        return (*self._done, *([self._open.closed()] if self._open else []))

    def note(self, log_ns: int, message: object) -> None:
        """Process the next message; only steps and turns have an effect."""
        if isinstance(message, Turn):
            self._turn(log_ns, message.name or "")
        elif isinstance(message, Step):
            self._step(log_ns, message)

    def _turn(self, log_ns: int, name: str) -> None:
        self._name = name
        stint = self._open
        if stint is None or not name or stint.name == name:
            return
        if stint.name:  # change of driver without a pause
            self._close()
            self._open = _OpenStint(name, log_ns)
        else:
            stint.name = name

    def _step(self, log_ns: int, step: Step) -> None:
        if self._open is not None and log_ns - self._open.to_ns > HOLE_NS:
            self._close()
        cause = cause_of(step)
        stopped = cause is not None and self.has_steps and cause != self._cause
        self.has_steps, self._cause = True, cause
        if step.reason == "nobody":
            self._close()
            return
        stint = self._open = self._open or _OpenStint(self._name, log_ns)
        passed_ns = min(max(0, log_ns - stint.to_ns), STEP_MOST_NS)
        # The slew state is the motor output since the last step.
        speed_mps = abs(step.slew.drive) * self._top_mps
        stint.metres += speed_mps * passed_ns / SECOND_NS
        stint.to_ns = max(stint.to_ns, log_ns)
        if stopped:
            stint.stops[str(cause)] += 1

    def _close(self) -> None:
        if self._open is not None:
            self._done.append(self._open.closed())
        self._open = None


def cause_of(step: Step) -> str | None:
    """Return the cause of the stop after this step; None if the car is not stopped."""
    if step.reason != "stopped":
        return None
    hold, arm = step.after.hold, step.after.arm
    return str(hold.cause) if hold else str(arm) if arm else None


def top_mps(about: messages.About | None) -> float:
    """Return the speed at full throttle from a file's car profile, or the default."""
    guard = about.profile.get("guard") if about else None
    speed_mps = guard.get("top_mps") if isinstance(guard, dict) else None
    return float(speed_mps) if isinstance(speed_mps, int | float) else config.Guard().top_mps


def stints_of(recording: Recording) -> tuple[Stint, ...] | None:
    """Tally a whole file; return None if it contains no steps. Raises OSError."""
    tally = Tally(top_mps(recording.about))
    for message in recording.messages(TOPICS):
        try:
            tally.note(message.log_ns, codec.decode(message.topic, message.data))
        except messages.FormatError:
            continue
    return tally.stints() if tally.has_steps else None
