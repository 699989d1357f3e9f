"""Plot data of one file, reduced to few points for a page. Pure.

The minimum and maximum of each time step are kept, so every spike is visible however long the drive
was.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec
from msgspec import Struct

from fpvcar.config import AimServo
from fpvcar.recordings import codec, messages
from fpvcar.recordings.messages import Mark
from fpvcar.recordings.reader import Recording
from fpvcar.recordings.repair.damage import damaged_at_ns
from fpvcar.runtime.texts import Phrase, Text
from fpvcar.runtime.units import SECOND_NS

LOST_HERE = Phrase("lost_here", "{count} bytes are missing ({reason})")

POINTS = 600


class Series(Struct, frozen=True):
    """Line of a plot; `t` is in seconds from the file's start. A value of None breaks the line."""

    group: str
    name: str
    unit: str
    t: list[float]
    v: list[float | None]


class ReasonChange(Struct, frozen=True):
    """Change of the gate's reason at time `t`."""

    t: float
    reason: str


class Gap(Struct, frozen=True):
    """Place in the file with missing data."""

    t: float
    words: Text


class ServoLimits(Struct, frozen=True):
    """Limits and rest of a servo that does not steer, in degrees."""

    least_deg: float
    most_deg: float
    rest_deg: float


class Plots(Struct, frozen=True):
    """Plot data of one file; `servos` that do not steer by name, for their series "angle"."""

    start_ms: float
    seconds: float
    series: list[Series]
    reasons: list[ReasonChange]
    marks: list[Mark]
    gaps: list[Gap]
    servos: dict[str, ServoLimits]


class Line(NamedTuple):
    """Identity of a plot line."""

    group: str
    name: str
    unit: str


Value = tuple[Line, float | None]


def values(topic: str, message: messages.Message) -> Iterator[Value]:
    """Yield the values of a message that can be plotted."""
    if isinstance(message, messages.Reading):
        name = topic.removeprefix(messages.RANGE)
        yield Line("range", name, "m"), message.range_m
    elif isinstance(message, messages.Servo):
        yield Line("angle", topic.removeprefix(messages.SERVO), "°"), message.deg
    elif isinstance(message, messages.Battery):
        valid = message.state == "ok"  # otherwise these values are outdated
        yield Line("battery", "volts", "V"), message.volts if valid else None
        yield Line("current", "amps", "A"), message.amps if valid else None
    elif isinstance(message, messages.Step):
        wish = message.wish
        yield Line("setpoint", "throttle (wish)", ""), wish.throttle if wish else None
        yield Line("setpoint", "throttle", ""), message.throttle
        yield Line("setpoint", "steer", ""), message.steer
        for name, duty in zip(("drive", "steer"), message.duties, strict=False):
            yield Line("duty", name, ""), duty
    elif isinstance(message, messages.Latency) and message.drives:
        yield Line("latency", "picture", "ms"), message.picture_ms
        yield Line("latency", "link", "ms"), message.link_ms
        percent = None if message.lost is None else 100.0 * message.lost
        yield Line("lost", "lost", "%"), percent


def servos_of(recording: Recording) -> dict[str, ServoLimits]:
    """Return the servos of a recorded profile; {} if it is damaged or of another version."""
    profile = recording.about.profile if recording.about else {}
    try:
        servos = msgspec.convert(profile.get("servos", {}), dict[str, AimServo])
    except msgspec.ValidationError:
        return {}
    return {
        name: ServoLimits(servo.least_deg, servo.most_deg, servo.rest_deg)
        for name, servo in servos.items()
    }


def thinned(
    points: Iterable[tuple[float, float | None]], seconds: float, most: int
) -> tuple[list[float], list[float | None]]:
    """Reduce points to about `most`: the minimum and maximum of each time step."""
    kept = list(points)
    if len(kept) > most:
        kept = _thin(kept, max(seconds, 1e-9) / max(1, most // 2))
    times = [round(t, 3) for t, _ in kept]  # resolution of the plot
    return times, [None if v is None else round(v, 4) for _, v in kept]


def _thin(
    points: list[tuple[float, float | None]], step_s: float
) -> list[tuple[float, float | None]]:
    kept: list[tuple[float, float | None]] = []
    interval: list[tuple[float, float | None]] = []
    for point in points:
        if interval and int(point[0] / step_s) != int(interval[0][0] / step_s):
            kept += _extremes(interval)
            interval = []
        interval.append(point)
    return kept + _extremes(interval)


def _extremes(interval: list[tuple[float, float | None]]) -> list[tuple[float, float | None]]:
    present = [(v, t) for t, v in interval if v is not None]
    if not present:
        return interval[:1]
    extremes = sorted({min(present)[::-1], max(present)[::-1]})
    # Keep a break of the line at the end of the time step.
    return [*extremes, interval[-1]] if interval[-1][1] is None else [*extremes]


def plots_of(recording: Recording, most: int = POINTS) -> Plots:
    """Return the plot data of one file. Raises OSError."""
    start_ns, lines = recording.start_ns, dict[Line, list[tuple[float, float | None]]]()
    seconds = (recording.end_ns - start_ns) / SECOND_NS
    reasons: list[ReasonChange] = []
    marks: list[Mark] = []
    topics = {topic for topic in recording.counts if not topic.startswith(messages.POINTS)} - {
        messages.CAMERA,
        messages.WISH,
        messages.ABOUT,
        messages.PLOT,
    }
    for record in recording.messages(topics):
        t = (record.log_ns - start_ns) / SECOND_NS
        try:
            message = codec.decode(record.topic, record.data)
        except messages.FormatError:  # a topic of another program or of a newer car
            continue
        for line, value in values(record.topic, message):
            lines.setdefault(line, []).append((t, value))
        if isinstance(message, messages.Step):
            if not reasons or reasons[-1].reason != message.reason:
                reasons.append(ReasonChange(t, message.reason))
        elif isinstance(message, messages.Event) and record.topic == messages.MARK:
            marks.append(Mark(t, message.text))
    series = [Series(*line, *thinned(points, seconds, most)) for line, points in lines.items()]
    gaps = [
        Gap(
            (damaged_at_ns(recording, damage) - start_ns) / SECOND_NS,
            LOST_HERE(count=damage.length, reason=damage.reason),
        )
        for damage in recording.damage
    ]
    return Plots(start_ns / 1e6, seconds, series, reasons, marks, gaps, servos_of(recording))
