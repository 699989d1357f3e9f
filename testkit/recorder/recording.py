"""Recordings for tests: made of whole messages, on a card that can be made to fail."""

import errno
from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any

from fpvcar import config
from fpvcar.config import profiles
from fpvcar.drive import gate, mixing
from fpvcar.recorder import setup
from fpvcar.recorder.feed import Sources
from fpvcar.recorder.folder import Folder
from fpvcar.recorder.rotation import Rotation
from fpvcar.recorder.writer import Catalogue, EncodedMessage, Writer
from fpvcar.recordings import codec, messages, names, topics
from fpvcar.recordings.mcap import records
from fpvcar.recordings.mcap.chunks import Source
from fpvcar.recordings.reader import Recording
from fpvcar.runtime import paths
from fpvcar.runtime.units import SECOND_NS
from fpvcar.wire import telemetry

PROFILE = profiles.load(paths.HARDWARE / "bench.toml")
TOPICS = topics.topics(["front"], ["pan", "tilt"])
CATALOGUE = Catalogue(TOPICS)
UTC_NS = 1_795_289_460_000_000_000  # 2026-11-21 19:31:00
SETTINGS = config.Recording(segment_s=5.0)
KEY = b"\0\0\0\1\x67\x42\0\0\0\1\x68\xce\0\0\0\1\x65\xb8\4"
DELTA = b"\0\0\0\1\x41\x9a\1"


class BytesSource(Source):
    """Source over bytes in memory."""

    def __init__(self, data: bytes) -> None:
        self._data, self.size = data, len(data)

    def read(self, at: int, size: int) -> bytes:
        """Return a slice of the bytes."""
        return self._data[at : at + size]

    def close(self) -> None:
        """Do nothing; bytes need no closing."""


def played_sources(
    status: Callable[[float], Sequence[telemetry.Range]] = lambda now_s: (),
    measured: Callable[[], Sequence[telemetry.Measured]] = tuple,
    battery: Callable[[float], telemetry.Battery | None] = lambda now_s: None,
    request_key: Callable[[], bool] = lambda: True,
    buttons: Sequence[str] = (),
) -> Sources:
    """Return sources of a feed with these readings; by default without any."""
    ranges: Any = SimpleNamespace(status=status, measured=measured)
    meter: Any = SimpleNamespace(status=battery)
    camera: Any = SimpleNamespace(request_key=request_key)
    return Sources(ranges, meter, camera, buttons)


def about(segment: int = 1) -> messages.About:
    """Return the description in a file of the bench's car."""
    made = setup.about(PROFILE)
    return messages.About(
        made.car, made.version, "Plague-20261121T193100Z", segment, 17, made.profile
    )


def step(now_ns: int = 5_000_000_000, **more: object) -> messages.Step:
    """Return one run of the gate."""
    fields: dict[str, object] = {
        "now_ns": now_ns,
        "limit": 1.0,
        "latches": gate.Latches(None, None),
        "slew": mixing.Slew(0.1, -0.2, 4.98),
        "throttle": 0.5,
        "steer": -0.25,
        "reason": "driving",
        "after": gate.Latches(None, None),
        "duties": (0.3, -0.123456789),
        "wish": messages.Wish(0.5, -0.25, 4.97),
        "picture_age_s": 0.0123,
        "volts": 7.41,
    }
    return messages.Step(**{**fields, **more})  # type: ignore[arg-type]


def item(topic: str, message: messages.Message, log_ns: int, key: bool = False) -> EncodedMessage:
    """Return a message on its way into a file."""
    number = CATALOGUE.numbers[topic]
    data = codec.encode(message)
    return EncodedMessage(number, log_ns, records.message(number, 1, log_ns, log_ns, data), key)


def second(at_ns: int, pictures: int = 3) -> list[EncodedMessage]:
    """Return a second of a drive: pictures, the first of them key, steps, a range."""
    made = []
    for number in range(pictures):
        log_ns = at_ns + number * SECOND_NS // pictures
        unit = (KEY if number == 0 else DELTA) + log_ns.to_bytes(8, "big") * 8
        picture = messages.Picture(log_ns - 1000, unit)
        made.append(item(messages.CAMERA, picture, log_ns, number == 0))
        made.append(item(messages.STEP, step(log_ns), log_ns + 1))
    made.append(item(messages.RANGE + "front", messages.Reading(0.0, 0.5), at_ns + 7))
    return made


def file(chunks: int = 4, closed: bool = True) -> bytes:
    """Return a recording of so many chunks."""
    writer = Writer(CATALOGUE, about())
    parts = [writer.begin()]
    for number in range(chunks):
        parts += writer.chunk(second(UTC_NS + number * SECOND_NS))
    return b"".join([*parts, writer.end() if closed else b""])


def recording(data: bytes) -> Recording:
    """Parse a file of these bytes."""
    return Recording(BytesSource(data))


def flipped(data: bytes, at: int, mask: int) -> bytes:
    """Return the data with one byte changed."""
    return data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :]


def damaged(data: bytes, *chunks: int) -> bytes:
    """Return the data with one bit flipped in the content of these chunks."""
    for span in [recording(data).chunks[number] for number in chunks]:
        data = flipped(data, span.at + 100, 1)
    return data


