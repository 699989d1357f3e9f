"""Recordings for tests: some seconds of a car, in files of the recorder's format."""

import asyncio
import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from fpvcar import config
from fpvcar.config import profiles
from fpvcar.drive.control import Control
from fpvcar.recorder.encoder import Message
from fpvcar.recorder.feed import Feed
from fpvcar.recorder.writer import Catalogue, EncodedMessage, Writer
from fpvcar.recordings import codec, messages, topics
from fpvcar.recordings.export.point_cloud import points_of
from fpvcar.recordings.mcap import records
from fpvcar.recordings.messages import Step
from fpvcar.runtime import paths
from fpvcar.runtime.texts import State, Text
from fpvcar.runtime.units import SECOND_NS
from fpvcar.wire import telemetry
from fpvcar.wire.wheels import Answer, Status, WheelsReason
from testkit.cameras.video_source import encode
from testkit.control import PlayedInputs, PlayedWheels
from testkit.recorder.recording import played_sources

PROFILE = profiles.load(paths.HARDWARE / "bench.toml")
BEGAN_NS = 1_763_755_200_000_000_000
"""Start of the recordings, UTC: 2025-11-21 20:00:00."""
OFFSET_NS = BEGAN_NS - 100_000_000_000
"""Offset to the car's own clock, which then shows 100 s."""
SILENT = Text("silent", "silent")
FRAME_NS = 33_333_333
FPS, GOP = 30, 10


FRAME_US = FRAME_NS // 1000


class Logged(NamedTuple):
    """Message with its time of recording and its time of validity, UTC."""

    log_ns: int
    topic: str
    data: bytes
    key: bool = False
    publish_ns: int | None = None


RECORDING = "Plague-20251121T200000Z"


def about(
    segment: int = 1, profile: config.Profile = PROFILE, recording: str = RECORDING
) -> messages.About:
    """Return the car's description of itself."""
    return messages.About(
        "Plague", "0.1.0", recording, segment, OFFSET_NS, msgspec.to_builtins(profile)
    )


def pictures(
    seconds: float, start_ns: int = BEGAN_NS, late_ns: int = 15_000_000, gop: int = GOP, **look: int
) -> Iterator[Logged]:
    """Yield a film: each unit recorded `late_ns` after it was captured. `look`: see `encode`."""
    units = encode(round(seconds * FPS), gop=gop, **look)
    for number, unit in enumerate(units):
        capture_ns = start_ns + number * FRAME_NS
        data = codec.encode(messages.Picture(capture_ns, unit))
        key = number % gop == 0
        yield Logged(capture_ns + late_ns, messages.CAMERA, data, key, capture_ns)


def logged(topic: str, at_s: float, message: messages.Message) -> Logged:
    """Return any message, so many seconds after the beginning."""
    return Logged(BEGAN_NS + round(at_s * SECOND_NS), topic, codec.encode(message))


def measured(seconds: float, start_s: float = 0.0) -> Iterator[Logged]:
    """Yield measurements for a drive: ten per second, a mark in the middle."""
    for count in range(round(seconds * 10)):
        at_s = start_s + count / 10
        far_m = None if count % 7 == 3 else 1.0 + count / 100
        reading = messages.Reading(0.0, far_m)
        yield logged("/range/front", at_s, reading)
        when_ns = BEGAN_NS + round(at_s * SECOND_NS)
        yield logged("/points/front", at_s, points_of(when_ns, reading))
        figures = messages.Plot(when_ns, ("throttle", "front_m"), (0.5, far_m or math.nan))
        yield logged(messages.PLOT, at_s, figures)
        yield logged(messages.BATTERY, at_s, messages.Battery(7.4, 0.5, 0.6, False))
        yield logged(messages.LATENCY, at_s, messages.Latency("Ann", True, "webcodecs", 13.0, 2.0))
    mark = messages.Event(BEGAN_NS, messages.INFO, "look here", "Ann")
    yield logged(messages.MARK, start_s + seconds / 2, mark)


