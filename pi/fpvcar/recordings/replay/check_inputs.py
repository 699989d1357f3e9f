"""Checks that the gate was given what the driver had wished. Pure.

    /wish that is fresh -> the next /step with another wish must have just this one

Each fresh wish runs the gate at once, and is recorded before that run is.
"""

from typing import NamedTuple

from fpvcar.recordings.messages import Step, WishIn

FRESH = "fresh"


class Given(NamedTuple):
    """A message on /wish, and its number."""

    wish: WishIn
    sequence: int


class Unlike(NamedTuple):
    """A step that was given what no /wish before it says; `wish` is the last one."""

    step: Step
    wish: WishIn | None


class Wishes:
    """Follows /wish and /step in the order in which they were recorded."""

    def __init__(self) -> None:
        self._sequence: int | None = None
        self._fresh: WishIn | None = None
        self._given_s: float | None = None
        self._doubt: Unlike | None = None

    def note(self, given: Given) -> Unlike | None:
        """Takes the next /wish. Returns the step before it that was given another one,
        if no /wish is missing between."""
        whole = self._sequence is not None and given.sequence == self._sequence + 1
        doubt, self._doubt = self._doubt, None
        self._sequence = given.sequence
        if given.wish.verdict == FRESH:
            self._fresh = given.wish
        return doubt if whole else None

    def check(self, step: Step) -> None:
        """Takes the next step."""
        wish = step.wish
        if wish is None or wish.received_s in (None, self._given_s):
            return
        self._given_s = wish.received_s
        fresh, self._fresh = self._fresh, None
        like = fresh is not None and repr((fresh.throttle, fresh.steer)) == repr(
            (wish.throttle, wish.steer)
        )
        if not like and self._doubt is None:
            self._doubt = Unlike(step, fresh)

    def end(self) -> Unlike | None:
        """Returns what is left at the end."""
        return self._doubt if self._sequence is not None else None
