"""Checks that the gate knew the true age of the picture. Pure.

    /camera -> the next /step must have the age of just this picture

The camera's newest picture is recorded before the gate runs again. One that the
recorder had to drop leaves a gap in the numbers of /camera, which shows only with the
next picture: until then a difference is in doubt.
"""

from typing import NamedTuple

from fpvcar.recordings.messages import Step


class Seen(NamedTuple):
    """A picture on /camera: its capture, CLOCK_MONOTONIC, and its number."""

    capture_ns: int
    sequence: int


class Aged(NamedTuple):
    """A step that had another age of the picture than `age_s`."""

    step: Step
    age_s: float


class Ages:
    """Follows /camera and /step in the order in which they were recorded."""

    def __init__(self) -> None:
        self._newest: Seen | None = None
        self._doubt: Aged | None = None

    def note(self, picture: Seen) -> Aged | None:
        """Take the next picture. Return the first step since the last one that had
        another age, if no picture is missing between the two."""
        before, doubt = self._newest, self._doubt
        self._newest, self._doubt = picture, None
        whole = before is not None and picture.sequence == before.sequence + 1
        return doubt if whole else None

    def check(self, step: Step) -> None:
        """Take the next step. A camera that has ended leaves no age to compare."""
        if self._newest is None or step.picture_age_s is None:
            return
        capture_s = self._newest.capture_ns // 1000 / 1e6
        age_s = max(0.0, step.now_ns / 1e9 - capture_s)
        if self._doubt is None and repr(age_s) != repr(step.picture_age_s):
            self._doubt = Aged(step, age_s)
