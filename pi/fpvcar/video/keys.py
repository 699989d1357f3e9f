"""Detects whether the camera answers requests for key frames. Pure."""

ANSWER_UNITS, ANSWERS = 6, 3
"""Units within which a key frame counts as the answer to a request, and the number of
consecutive answers that prove a camera after an unanswered request: a single key frame may be
that of the GOP."""


class KeyRequests:
    """Learns from the units whether the camera answers requests for key frames.

    A program that takes requests may ignore them, as rpicam-vid does.
    """

    def __init__(self) -> None:
        self.answered = True
        self.units: int | None = None
        """Units since the open request; None without one."""
        self._answers = 0

    def requested(self, accepted: bool) -> None:
        """Record a request. `accepted`: it could be sent to the camera program."""
        if not accepted:
            self._unanswered()
        elif self.units is None:
            self.units = 0

    def received(self, key: bool) -> None:
        """Record a unit of the camera."""
        if self.units is None:
            return
        self.units += 1
        if key:
            self.units = None
            self._answers += 1
            self.answered = self.answered or self._answers >= ANSWERS
        elif self.units >= ANSWER_UNITS:
            self._unanswered()

    def _unanswered(self) -> None:
        self.answered, self._answers, self.units = False, 0, None
