"""Child process of the camera: framed and plain, dying, hanging, never outliving us."""

import asyncio
import os
import signal
import statistics
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
from testkit.cameras.video_source import encode
from testkit.hub import until

from fpvcar.runtime.texts import STARTING
from fpvcar.video import access_unit_records, faults, h264, process
from fpvcar.video import camera as video_camera
from fpvcar.video.camera import Camera
from fpvcar.video.h264 import AccessUnit
from fpvcar.wire.camera import pack_record

Running = TypeVar("Running", bound=Camera)
FAKE = str(Path(__file__).parents[3] / "testkit" / "cameras" / "fake_camera.py")


def argv(film: Path, mode: str, *more: str) -> list[str]:
    return [sys.executable, "-I", "-S", FAKE, str(film), mode, *more]


class Filming(Camera):
    """Camera whose program plays a film, and its units so far."""

    def __init__(self, film: Path, mode: str, *more: str, **options: Any) -> None:
        super().__init__(argv(film, mode, *more), mode == "framed", **options)
        self.got: list[AccessUnit] = []
        self.units.subscribe(self.got.append)


@asynccontextmanager
async def running(
    camera: Running,
    take: Callable[[AccessUnit], None] = lambda _: None,
    seen: Callable[[], bool] = lambda: True,
) -> AsyncIterator[Running]:
    camera.units.subscribe(take)
    task = asyncio.create_task(camera.film(seen))
    try:
        yield camera
    finally:
        async with asyncio.timeout(20.0):
            await camera.stop()
            await task


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


async def test_sensor_is_that_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PICAMERA_SENSOR", "imx708_wide")
    program = [sys.executable, "-m", "testkit.cameras.fake_picamera", "--width=320"]
    camera = Camera(program, True)
    assert camera.sensor == ""
    async with running(camera):
        await until(lambda: camera.state == "ok" and camera.sensor)
    assert camera.sensor == "imx708_wide"
    foreign = Camera(["true"], False)
    foreign.reported("camera: sensor imx219")
    assert foreign.sensor == "", "not a program of the car"


@pytest.mark.parametrize("mode", ["framed", "plain", "dribble"])
async def test_units_arrive_whole(film: Path, mode: str) -> None:
    camera = Filming(film, mode)
    assert camera.status == str(STARTING)
    assert camera.age_s(time.monotonic()) is None
    async with running(camera):
        await until(lambda: len(camera.got) >= 25)
        assert camera.state == "ok"
        age_s = camera.age_s(time.monotonic())
        assert age_s is not None and 0.0 <= age_s < 2.0
    assert camera.got[0].key
    # A loaded machine may tear a plain unit; most are whole all the same.
    known = set(encode(frames=10, slices=4))
    whole = [unit for unit in camera.got if unit.data in known]
    assert len(whole) == len(camera.got) if mode == "framed" else len(whole) >= 15
    assert [u.capture_us for u in camera.got] == sorted(u.capture_us for u in camera.got)
    assert all(unit.key == h264.is_key(unit.data) for unit in camera.got)