def small_files() -> list[bytes]:
    """Return recordings of a few hundred bytes: closed, open, cut, damaged."""
    kinds = {messages.ABOUT, messages.CAMERA, messages.LIGHTS}
    few = Catalogue(
        [
            topics.Topic(one.name, one.coding, one.schema, one.schema_coding, b"{}")
            for one in TOPICS
            if one.name in kinds
        ]
    )
    writer = Writer(few, messages.About("Plague", "0", "P-20261121T193100Z", 1, 17, {}))
    parts = [writer.begin()]
    for log_ns in (UTC_NS, UTC_NS + SECOND_NS, UTC_NS + 2 * SECOND_NS):
        said = (
            (messages.CAMERA, messages.Picture(log_ns, KEY)),
            (messages.LIGHTS, messages.Lights(True)),
        )
        items = []
        for topic, message in said:
            number, data = few.numbers[topic], codec.encode(message)
            record = records.message(number, 1, log_ns, log_ns, data)
            items.append(EncodedMessage(number, log_ns, record))
        parts += writer.chunk(items)
    whole = b"".join(parts)
    flipped = whole[:900] + b"\xff" + whole[901:]
    return [whole + writer.end(), whole, whole[:-70], flipped]


class FakeFolder(Folder):
    """Folder in memory. `fault` is raised by the next write, and by all later ones until it is
    None; `room` bytes are free in all."""

    def __init__(self, room: int = 10**9) -> None:
        self.files: dict[str, bytearray] = {}
        self.synced: dict[str, bytes] = {}
        """State after a power cut."""
        self.room = room
        self.fault: OSError | None = None
        self.did: list[str] = []
        self._open: dict[int, str] = {}
        self._next = 3

    def _try(self, what: str) -> None:
        self.did.append(what)
        if self.fault is not None:
            raise self.fault

    def enter(self) -> None:
        self._try("enter")

    def leave(self) -> None:
        self.did.append("leave")

    def entries(self) -> list[tuple[str, int]]:
        return [(name, len(data)) for name, data in self.files.items()]

    def free(self) -> int:
        return self.room - sum(len(self.files[one]) for one in self.names)

    def create(self, name: str) -> int:
        self._try(f"create {name}")
        if name in self.files:
            raise FileExistsError(errno.EEXIST, "File exists")
        self._next += 1
        self.files[name] = bytearray()
        self._open[self._next] = name
        return self._next

    def append(self, file: int, parts: Sequence[bytes]) -> None:
        data = b"".join(parts)
        self._try("append")
        if len(data) > self.free():
            self.files[self._open[file]] += data[: self.free()]
            raise OSError(errno.ENOSPC, "No space left on device")
        self.files[self._open[file]] += data

    def sync(self, file: int) -> None:
        self._try("sync")
        name = self._open[file]
        self.synced[name] = bytes(self.files[name])

    def shorten(self, file: int, size: int) -> None:
        self.did.append(f"shorten {size}")
        del self.files[self._open[file]][size:]

    def close(self, file: int) -> None:
        self.did.append("close")
        del self._open[file]

    def rename(self, old: str, new: str) -> None:
        self._try(f"rename {old} {new}")
        self.files[new] = self.files.pop(old)
        if old in self.synced:
            self.synced[new] = self.synced.pop(old)
        self._open = {file: new if name == old else name for file, name in self._open.items()}

    def touch(self, name: str) -> None:
        self._try(f"touch {name}")
        self.files[name] = bytearray()

    def write(self, name: str, data: bytes) -> None:
        self._try(f"write {name}")
        self.files[name] = bytearray(data)

    def remove(self, name: str) -> None:
        self.did.append(f"remove {name}")
        self.files.pop(name, None)

    @property
    def names(self) -> list[str]:
        """Return the names in the folder, in order, without checksums."""
        return sorted(one for one in self.files if not one.endswith(names.SUMS))

    def recording(self, name: str) -> Recording:
        """Return the contents of a file, written so far."""
        return recording(bytes(self.files[name]))


def name(number: int) -> str:
    """Return the name of a file of that recording."""
    return names.file_name("Plague-20261121T193100Z", number)


def recorded(
    disk: Folder, seconds: int, settings: config.Recording = SETTINGS, rolling: bool = False
) -> Rotation:
    """Record so many seconds of a drive; the present file is open."""
    rotation = Rotation(disk, settings, CATALOGUE)
    rotation.begin(about(0), rolling)
    go_on(rotation, range(seconds))
    return rotation


def go_on(rotation: Rotation, seconds: Iterable[int]) -> None:
    """Record these seconds after UTC_NS."""
    for number in seconds:
        rotation.write(second(UTC_NS + number * SECOND_NS))


def first_unit(made: Recording) -> bytes:
    """Return the first picture of a file."""
    first = next(made.messages([messages.CAMERA]))
    picture = codec.decode(first.topic, first.data)
    assert isinstance(picture, messages.Picture)
    return picture.unit


def counts(disk: FakeFolder, file: str) -> int:
    """Count the pictures in a file."""
    return disk.recording(file).counts["/camera"]
