"""Hung H.264 encoder of the board: libx264 replaces it, and the board's is tried again."""

import asyncio
import errno
import sys
from pathlib import Path

import pytest
from testkit.hub import until

from fpvcar.video.camera import Camera, EncoderChoice
from tests.unit.video.test_camera import argv, running

pytestmark = pytest.mark.slow


async def test_hung_encoder_is_replaced_by_libx264(film: Path, tmp_path: Path) -> None:
    device, starts = tmp_path / "video11", set[int]()
    device.touch()
    hangs = argv(film, "framed", "--after", "0", "--then", "hang")
    camera = Camera(hangs, True, start_s=0.4, encoder=device)
    async with running(camera):
        while camera.state != "ok":
            starts |= {camera.process.pid} if camera.process else set()
            assert not camera.encoder_hangs
            await asyncio.sleep(0.01)
        assert camera.encoder_hangs and len(starts) == 3 and camera.restarts == 2


async def test_picamera2_with_a_refusing_encoder_goes_on_by_libx264(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The real program of a Pi's camera, with picamera2 over stand-ins for its devices."""
    monkeypatch.setenv("PICAMERA_BOARD", "zero")
    monkeypatch.setenv("PICAMERA_ENCODER", str(errno.EINVAL))
    words = [sys.executable, "-m", "testkit.cameras.fake_picamera", "--width=320"]
    camera = Camera([*words, "--height=240"], True, encoder=tmp_path)
    states = set[str]()
    async with running(camera):
        while camera.state != "ok":
            states.add(camera.status)
            await asyncio.sleep(0.01)
        assert camera.encoder_hangs and camera.restarts == 2
    reason = "the board's H.264 encoder hangs (Invalid argument); switch the car off and on"
    assert any(reason in state for state in states), states


async def test_hung_encoder_without_a_device_is_restarted(film: Path, tmp_path: Path) -> None:
    hangs = argv(film, "framed", "--after", "0", "--then", "hang")
    camera = Camera(hangs, True, start_s=0.2, encoder=tmp_path / "no-video11")
    async with running(camera):
        await until(lambda: camera.restarts >= 3)
        assert not camera.encoder_hangs and camera.status.startswith("lost: ")


def test_encoder_choice_follows_the_starts(tmp_path: Path) -> None:
    """Two silent starts choose libx264; a picture of the board's encoder, tried after ten minutes,
    clears that."""
    choice = EncoderChoice(tmp_path)  # exists, like the device

    def start(now_s: float, pictures: bool) -> bool:
        choice.begin(now_s)
        if pictures:
            choice.pictured()
        else:
            assert choice.silent(now_s + 30.0) == 0.0
        return choice.software

    assert [start(0.0, False), start(40.0, False)] == [False, False]
    assert choice.hangs
    assert [start(80.0, True), start(200.0, True)] == [True, True] and choice.hangs
    assert start(800.0, False) is False, "the board's encoder is tried again, in vain"
    assert start(840.0, True) is True
    assert start(1500.0, True) is False and not choice.hangs
    assert [start(1510.0, False), start(1550.0, True)] == [False, False], "a single one is no hang"
    assert not choice.hangs


def test_camera_silent_with_both_encoders_is_retried_rarely(tmp_path: Path) -> None:
    choice = EncoderChoice(tmp_path)
    pauses_s, software = [], []
    for now_s in (0.0, 40.0, 80.0, 150.0, 190.0):
        choice.begin(now_s)
        software.append(choice.software)
        pauses_s.append(choice.silent(now_s + 30.0))
    assert software == [False, False, True, False, True]
    assert pauses_s == [0.0, 0.0, 30.0, 0.0, 30.0]


async def test_camera_silent_with_both_encoders_asks_for_a_power_cycle(tmp_path: Path) -> None:
    silent = [sys.executable, "-c", "import time; time.sleep(60)"]
    camera = Camera(silent, True, start_s=0.2, encoder=tmp_path)
    async with running(camera):
        await until(lambda: camera.restarts == 3)
        assert "switch the car off and on again; if that repeats" in str(camera.state)
        restarts = camera.restarts
        await asyncio.sleep(1.0)
        assert camera.restarts == restarts, "it waits for SILENT_S"