@pytest.mark.parametrize("mode", ["framed", "plain"])
async def test_unwatched_pictures_wait_in_the_pipe(
    film: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first viewer requests a key frame. A plain program's pictures cannot wait."""
    monkeypatch.setattr(video_camera, "REST_S", 30.0)
    units: list[AccessUnit] = []
    here: list[str] = []
    camera = Camera(argv(film, mode), mode == "framed")
    async with running(camera, units.append, lambda: bool(here)):
        await until(lambda: units)
        if mode == "framed":
            await asyncio.sleep(0.2)
            assert len(units) <= 2
        else:
            await until(lambda: len(units) > 2)
        here.append("Ann")
        camera.request_key()
        await until(lambda: len(units) >= 25)
    stamps_us = [unit.capture_us for unit in units]
    # A loaded machine may tear a plain unit: both parts have its time.
    assert stamps_us == sorted(stamps_us if mode == "plain" else set(stamps_us))


async def test_plain_units_that_end_with_their_write_come_at_once(
    film: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_unit_records, "IDLE_S", 0.02)
    late_s: list[float] = []
    camera = Camera(argv(film, "plain"), False)
    async with running(
        camera, lambda unit: late_s.append(time.monotonic() - unit.capture_us / 1e6)
    ):
        await until(lambda: len(late_s) >= 2 * access_unit_records.TRUSTED)
    assert statistics.median(late_s[:10]) >= 0.02, "after a silence"
    # On a busy machine most may be late; all would be, after a silence.
    assert min(late_s[-10:]) < 0.02


async def test_last_pictures_of_a_dead_camera_arrive_unwatched(
    film: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(video_camera, "REST_S", 30.0)
    units: list[AccessUnit] = []
    camera = Camera(argv(film, "framed", "--after", "4"), True)
    async with running(camera, units.append, lambda: False):
        await until(lambda: camera.restarts >= 2)
    assert len(units) >= 8


async def test_key_frame_and_bitrate_are_asked_for(film: Path) -> None:
    camera = Filming(film, "framed")
    assert not camera.request_key()
    assert not camera.set_bitrate(300_000)
    assert not camera.set_fps(15)
    async with running(camera):
        await until(lambda: len(camera.got) >= 3)
        assert camera.process is not None
        process = camera.process
        await until(lambda: "fps 15" in str(process.last_line))
        assert camera.request_key()
        await until(lambda: "key" in str(process.last_line))
        assert camera.set_bitrate(500_000)
        await until(lambda: "bitrate 500000" in str(process.last_line))


async def test_plain_program_takes_no_requests(film: Path) -> None:
    async with running(Filming(film, "plain")) as camera:
        await until(lambda: camera.got)
        assert not camera.request_key()
        assert not camera.set_bitrate(300_000)


async def test_program_that_reads_no_stdin_never_blocks_requests() -> None:
    camera = Camera(["sleep", "60"], True)
    async with running(camera):
        await until(lambda: camera.process)
        said = [camera.request_key() for _ in range(40_000)]
        assert said[0] and not said[-1]


async def test_dead_camera_reports_its_reason_and_restarts(film: Path) -> None:
    words = "no EGL: install libegl1"
    async with running(Filming(film, "framed", "--after", "3", "--say", words)) as camera:
        await until(lambda: camera.restarts >= 1)
        assert str(camera.state) == (
            f"its program ended with status 3: {words}; start it by hand to see why"
        )
        assert camera.status == f"lost: {camera.state}"
        await until(lambda: camera.restarts >= 3)
    assert len(camera.got) == 3 * camera.restarts
    assert all(camera.got[at].key for at in range(0, len(camera.got), 3))


@pytest.mark.parametrize(
    ("framed", "status", "pauses_s"),
    [
        (True, process.MISSING, [30.0, 2.0]),
        (True, process.NO_CAMERA, [5.0, 2.0]),
        (True, process.FAILED, [0.2, 0.4]),
        (False, process.MISSING, [0.2, 0.4]),
    ],
)
async def test_camera_that_cannot_work_yet_is_retried_rarely(
    framed: bool, status: int, pauses_s: list[float]
) -> None:
    camera = Camera(["camera"], framed)
    camera.begin(0.0)
    camera.exited(status)
    assert [camera.back_off.pause_s(False) for _ in pauses_s] == pauses_s


async def test_unplugged_camera_is_retried_at_once() -> None:
    camera = Camera(["camera"], True)
    camera.begin(0.0)
    for unit in encode(frames=1):
        camera.receive(pack_record(True, 0, unit))
    camera.exited(process.NO_CAMERA)
    assert camera.back_off.pause_s(False) == 0.2


async def test_hanging_camera_is_killed_and_restarted(film: Path) -> None:
    units: list[AccessUnit] = []
    camera = Camera(
        argv(film, "plain", "--after", "5", "--then", "hang", "--say", "timeout"),
        False,
        silence_s=0.5,
    )
    pids = set()
    async with running(camera, units.append):
        while camera.restarts < 2:
            if camera.process is not None:
                pids.add(camera.process.pid)
            await asyncio.sleep(0.01)
        assert str(camera.state) == (
            "it has sent nothing for 0.5 s: timeout; "
            "it is started again; if that repeats, check its cable"
        )
    assert len(pids) >= 2 and not any(alive(pid) for pid in pids)


async def test_stopped_camera_is_killed_and_restarted(film: Path) -> None:
    async with running(Filming(film, "framed", silence_s=0.5)) as camera:
        await until(lambda: camera.got)
        assert camera.process is not None
        pid = camera.process.pid
        os.kill(pid, signal.SIGSTOP)
        await until(lambda: camera.restarts)
        assert str(camera.state) == (
            "it has sent nothing for 0.5 s; it is started again; if that repeats, check its cable"
        )
        assert not alive(pid)
        await until(lambda: camera.state == "ok")


HANG, GARBAGE = ("--after", "0", "--then", "hang"), ("--after", "0", "--then", "garbage")


@pytest.mark.parametrize(
    ("mode", "more", "start_s", "why"),
    [
        (
            "framed",
            HANG,
            0.5,
            "it has sent nothing since its start, 0.5 s ago; "
            "it is started again; if that repeats, check its cable",
        ),
        ("plain", GARBAGE, 30.0, "needs plain H.264 (Annex B)"),
        ("framed", GARBAGE, 30.0, "not a camera record"),
        (
            "plain",
            ("--after", "2", "--then", "close"),
            30.0,
            "its program closed its output; it is started again",
        ),
    ],
)
async def test_unusable_output_is_named(
    film: Path, mode: str, more: tuple[str, ...], start_s: float, why: str
) -> None:
    async with running(Filming(film, mode, *more, start_s=start_s, silence_s=0.5)) as camera:
        await until(lambda: camera.restarts)
        assert camera.status.startswith("lost: ") and why in str(camera.state)
    assert camera.got == [] or "close" in more


async def test_missing_program_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    camera = Camera(["no-such-camera"], False)
    async with running(camera):
        await until(lambda: camera.restarts > 1)
        assert str(camera.state) == (
            "no program no-such-camera; install it, or correct camera.command"
        )
    assert caplog.messages == [f"camera lost: {camera.state}"]


NO_INTERPRETER = "check that it is complete and its interpreter installed"


@pytest.mark.parametrize(
    ("script", "mode", "leash", "why"),
    [
        ("#!/no/such/interpreter\n", 0o755, True, NO_INTERPRETER),
        ("#!/no/such/interpreter\n", 0o755, False, NO_INTERPRETER),
        ("#!/bin/sh\n", 0o644, True, "{program} is not executable; chmod +x {program}"),
    ],
)
async def test_program_that_cannot_run_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, mode: int, leash: bool, why: str
) -> None:
    program = tmp_path / "camera"
    program.write_text(script)
    program.chmod(mode)
    if not leash:  # a machine without setpriv
        monkeypatch.setenv("PATH", str(tmp_path))
    async with running(Camera([str(program)], False)) as camera:
        await until(lambda: camera.restarts)
        assert str(camera.state).endswith(why.format(program=program))
        assert why != NO_INTERPRETER or "No such file or directory" in str(camera.state)


async def test_killed_camera_is_not_explained_by_an_old_line(film: Path) -> None:
    async with running(Filming(film, "framed")) as camera:
        await until(lambda: camera.got and camera.process and camera.request_key())
        process = camera.process
        assert process is not None
        await until(lambda: "key" in str(process.last_line))
        os.kill(process.pid, signal.SIGKILL)
        await until(lambda: camera.restarts)
    assert str(camera.state) == (
        "its program was killed (SIGKILL); it is started again; "
        "if that was not on purpose, memory is short"
    )


async def test_line_long_before_the_silence_is_not_its_cause(
    film: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faults, "BEFORE_S", -0.001)  # otherwise half a second of pictures
    async with running(Filming(film, "framed", silence_s=0.5)) as camera:
        await until(lambda: camera.got and camera.process and camera.request_key())
        process = camera.process
        assert process is not None
        await until(lambda: "key" in str(process.last_line))
        before = len(camera.got)
        await until(lambda: len(camera.got) > before + 3)
        os.kill(process.pid, signal.SIGSTOP)
        await until(lambda: camera.restarts)
    assert "key" not in str(camera.state) and "has sent nothing" in str(camera.state)


async def test_camera_runs_without_setpriv(
    film: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    async with running(Filming(film, "framed")) as camera:
        await until(lambda: camera.got)


async def test_camera_without_a_program_has_state_none() -> None:
    camera = Camera([], False)
    async with running(camera):
        await asyncio.sleep(0)
        assert camera.state == camera.status == "none"


def film_of(path: Path, units: tuple[bytes, ...]) -> Path:
    path.write_bytes(b"".join(pack_record(h264.is_key(unit), 0, unit) for unit in units))
    return path


async def test_program_with_b_frames_is_refused_in_words(tmp_path: Path) -> None:
    film = film_of(tmp_path / "film", encode(frames=12, b_frames=2))
    async with running(Filming(film, "framed")) as camera:
        await until(lambda: "-bf 0" in str(camera.state))
        assert camera.age_s(time.monotonic()) is None and camera.warning is None


async def test_program_with_422_samples_is_shown_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    film = film_of(tmp_path / "film", encode(frames=10, pixels="yuv422p"))
    async with running(Filming(film, "framed")) as camera:
        await until(lambda: len(camera.got) > 20)
        assert camera.state == "ok" and "4:2:2" in str(camera.warning)
    assert caplog.text.count("-pix_fmt yuv420p") == 1, "once in the log"