def filmed(
    captures: Iterable[tuple[int, int]], units: Iterable[tuple[bool, bytes]]
) -> Iterator[Logged]:
    """Yield pictures of a Drive; `units` are pairs of key frame flag and bytes."""
    for (came_ns, capture_us), (key, unit) in zip(captures, units, strict=False):
        capture_ns = capture_us * 1000 + OFFSET_NS
        data = codec.encode(messages.Picture(capture_ns, unit))
        yield Logged(came_ns + OFFSET_NS, messages.CAMERA, data, key, capture_ns)


def step_messages(steps: Iterable[Step]) -> Iterator[Logged]:
    """Yield the given runs of the gate as messages."""
    for step in steps:
        yield Logged(step.now_ns + OFFSET_NS, messages.STEP, codec.encode(step))


@dataclass
class McapFile:
    """Contents of a file to write."""

    messages: list[Logged]
    segment: int = 1
    profile: config.Profile = PROFILE
    closed: bool = True
    sequence_from: int = 0
    recording: str = RECORDING

    def chunks(self) -> list[bytes]:
        """Return the file in pieces: its head, a chunk per second, its end."""
        catalogue = Catalogue(topics.topics(["front", "rear"], ["pan"]))
        writer = Writer(catalogue, about(self.segment, self.profile, self.recording))
        pieces = [writer.begin()]
        sequences: dict[str, int] = {}
        batch: list[EncodedMessage] = []
        second = None
        for one in sorted(self.messages, key=lambda one: one.log_ns):
            if second is not None and one.log_ns // SECOND_NS != second:
                pieces.append(b"".join(writer.chunk(batch)))
                batch = []
            second = one.log_ns // SECOND_NS
            number = sequences.get(one.topic, self.sequence_from)
            sequences[one.topic] = number + 1
            publish_ns = one.log_ns if one.publish_ns is None else one.publish_ns
            channel = catalogue.numbers[one.topic]
            record = records.message(channel, number, one.log_ns, publish_ns, one.data)
            batch.append(EncodedMessage(channel, one.log_ns, record, one.key))
        if batch:
            pieces.append(b"".join(writer.chunk(batch)))
        if self.closed:
            pieces.append(writer.end())
        return pieces

    def to(self, path: Path) -> Path:
        """Write the file; return its path."""
        path.write_bytes(b"".join(self.chunks()))
        return path


def two_files(folder: Path, film: Sequence[Logged], sequence_from: int = 60) -> list[Path]:
    """Write two seconds of a film to each of two files; the second continues the first's count."""
    later = McapFile([*film[60:]], segment=2, sequence_from=sequence_from)
    return [McapFile([*film[:60]]).to(folder / "a.mcap"), later.to(folder / "b.mcap")]


def flipped(path: Path, pieces: Sequence[bytes], number: int) -> Path:
    """Write the file with one bit flipped in the middle of a piece."""
    data = bytearray(b"".join(pieces))
    at = sum(map(len, pieces[:number])) + len(pieces[number]) // 2
    data[at] ^= 0x10
    path.write_bytes(data)
    return path


