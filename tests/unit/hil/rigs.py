"""Played rig: each part is present unless it is taken away."""

from collections.abc import Callable
from typing import Any

from fpvcar.hil.results import Limit, Measured
from fpvcar.hil.rig import Check


class PlayedRig:
    """Rig without the given parts; counts its rests."""

    where = "bench"

    def __init__(self, **lacking: str) -> None:
        self.lacking, self.rests = lacking, 0

    def lacks(self, part: str) -> str:
        return self.lacking.get(part, "")

    def rest(self) -> None:
        self.rests += 1


def check(
    act: Callable[[Any], Measured] | None, *needs: str, most: float = 1.0, **more: Any
) -> Check:
    """Return a check with a limit of so many seconds."""
    limit = Limit(most, "s", "a test")
    return Check("one", "pins", "It works.", limit, needs, act, **more)


def values(*figures: float) -> Callable[[Any], Measured]:
    """Return an action that measures these in turn."""
    left = list(figures)
    return lambda rig: Measured(left.pop(0), ((0.0, 1.0), (left[0] if left else 1, 0.0)))
