"""Check that the gate used the driver's wishes. Pure.

    fresh /wish -> the next /step with a new wish must contain exactly this wish

Each fresh wish triggers the gate at once, and is recorded before that gate run.
"""

from typing import NamedTuple

from fpvcar.recordings.messages import Step, WishIn

FRESH = "fresh"


class RecordedWish(NamedTuple):
    """Message on /wish with its sequence number."""

    wish: WishIn
    sequence: int


class WishMismatch(NamedTuple):
    """Step with a wish that differs from `wish`, the last fresh one."""

    step: Step
    wish: WishIn | None


class WishCheck:
    """Comparison of /wish and /step messages, in recorded order."""

    def __init__(self) -> None:
        self._sequence: int | None = None
        self._fresh: WishIn | None = None
        self._given_s: float | None = None
        self._doubt: WishMismatch | None = None

    def note(self, recorded: RecordedWish) -> WishMismatch | None:
        """Process the next /wish; return the step before it if its wish differed.

        Returns None if a /wish is missing between the two.
        """
        consecutive = self._sequence is not None and recorded.sequence == self._sequence + 1
        mismatch, self._doubt = self._doubt, None
        self._sequence = recorded.sequence
        if recorded.wish.verdict == FRESH:
            self._fresh = recorded.wish
        return mismatch if consecutive else None

    def check(self, step: Step) -> None:
        """Compare the next step with the last fresh wish."""
        wish = step.wish
        if wish is None or wish.received_s in (None, self._given_s):
            return
        self._given_s = wish.received_s
        fresh, self._fresh = self._fresh, None
        matches = fresh is not None and repr((fresh.throttle, fresh.steer)) == repr(
            (wish.throttle, wish.steer)
        )
        if not matches and self._doubt is None:
            self._doubt = WishMismatch(step, fresh)

    def end(self) -> WishMismatch | None:
        """Return the mismatch still pending at the end."""
        return self._doubt if self._sequence is not None else None
