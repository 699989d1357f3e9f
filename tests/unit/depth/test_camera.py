"""Depth camera: the bench's, run's end of its process, the device's process."""

import asyncio
import math
import struct
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fpvbench import soc as chips
from fpvbench.depth import HEIGHT, WIDTH, DepthRenderer
from fpvbench.world import scene
from fpvbench.world.bridge import Bridges
from fpvbench.world.process import World, publish
from fpvcar import config
from fpvcar.config import ConfigError
from fpvcar.depth import image as depth_image
from fpvcar.depth import process as device
from fpvcar.depth.camera import AGAIN_MOST_S, AGAIN_S, BLIND, DepthCamera, RecordParser, argv_of
from fpvcar.depth.image import decimated, nearest_m
from fpvcar.devices.capture import CaptureError, Frame
from fpvcar.devices.linux import v4l2, v4l2_uapi
from fpvcar.runtime.child_process import BackOff
from fpvcar.runtime.texts import text_of_line
from fpvcar.sensors.reading import LastReading
from fpvcar.wire.camera import pack_depth
from fpvcar.wire.errors import WireError


def at_a_wall(start_m: float, soc: chips.Soc) -> float:
    """Place the front of the car so far from a bare wall; return the range of the depth camera."""
    world = World(3)
    world.put(scene.ROOM_X_M / 2 - 0.12 - start_m, 0.0, 0.0)
    world.step(Bridges())
    assert world.ranges_m[0] == pytest.approx(start_m, abs=0.03), "no bare wall"
    publish(soc, world, 1)
    renderer = DepthRenderer()
    copy = chips.read_world(soc)
    renderer.place(copy)
    frame = renderer.z16()
    assert frame.shape == (HEIGHT, WIDTH)
    small = decimated(memoryview(frame.tobytes()), WIDTH, HEIGHT, 2 * WIDTH)
    return nearest_m(small)


def test_bench_depth_camera_sees_the_wall(tmp_path: Path) -> None:
    chips.create(tmp_path / "soc")
    soc = chips.attach(tmp_path / "soc")
    assert at_a_wall(0.5, soc) == pytest.approx(0.5, abs=0.05)
    assert at_a_wall(0.3, soc) == pytest.approx(0.3, abs=0.05)


PROGRAM = """
import math, sys, time
from fpvcar.wire.camera import pack_depth
out = sys.stdout.buffer
out.write(pack_depth({metres}, time.monotonic_ns() // 1000, b"png"))
out.flush()
{then}
"""


@asynccontextmanager
async def depth_camera(program: str, silent_s: float = 5.0) -> AsyncIterator[DepthCamera]:
    looking = DepthCamera(
        [sys.executable, "-c", program], LastReading("depth", 0.0), start_s=10.0, silent_s=silent_s
    )
    task = asyncio.create_task(looking.run())
    yield looking
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def until_state(looking: DepthCamera, words: str) -> None:
    end_s = time.monotonic() + 10.0
    while time.monotonic() < end_s:
        await asyncio.sleep(0.005)
        if words in str(looking.reading.state):
            return
    raise AssertionError(f"{looking.reading.state}: expected {words}")


async def test_depth_record_becomes_a_range_reading() -> None:
    async with depth_camera(PROGRAM.format(metres=1.5, then="sys.stdin.read()")) as looking:
        await until_state(looking, "ok")
        assert looking.reading.range_m == 1.5 and looking.png == b"png"
        assert looking.reading.readings == 1


async def test_infinite_depth_is_no_target() -> None:
    program = PROGRAM.format(metres="math.inf", then="sys.stdin.read()")
    async with depth_camera(program) as looking:
        await until_state(looking, "ok")
        assert looking.reading.range_m is None


async def test_blind_depth_camera_is_reported() -> None:
    program = PROGRAM.format(metres="math.nan", then="sys.stdin.read()")
    async with depth_camera(program) as looking:
        await until_state(looking, str(BLIND))
        assert looking.reading.readings == 0


@pytest.mark.parametrize(
    ("then", "words"),
    [
        ("sys.exit('depth: /dev/video0: Device or resource busy')", "resource busy"),
        ("sys.exit(3)", "its program ended"),
        ("out.write(b'\\xff' * 40); out.flush(); sys.stdin.read()", "depth picture"),
        ("sys.stdin.read()", "sent nothing for 0.2 s"),
    ],
)
async def test_end_of_the_program_is_reported(then: str, words: str) -> None:
    program = PROGRAM.format(metres=1.0, then=then)
    async with depth_camera(program, silent_s=0.2) as looking:
        await until_state(looking, words)
        assert looking.png == b"", "an old picture is shown"


class Hurried(BackOff):
    """Back-off that waits for no time and records its pauses."""

    def __init__(self) -> None:
        super().__init__(AGAIN_S, AGAIN_MOST_S)
        self.pauses: list[float] = []

    def pause_s(self, well: bool) -> float:
        self.pauses.append(super().pause_s(well))
        return 0.0


async def pauses(argv: list[str], count: int) -> list[float]:
    """Return the pauses between so many lives."""
    looking, hurried = DepthCamera(argv, LastReading("depth", 0.0)), Hurried()
    looking.back_off = hurried
    task = asyncio.create_task(looking.run())
    async with asyncio.timeout(20.0):
        while len(hurried.pauses) < count:
            await asyncio.sleep(0.005)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return hurried.pauses[:count]


