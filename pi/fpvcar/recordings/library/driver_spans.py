"""Who was at the wheel in one file, when, how far, and what stopped the car. Pure.

The recorder tallies what it writes and puts the result last into each file, so that a
list of thousands reads no steps; of a file without it (one that was never closed, or of
an older version) the same tally is made from its steps.
"""

from collections import Counter

from fpvcar import config
from fpvcar.recordings import messages
from fpvcar.recordings.messages import Step, Stint, Turn
from fpvcar.recordings.reader import Recording
from fpvcar.runtime.units import SECOND_NS

HOLE_NS = 2 * SECOND_NS
"""Without a step for so long nobody knows who drove: the stint ends there."""
STEP_MOST_NS = 100_000_000
"""The setpoint of one step counts for no longer: the wheels let go then."""
TOPICS = frozenset({messages.STEP, messages.DRIVER})


class _Open:
    """The stint of now."""

    def __init__(self, name: str, now_ns: int) -> None:
        self.name, self.from_ns, self.to_ns = name, now_ns, now_ns
        self.metres, self.stops = 0.0, Counter[str]()

    def closed(self) -> Stint:
        """Rounds to what a list shows."""
        return Stint(self.from_ns, self.to_ns, self.name, round(self.metres, 2), dict(self.stops))


class Tally:
    """Follows the messages of TOPICS, in the order of their times."""

    def __init__(self, top_mps: float) -> None:
        """`top_mps` is the car's speed at full throttle."""
        self.heard = False
        """Was there any step? Without one nothing is known of who drove."""
        self._top_mps = top_mps
        self._done: list[Stint] = []
        self._open: _Open | None = None
        self._name = ""
        self._cause: str | None = ""

    def stints(self) -> tuple[Stint, ...]:
        """Lists the stints so far, the one of now as it is."""
        return (*self._done, *([self._open.closed()] if self._open else []))

    def note(self, log_ns: int, message: object) -> None:
        """Takes the next message; what is neither step nor turn says nothing here."""
        if isinstance(message, Turn):
            self._turn(log_ns, message.name or "")
        elif isinstance(message, Step):
            self._step(log_ns, message)

    def _turn(self, log_ns: int, name: str) -> None:
        self._name = name
        stint = self._open
        if stint is None or not name or stint.name == name:
            return
        if stint.name:  # another driver, without a pause
            self._close()
            self._open = _Open(name, log_ns)
        else:
            stint.name = name

    def _step(self, log_ns: int, step: Step) -> None:
        if self._open is not None and log_ns - self._open.to_ns > HOLE_NS:
            self._close()
        cause = _cause(step)
        stopped = cause is not None and self.heard and cause != self._cause
        self.heard, self._cause = True, cause
        if step.reason == "nobody":
            self._close()
            return
        stint = self._open = self._open or _Open(self._name, log_ns)
        passed_ns = min(max(0, log_ns - stint.to_ns), STEP_MOST_NS)
        # What mixing remembers is what the motors were given since the last step.
        speed_mps = abs(step.slew.drive) * self._top_mps
        stint.metres += speed_mps * passed_ns / SECOND_NS
        stint.to_ns = max(stint.to_ns, log_ns)
        if stopped:
            stint.stops[str(cause)] += 1

    def _close(self) -> None:
        if self._open is not None:
            self._done.append(self._open.closed())
        self._open = None


def _cause(step: Step) -> str | None:
    """Why the car stands after this step; None if nothing stopped it."""
    if step.reason != "stopped":
        return None
    hold, arm = step.after.hold, step.after.arm
    return str(hold.cause) if hold else str(arm) if arm else None


def top_mps(about: messages.About | None) -> float:
    """Finds the speed at full throttle in what a file says of its car."""
    guard = about.profile.get("guard") if about else None
    found = guard.get("top_mps") if isinstance(guard, dict) else None
    return float(found) if isinstance(found, int | float) else config.Guard().top_mps


def stints_of(recording: Recording) -> tuple[Stint, ...] | None:
    """Tallies a whole file; None where no step says who drove. Raises OSError."""
    tally = Tally(top_mps(recording.about))
    for one in recording.messages(TOPICS):
        try:
            tally.note(one.log_ns, messages.decode(one.topic, one.data))
        except messages.FormatError:
            continue
    return tally.stints() if tally.heard else None
