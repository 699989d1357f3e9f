"""Process of the bench camera: records, pictures, requests, and forbidden behaviour."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from testkit.cameras.camera import Camera, decode, decoder, luma, nal_types

from fpvbench import soc
from fpvbench.camera import process
from fpvbench.camera import strip as camera_strip

pytestmark = pytest.mark.slow

SMALL = ("--source=strip", "--width=320", "--height=240")
Start = Callable[..., Camera]


@pytest.fixture
def start() -> Iterator[Start]:
    cameras: list[Camera] = []

    def one(*options: str, **env: str) -> Camera:
        cameras.append(Camera(*options, **env))
        return cameras[-1]

    yield one
    for each in cameras:
        each.close()


# --- the process, without EGL --------------------------------------------------------


def test_stamped_records_decode_to_their_time(start: Start) -> None:
    strip, codec = start("--source=strip", "--fps=29.9"), decoder()
    last = 0
    for index in range(20):
        record = strip.record()
        assert record.key or index, "the first picture is no key frame"
        picture = decode(codec, record.unit)
        assert (picture.width, picture.height) == (640, 480)
        clock = record.capture_us // 1000
        assert camera_strip.read(luma(picture)) == clock % 2**32
        assert last < record.capture_us <= time.monotonic_ns() // 1000
        last = record.capture_us
    assert strip.end() == 0
    assert "strip 640x480 at 29.9 fps" in strip.said()


@pytest.mark.parametrize("fps", [30, 60, 90])
@pytest.mark.parametrize(("width", "height"), [(640, 480), (1280, 720)])
def test_pi_camera_modes_give_their_size_and_rate(
    start: Start, width: int, height: int, fps: int
) -> None:
    strip = start(
        "--source=strip", f"--width={width}", f"--height={height}", f"--fps={fps}", "--gop-s=0.5"
    )
    records, codec = [strip.record() for _ in range(10)], decoder()
    pictures = [decode(codec, record.unit) for record in records]
    assert {(each.width, each.height) for each in pictures} == {(width, height)}
    clocks = [camera_strip.read(luma(each)) for each in pictures]
    assert clocks == [record.capture_us // 1000 % 2**32 for record in records]
    gaps_us = [b.capture_us - a.capture_us for a, b in zip(records, records[1:], strict=False)]
    assert sorted(gaps_us)[4] > 0.9e6 / fps  # never faster than requested


def test_key_on_request_within_two_frames(start: Start) -> None:
    strip = start(*SMALL)
    strip.record()

    def frames() -> int:
        """Return the number of pictures after a request, up to its key frame."""
        asked_us, since = time.monotonic_ns() // 1000, 0
        strip.ask("key")
        while not (record := strip.record()).key:
            since += record.capture_us > asked_us
            assert since < 100, "no key frame"
        assert nal_types(record.unit)[:2] == [7, 8]
        return since + 1

    assert min(frames() for _ in range(5)) <= 2, "at least once in five, on a busy machine"
    assert not all(strip.record().key for _ in range(3)), "one for each request"


def test_key_frame_comes_once_a_gop(start: Start) -> None:
    strip = start(*SMALL, "--gop-s=0.3")
    times = [r.capture_us for r in (strip.record() for _ in range(40)) if r.key]
    assert len(times) >= 3
    gaps = [(b - a) / 1e6 for a, b in zip(times, times[1:], strict=False)]
    assert sorted(gaps)[len(gaps) // 2] == pytest.approx(0.3, abs=0.1)


def test_bitrate_changes_on_request(start: Start) -> None:
    strip, codec = start("--source=strip", "--bitrate=4000000"), decoder()
    first = [strip.record() for _ in range(30)]
    for record in first:
        decode(codec, record.unit)
    strip.ask("bitrate 200000")
    # Key frames of the old rate may come first.
    most, read = 200_000 / 8 * 0.3, 0
    while True:
        answer, read = strip.record(), read + 1
        decode(codec, answer.unit)  # continue with the same decoder
        if answer.key and len(answer.unit) < most:
            break
        assert read < 100, "no key frame of the new rate"
    second = [strip.record() for _ in range(30)]
    for record in second:
        decode(codec, record.unit)
    assert all(len(r.unit) < most for r in second if r.key)
    mean = [sum(len(r.unit) for r in part) / len(part) for part in (first, second)]
    assert mean[1] < mean[0] / 2


def test_rate_is_lowered_and_raised_on_request(start: Start) -> None:
    strip = start(*SMALL)
    strip.ask("fps 5")
    strip.wait_gaps(lambda gap_us: 160_000 < gap_us < 400_000)
    strip.ask("fps 120")
    strip.wait_gaps(lambda gap_us: 20_000 < gap_us < 100_000)


def test_unknown_lines_are_reported_and_ignored(start: Start) -> None:
    strip = start(*SMALL)
    strip.record()
    strip.ask("faster")
    for _ in range(3):
        strip.record()
    assert strip.end() == 0
    assert "ignored: b'faster'" in strip.said()


def test_slow_reader_gets_fresh_frames(start: Start) -> None:
    strip = start(*SMALL)
    for _ in range(3):
        strip.record()
    time.sleep(1.0)
    read_us = time.monotonic_ns() // 1000
    old, next_one = strip.record(), strip.record()
    # first the record left in the pipe, then one captured when it was read
    assert next_one.capture_us - old.capture_us > 700_000
    assert next_one.capture_us > read_us - 300_000


def test_end_of_stdin_ends_camera_without_a_reader(start: Start) -> None:
    strip = start("--source=strip", "--bitrate=20000000")
    strip.record()
    time.sleep(0.2)
    assert strip.end() == 0


def test_gone_reader_ends_the_camera(start: Start) -> None:
    strip = start(*SMALL)
    strip.record()
    assert strip.process.stdout
    strip.process.stdout.close()
    assert strip.process.wait(20.0) == 0
    assert "Traceback" not in strip.said()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--width=63", "--source=strip"), "--width 63: expected 320 to 1920"),
        (("--fps=500",), "--fps 500.0: expected 1 to 120"),
        (("--fps=nan",), "--fps nan"),
        (("--width=641", "--source=strip"), "expected even"),
        (("--source=world",), "--soc is needed"),
        (("--soc=/nowhere/soc",), "/nowhere/soc"),
    ],
)
def test_bad_options_are_refused(start: Start, options: list[str], said: str) -> None:
    refused = start(*options)
    assert refused.process.wait(20) == 2
    assert said in refused.said()


# --- the process, with EGL -----------------------------------------------------------


@pytest.fixture
def chip(tmp_path: Path) -> soc.Soc:
    soc.create(tmp_path / "soc")
    return soc.attach(tmp_path / "soc")


def place(chip: soc.Soc, x: float, yaw_w: float = 1.0, yaw_z: float = 0.0) -> None:
    with soc.writing(chip.world) as world:
        world.seed, world.nq, world.tick = 1, 13, world.tick + 1
        world.qpos[:7] = [x, 0.0, 0.032, yaw_w, 0.0, 0.0, yaw_z]


def test_shows_the_room_and_that_the_car_moves(start: Start, chip: soc.Soc, tmp_path: Path) -> None:
    place(chip, -1.9)
    room, codec = start(f"--soc={tmp_path / 'soc'}", "--bitrate=4000000"), decoder()
    first = [decode(codec, room.record().unit) for _ in range(8)][-1]
    assert (first.width, first.height) == (640, 480)
    before = first.to_ndarray(format="rgb24").astype(float)
    floor = before[400:].mean(axis=(0, 1))
    assert floor[0] > floor[1] > floor[2]  # planks are brown
    assert before[:60].mean() > floor.mean()  # walls are light
    assert before.std() > 20
    place(chip, -1.4)
    after = [decode(codec, room.record().unit) for _ in range(8)][-1]
    moved = np.abs(after.to_ndarray(format="rgb24").astype(float) - before)
    assert moved.mean() > 4
    assert room.end() == 0


def test_camera_looks_where_pan_turns_it(start: Start, chip: soc.Soc, tmp_path: Path) -> None:
    place(chip, -1.0)
    room, codec = start(f"--soc={tmp_path / 'soc'}", "--bitrate=4000000"), decoder()

    def look(pan_rad: float) -> np.ndarray[Any, np.dtype[np.float64]]:
        with soc.writing(chip.world) as world:
            world.pan_rad = pan_rad
        picture = [decode(codec, room.record().unit) for _ in range(8)][-1]
        return picture.to_ndarray(format="rgb24").astype(float)

    ahead, left = look(0.0), look(0.5)
    assert np.abs(left - ahead).mean() > 4
    middle, right = ahead[:, 100:300].mean(axis=0), left[:, 340:540].mean(axis=0)
    assert np.abs(middle - right).mean() < np.abs(middle - left[:, 100:300].mean(axis=0)).mean()
    assert np.abs(look(0.0) - ahead).mean() < 2
    assert room.end() == 0


def test_goes_on_without_a_world_and_follows_a_new_one(
    start: Start, chip: soc.Soc, tmp_path: Path
) -> None:
    room = start(f"--soc={tmp_path / 'soc'}", "--source=stamped", "--width=320", "--height=240")
    codec = decoder()
    for _ in range(3):
        record = room.record()
        picture = decode(codec, record.unit)
        assert camera_strip.read(luma(picture)) == record.capture_us // 1000 % 2**32
    chip.world.sequence = 7  # as if killed while writing
    room.record()
    chip.world.sequence = 8
    place(chip, -1.0)
    chip.world.seed = 9
    for _ in range(5):
        room.record()
    assert room.end() == 0


def test_missing_egl_names_the_packages(start: Start, chip: soc.Soc, tmp_path: Path) -> None:
    room = start(f"--soc={tmp_path / 'soc'}", __EGL_VENDOR_LIBRARY_DIRS="/nowhere")
    assert room.process.wait(20) == process.NO_EGL
    said = room.said()
    assert "no EGL; apt install libegl1 libgl1-mesa-dri libgles2" in said
    assert said.count("\n") == 1
