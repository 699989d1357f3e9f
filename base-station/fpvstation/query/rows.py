"""Rows of a session's tables, from its recordings. Pure apart from the given recordings.

Recording -> Sampler -> samples: one for each 100 ms, with the newest value of each figure
                     -> events: stops, marks, hand-overs, faults, log lines
"""

from operator import attrgetter
from typing import NamedTuple

from fpvcar.library.driver_spans import cause_of
from fpvcar.recordings import codec, messages
from fpvcar.recordings.messages import Event, Health, Latency, Reading, Step, Turn
from fpvcar.recordings.reader import Recording
from fpvcar.runtime.units import SECOND_NS

SAMPLE_NS = SECOND_NS // 10
RANGE_HELD_NS = SECOND_NS
"""Age from which a range is unknown; sensors measure 5 to 30 times a second."""
LINK_HELD_NS = 3 * SECOND_NS
"""Age from which a page's figures are unknown; it sends them once a second."""
TOPICS = frozenset(
    {
        messages.STEP,
        messages.DRIVER,
        messages.BATTERY,
        messages.HEALTH,
        messages.LATENCY,
        messages.EVENT,
        messages.MARK,
    }
)
WELL = {"ok", "none", "starting"}
"""States of sensors that are not faults."""


class SampleRow(NamedTuple):
    """Row of the table `samples`; the names of its columns are those of `fpvcar export`.

    The four ranges are the shortest ones of the sensors within 45 degrees of that side.
    """

    time_ns: int
    driver: str | None
    wish_throttle_share: float | None
    wish_steer_share: float | None
    throttle_share: float
    steer_share: float
    drive_duty_share: float | None
    steer_duty_share: float | None
    reason: str
    cause: str | None
    front_m: float | None
    left_m: float | None
    rear_m: float | None
    right_m: float | None
    battery_v: float | None
    picture_age_s: float | None
    picture_ms: float | None
    link_ms: float | None
    share_lost: float | None


class EventRow(NamedTuple):
    """Row of the table `events`. `kind` is "stop", "mark", "driver", "fault" or "log"."""

    time_ns: int
    driver: str | None
    kind: str
    cause: str | None
    name: str
    text: str


class _Range(NamedTuple):
    """Last reading of a sensor."""

    at_ns: int
    side: int
    range_m: float | None


class Sampler:
    """Rows of one session. Pass its recordings in the order of their times, then call `end`."""

    def __init__(self) -> None:
        self.samples: list[SampleRow] = []
        """Complete rows; the caller may take them away."""
        self.events: list[EventRow] = []
        self._step: Step | None = None
        self._step_ns = 0
        self._cause: str | None = ""
        self._driver: str | None = None
        self._ranges: dict[str, _Range] = {}
        self._link: tuple[int, Latency] | None = None
        self._states: dict[str, str] = {}
        self._faults: frozenset[str] = frozenset()

    def add(self, recording: Recording) -> None:
        """Add the messages of a file. Raises OSError."""
        topics = {topic for topic in recording.counts if topic.startswith(messages.RANGE)} | TOPICS
        # Ranges are recorded in batches, up to 0.2 s after their time.
        for message in sorted(recording.messages(topics), key=attrgetter("log_ns")):
            try:
                decoded = codec.decode(message.topic, message.data)
            except messages.FormatError:  # of another program, or of a newer car
                continue
            if self._step and message.log_ns // SAMPLE_NS != self._step_ns // SAMPLE_NS:
                self.end()
            self._note(message.log_ns, message.topic, decoded)

    def end(self) -> None:
        """Complete the last row."""
        if self._step:
            self.samples.append(self._row(self._step_ns, self._step))
        self._step = None

    def _note(self, log_ns: int, topic: str, message: messages.Message) -> None:
        if isinstance(message, Step):
            self._step, self._step_ns = message, log_ns
            cause, before = cause_of(message), self._cause
            self._cause = cause
            if cause and before not in ("", cause):  # "" before the first step
                self._event(log_ns, "stop", messages.GATE, cause, cause)
        elif isinstance(message, Turn):
            if message.name != self._driver:
                self._driver = message.name
                text = f"{message.name or 'no driver'}: {message.why}"
                self._event(log_ns, "driver", messages.SEAT, text)
        elif isinstance(message, Reading):
            side = round(message.bearing_deg / 90.0) % 4
            range_m = message.range_m if message.state == "ok" else None
            self._ranges[topic] = _Range(log_ns, side, range_m)
            self._state(log_ns, topic.removeprefix(messages.RANGE), message.state)
        elif topic == messages.BATTERY:
            self._state(log_ns, "battery", str(getattr(message, "state", "ok")))
        elif isinstance(message, Latency):
            if message.drives:
                self._link = log_ns, message
        elif isinstance(message, Health):
            for fault in message.faults:
                if fault not in self._faults:
                    self._event(log_ns, "fault", "computer", fault)
            self._faults = frozenset(message.faults)
        elif isinstance(message, Event):
            failed = message.level >= messages.WARNING and message.name != messages.GATE
            kind = "mark" if topic == messages.MARK else "fault" if failed else "log"
            self._event(log_ns, kind, message.name, message.text)

    def _state(self, log_ns: int, name: str, state: str) -> None:
        """Add an event if a sensor begins to fail."""
        if state != self._states.get(name, "ok") and state not in WELL:
            self._event(log_ns, "fault", name, state)
        self._states[name] = state

    def _event(
        self, log_ns: int, kind: str, name: str, text: str, cause: str | None = None
    ) -> None:
        self.events.append(EventRow(log_ns, self._driver, kind, cause, name, text))

    def _row(self, at_ns: int, step: Step) -> SampleRow:
        nearest: list[float | None] = [None] * 4
        for reading in self._ranges.values():
            shortest = nearest[reading.side]
            fresh = at_ns - reading.at_ns < RANGE_HELD_NS
            if fresh and reading.range_m is not None:
                if shortest is None or reading.range_m < shortest:
                    nearest[reading.side] = reading.range_m
        link = self._link[1] if self._link and at_ns - self._link[0] < LINK_HELD_NS else None
        wish, duties = step.wish, (*step.duties, None, None)
        front_m, left_m, rear_m, right_m = nearest
        return SampleRow(
            at_ns,
            self._driver,
            wish.throttle if wish else None,
            wish.steer if wish else None,
            step.throttle,
            step.steer,
            duties[0],
            duties[1],
            step.reason,
            self._cause,
            front_m,
            left_m,
            rear_m,
            right_m,
            step.volts,
            step.picture_age_s,
            link.picture_ms if link else None,
            link.link_ms if link else None,
            link.lost if link else None,
        )