class Drive:
    """Real gate, driven at random by a seed; every run of it in recorded form.

    Wishes, silence, e-stops, faults, handovers, walls, sensors that fail, changes of the guard's
    mode, and ticks that are late.
    """

    def __init__(self, seed: int, guard: str = "limit") -> None:
        self.profile = msgspec.structs.replace(
            PROFILE, guard=msgspec.structs.replace(PROFILE.guard, mode=guard)
        )
        self.steps: list[Step] = []
        self._random = random.Random(seed)
        self._now_ns = 100_000_000_000
        self.captures = [(self._now_ns, self._now_ns // 1000)]
        """Arrival of each picture in ns, and its capture in us: CLOCK_MONOTONIC."""
        self._blind_until_s = 0.0
        self._walls: dict[str, tuple[float, float | None, State]] = {}
        feed = Feed(
            self,  # type: ignore[arg-type]
            played_sources(),
        )
        self.control = Control(
            self.profile,
            PlayedWheels(),
            PlayedInputs(self._picture_age_s, self._volts, self._ranges),
            asyncio.Event(),
            clock_ns=lambda: self._now_ns,
            watcher=feed.step,
        )
        self._broken = feed.broken

    # --- the recorder's part ---

    idle, begun, began_ns, offset_ns = False, 0, 0, 0

    def put(self, topic: str, message: Message, at_ns: int | None = None) -> None:
        """Keep the steps, encoded and decoded again."""
        if topic == messages.STEP:
            made = message() if callable(message) else message
            step = codec.decode(topic, codec.encode(made))
            assert isinstance(step, Step)
            self.steps.append(step)

    def note(self, *_: Any) -> None:
        pass

    def attend(self, now: bool = True) -> None:
        pass

    def rest(self) -> None:
        pass

    # --- the world ---

    def _volts(self, now_s: float) -> float | None:
        return self._random.choice([None, 7.4, 7.1234567])

    def _picture_age_s(self, now_s: float) -> float | None:
        return max(0.0, now_s - self.captures[-1][1] / 1e6)

    def _ranges(self, now_s: float) -> tuple[telemetry.Range, ...]:
        return tuple(
            telemetry.Range(name, bearing, *self._walls_of(name, now_s))
            for name, bearing in (("front", 0.0), ("rear", 180.0), ("side", 90.0))
        )

    def _walls_of(self, name: str, now_s: float) -> tuple[float | None, float, State]:
        at_s, range_m, state = self._walls.get(name, (now_s, 2.0, "ok"))
        if now_s - at_s > 0.033:
            range_m = 0.1 + 3.0 * self._random.random()
            if self._random.random() < 0.05:
                range_m = None
            state = "ok" if self._random.random() < 0.97 else SILENT
            at_s = now_s - 0.004
        self._walls[name] = at_s, range_m, state
        return range_m, now_s - at_s, state

    def go(self, seconds: float) -> list[Step]:
        """Drive for some seconds; return all steps so far."""
        until_ns = self._now_ns + round(seconds * 1e9)
        while self._now_ns < until_ns:
            self._now_ns += self._random.randrange(200_000, 30_000_000)
            if self._now_ns / 1e9 > self._blind_until_s:
                capture_us = self._now_ns // 1000 // FRAME_US * FRAME_US
                if capture_us > self.captures[-1][1]:
                    self.captures.append((self._now_ns, capture_us))
            self._happens(self._now_ns / 1e9)
        assert not self._broken, "the feed refused a step"
        return self.steps

    def _happens(self, now_s: float) -> None:
        control, chance = self.control, self._random.random()
        throttle = self._random.choice([0.0, 1.0, -1.0, self._random.random()])
        if chance < 0.7:
            control.wish(throttle, self._random.uniform(-1.0, 1.0), now_s)
        elif chance < 0.8:
            control.wish(0.0, 0.0, now_s)
        elif chance < 0.94:
            control.step()
        else:
            self._strikes(self._random.randrange(12))

    def _strikes(self, what: int) -> None:
        control, applied = self.control, Status.APPLIED
        stopped, none = Status.STOPPED, WheelsReason.NONE
        (
            lambda: control.estop("Bob", False),
            lambda: control.estop("Mum", True),
            lambda: control.resume(True),
            lambda: control.resume(False),
            lambda: control.clear_wish(lost=True),
            control.handover,
            lambda: control.wheels_answer(Answer(applied, none, 1, 0)),
            lambda: control.wheels_answer(Answer(stopped, WheelsReason.PINS_SILENT, 1, 0)),
            lambda: control.guard(self._random.choice(["off", "warn", "limit"])),
            self._goes_blind,
            self._falls_silent,
            lambda: control.resume(True),
        )[what]()

    def _goes_blind(self) -> None:
        self._blind_until_s = self._now_ns / 1e9 + 0.5

    def _falls_silent(self) -> None:
        self._now_ns += 400_000_000
        self.control.step()
