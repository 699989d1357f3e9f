"""Check of the picture age used by the gate. Pure.

    /camera -> the next /step must have the age of exactly this picture

The camera's newest picture is recorded before the gate runs again. A picture dropped by the
recorder leaves a gap in the sequence numbers of /camera. The gap is visible only with the next
picture; until then, a difference is inconclusive.
"""

from typing import NamedTuple

from fpvcar.recordings.messages import Step


class CapturedPicture(NamedTuple):
    """Picture on /camera: its capture time (CLOCK_MONOTONIC) and sequence number."""

    capture_ns: int
    sequence: int


class AgeMismatch(NamedTuple):
    """Step with a picture age other than the expected `age_s`."""

    step: Step
    age_s: float


class AgeCheck:
    """Comparison of /camera and /step messages, in recorded order."""

    def __init__(self) -> None:
        self._newest: CapturedPicture | None = None
        self._doubt: AgeMismatch | None = None

    def note(self, picture: CapturedPicture) -> AgeMismatch | None:
        """Process the next picture; return the first step since the last one with a wrong age.

        Returns None if a picture is missing between the two.
        """
        before, mismatch = self._newest, self._doubt
        self._newest, self._doubt = picture, None
        consecutive = before is not None and picture.sequence == before.sequence + 1
        return mismatch if consecutive else None

    def check(self, step: Step) -> None:
        """Check the next step. Skipped if the camera has ended, as there is no age to compare."""
        if self._newest is None or step.picture_age_s is None:
            return
        capture_s = self._newest.capture_ns // 1000 / 1e6
        age_s = max(0.0, step.now_ns / 1e9 - capture_s)
        if self._doubt is None and repr(age_s) != repr(step.picture_age_s):
            self._doubt = AgeMismatch(step, age_s)
