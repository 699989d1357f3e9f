"""Requests for key frames: does the camera answer them? Pure."""

ANSWER_UNITS, ANSWERS = 6, 3
"""A key frame among so many units answers a request. So many answers in a row prove
that a camera which left one unanswered before answers after all: a single key frame may
be that of the GOP."""


class KeyRequests:
    """Learns from the units whether the camera answers requests for key frames.

    A program that takes requests may ignore them, as rpicam-vid does.
    """

    def __init__(self) -> None:
        self.answered = True
        self._units: int | None = None
        self._answers = 0

    def asked(self, accepted: bool) -> None:
        """Notes a request. `accepted`: the camera program could be told."""
        if not accepted:
            self._unanswered()
        elif self._units is None:
            self._units = 0

    def seen(self, key: bool) -> None:
        """Notes a unit of the camera."""
        if self._units is None:
            return
        self._units += 1
        if key:
            self._units = None
            self._answers += 1
            self.answered = self.answered or self._answers >= ANSWERS
        elif self._units >= ANSWER_UNITS:
            self._unanswered()

    def _unanswered(self) -> None:
        self.answered, self._answers, self._units = False, 0, None
