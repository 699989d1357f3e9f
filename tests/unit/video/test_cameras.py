"""Contract of every camera's process: the bench's, the real ones over fakes."""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import pytest
from testkit.cameras.camera import BENCH, Camera, decode, decoder, nal_types

from fpvcar.video import h264

pytestmark = pytest.mark.slow

SIZE = ("--width=320", "--height=240")


@dataclass(frozen=True)
class Kind:
    """Process of a camera. `keys`: it gives key frames on request. `rates`: it takes another
    bitrate while it runs."""

    name: str
    program: str
    options: tuple[str, ...] = SIZE
    env: Mapping[str, str] = field(default_factory=dict)
    keys: bool = True
    rates: bool = True


PICAMERA = "testkit.cameras.fake_picamera"
RPICAM = "testkit.cameras.rpicam_vid"
WEBCAM = "testkit.cameras.fake_webcam"
KINDS = (
    Kind("bench", BENCH, ("--source=strip", *SIZE)),
    Kind("v4l2 yuyv", WEBCAM, env={"WEBCAM_FORMATS": "YUYV"}),
    Kind("v4l2 mjpeg", WEBCAM, env={"WEBCAM_FORMATS": "MJPG"}),
    Kind("picamera2 zero", PICAMERA, env={"PICAMERA_BOARD": "zero"}),
    Kind("picamera2 pi5", PICAMERA, env={"PICAMERA_BOARD": "pi5"}),
    Kind(
        "picamera2 zero by software",
        PICAMERA,
        (*SIZE, "--software"),
        {"PICAMERA_BOARD": "zero", "PICAMERA_ENCODER": "silent"},
    ),
    Kind("rpicam zero", RPICAM, keys=False, rates=False),
    Kind("rpicam pi5", RPICAM, keys=False, rates=False, env={"RPICAM_BOARD": "pi5"}),
    Kind(
        "v4l2 h264", WEBCAM, rates=False, env={"WEBCAM_FORMATS": "H264", "WEBCAM_CONTROLS": "key"}
    ),
    Kind(
        "v4l2 h264 without requests",
        WEBCAM,
        keys=False,
        rates=False,
        env={"WEBCAM_FORMATS": "H264", "WEBCAM_GOP": "20"},
    ),
)
SOON_PICTURES = 10
"""A third of the way to the next automatic key frame."""
Start = Callable[..., Camera]


@pytest.fixture
def start() -> Iterator[Start]:
    cameras: list[Camera] = []

    def one(kind: Kind, *more: str) -> Camera:
        cameras.append(Camera(*kind.options, *more, program=kind.program, **kind.env))
        return cameras[-1]

    yield one
    for each in cameras:
        each.close()


def some(*needs: str) -> pytest.MarkDecorator:
    """Parametrize with the kinds that have all these abilities."""
    kinds = [kind for kind in KINDS if all(getattr(kind, need) for need in needs)]
    return pytest.mark.parametrize("kind", kinds, ids=lambda kind: kind.name)


@some()
def test_units_are_whole_stamped_and_begin_with_a_key(start: Start, kind: Kind) -> None:
    camera, codec = start(kind), decoder()
    before_us = time.monotonic_ns() // 1000
    records = [camera.record() for _ in range(40)]
    after_us = time.monotonic_ns() // 1000
    assert records[0].key
    for record in records:
        picture = decode(codec, record.unit)
        assert (picture.width, picture.height) == (320, 240)
        assert record.key == h264.is_key(record.unit)
        assert before_us < record.capture_us <= after_us
        if record.key:
            types = [kind for kind in nal_types(record.unit) if kind in (5, 7, 8)]
            assert types[:3] == [7, 8, 5], "SPS and PPS come before an IDR"
    stamps = [record.capture_us for record in records]
    assert stamps == sorted(set(stamps))
    assert sum(record.key for record in records) >= 2, "one at least each second"


@some("keys")
def test_requested_key_frame_comes_soon(start: Start, kind: Kind) -> None:
    camera = start(kind)
    for _ in range(5):
        camera.record()
    asked_us = time.monotonic_ns() // 1000
    camera.ask("key")
    since = 0  # pictures; earlier ones wait in the pipe if we are late
    while not (record := camera.record()).key:
        since += record.capture_us > asked_us
        assert since < SOON_PICTURES


@some("rates")
def test_bitrate_changes_while_the_camera_runs(start: Start, kind: Kind) -> None:
    camera, codec = start(kind), decoder()
    for _ in range(5):
        decode(codec, camera.record().unit)
    camera.ask("bitrate 60000")
    for _ in range(40):
        decode(codec, camera.record().unit)
    assert "ignored" not in camera.end_and_said()


@some()
def test_nonsense_on_stdin_is_said_and_ignored(start: Start, kind: Kind) -> None:
    camera = start(kind)
    camera.record()
    camera.ask("look bright 1 2")
    for _ in range(3):
        camera.record()
    assert "ignored: b'look bright 1 2'" in camera.end_and_said()


@some()
def test_process_ends_with_its_stdin_and_leaves_no_child(start: Start, kind: Kind) -> None:
    camera = start(kind)
    camera.record()
    group = camera.process.pid
    assert camera.end() == 0
    assert "Traceback" not in camera.said()
    with pytest.raises(ProcessLookupError):
        os.killpg(group, 0)


@some()
def test_process_ends_when_its_output_is_closed(start: Start, kind: Kind) -> None:
    camera = start(kind)
    camera.record()
    assert camera.process.stdout
    camera.process.stdout.close()
    assert camera.process.wait(20.0) == 0
    assert "Traceback" not in camera.said()


@some()
def test_slow_reader_gets_a_current_picture(start: Start, kind: Kind) -> None:
    camera, codec = start(kind), decoder()
    for _ in range(3):
        decode(codec, camera.record().unit)
    time.sleep(1.0)
    read_us = time.monotonic_ns() // 1000
    for _ in range(12):  # at most the contents of the pipe, and then whole pictures
        record = camera.record()
        decode(codec, record.unit)
    assert record.capture_us > read_us - 300_000