async def test_missing_program_is_started_less_and_less_often() -> None:
    doubles = [2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    assert await pauses(["/nowhere/depth"], 6) == doubles


async def test_program_that_worked_is_started_again_soon() -> None:
    program = PROGRAM.format(metres=1.5, then="")
    assert await pauses([sys.executable, "-c", program], 3) == [2.0, 2.0, 2.0]


async def test_missing_program_is_named() -> None:
    looking = DepthCamera(["/nowhere/depth"], LastReading("depth", 0.0))
    task = asyncio.create_task(looking.run())
    await until_state(looking, "no program /nowhere/depth")
    task.cancel()


def test_records_are_parsed_across_any_cut() -> None:
    whole = pack_depth(0.5, 7, b"abc") + pack_depth(math.inf, 8, b"")
    for cut in range(len(whole)):
        records = RecordParser()
        found = [*records.feed(whole[:cut]), *records.feed(whole[cut:])]
        assert found == [(0.5, 7, b"abc"), (math.inf, 8, b"")]


@pytest.mark.parametrize("head", [b"\xff" * 16, struct.pack("<IfQ", 0, -0.5, 1)])
def test_invalid_record_is_refused(head: bytes) -> None:
    with pytest.raises(WireError):
        list(RecordParser().feed(head))


def test_profile_chooses_the_program(tmp_path: Path) -> None:
    assert argv_of(config.Depth(), None) == []
    with pytest.raises(ConfigError, match="needs a bench"):
        argv_of(config.Depth(source="bench"), None)
    assert "bench-depth" in argv_of(config.Depth(source="bench"), tmp_path)
    own = argv_of(config.Depth(source="v4l2", device="/dev/video2", fps=6), None)
    assert own[1:] == [
        "-m",
        "fpvcar.depth.process",
        "--fps=6",
        "--width=480",
        "--height=270",
        "--wide-deg=87",
        "--device=/dev/video2",
    ]


class Camera:
    """Camera that gives the given frames, then is silent."""

    width, height, line_b = 80, 45, 160

    def __init__(self, *frames: bytes) -> None:
        self.frames = list(frames)

    def frame(self, timeout_s: float) -> Frame | None:
        if not self.frames:
            return None
        return Frame(memoryview(self.frames.pop(0)), 1, 5_000_000)


@pytest.fixture
def open_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the process read on."""
    monkeypatch.setattr(device, "stdin_ended", lambda: False)


@pytest.mark.usefixtures("open_stdin")
def test_frames_become_records_and_silence_an_end() -> None:
    near = np.full((45, 80), 600, dtype="<u2").tobytes()
    written: list[bytes] = []
    camera: Any = Camera(near, b"cut", near)
    with pytest.raises(CaptureError, match="sent nothing for 2 s"):
        written.extend(device.records(camera, depth_image.D435, lambda: 50.0))
    records = RecordParser()
    first, second = (record for data in written for record in records.feed(data))
    assert first.nearest_m == pytest.approx(0.6) and first.capture_us == 5_000_000
    assert first.png.startswith(depth_image.PNG)
    assert second.png == b"", "five pictures a second are enough"


def end_of(*frames: bytes) -> tuple[int, str]:
    """Return the number of records and the reason of the end."""
    camera: Any = Camera(*frames)
    written: list[bytes] = []
    with pytest.raises(CaptureError) as fault:
        written.extend(device.records(camera, depth_image.D435))
    return len(written), str(fault.value)


@pytest.mark.usefixtures("open_stdin")
def test_camera_that_repeats_a_frame_is_stuck() -> None:
    frame = np.full((45, 80), 600, dtype="<u2")
    same, most = frame.tobytes(), device.SAME_MOST
    frame[44, 79] += 1  # an unused pixel
    other = frame.tobytes()
    silent = "sent nothing for 2 s"
    assert end_of(*[same] * 100) == (most, f"stuck: the same reading {most} times")
    assert end_of(*[same] * most) == (most, silent)
    assert end_of(*[same] * most, other, *[same] * most) == (2 * most + 1, silent)
    assert end_of(*[bytes(len(same))] * 100) == (100, silent), "covered, not stuck"


def test_v4l2_numbers_equal_the_kernels() -> None:
    """Numbers in <linux/videodev2.h> on 64 bits."""
    assert v4l2_uapi.QUERYCAP == 0x80685600 and v4l2_uapi.ENUM_FMT == 0xC0405602
    assert v4l2_uapi.S_FMT == 0xC0D05605 and v4l2_uapi.REQBUFS == 0xC0145608
    assert v4l2_uapi.QUERYBUF == 0xC0585609 and v4l2_uapi.QBUF == 0xC058560F
    assert v4l2_uapi.DQBUF == 0xC0585611 and v4l2_uapi.S_PARM == 0xC0CC5616
    assert v4l2_uapi.STREAMON == 0x40045612 and v4l2_uapi.STREAMOFF == 0x40045613
    assert v4l2.fourcc("Z16 ") == 0x2036315A


def test_missing_camera_is_reported(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CaptureError, match=r"offers Z16 \(looked at: –"):
        v4l2.find("Z16 ", tmp_path)
    (tmp_path / "video0").write_bytes(b"no device")
    with pytest.raises(CaptureError, match=r"looked at: video0"):
        v4l2.find("Z16 ", tmp_path)
    assert device.main([f"--device={tmp_path / 'video9'}"]) == 1
    assert "No such file" in capfd.readouterr().err
    assert device.main([f"--device={tmp_path / 'video0'}"]) == 1
    assert "S_FMT Z16 480x270 failed" in str(text_of_line(capfd.readouterr().err))
