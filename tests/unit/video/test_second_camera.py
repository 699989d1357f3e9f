"""Second camera: runs while it is watched, and its faults stay its own."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from testkit.hub import House, until
from testkit.profiles import minimal

from fpvcar import config
from fpvcar.config import profiles
from fpvcar.runtime.texts import STARTING
from fpvcar.second_camera import feature as second_camera
from fpvcar.second_camera.feature import SecondCamera
from fpvcar.video.camera import Camera
from fpvcar.video.stream import Viewer
from fpvcar.wire import up
from tests.unit.video.test_camera import alive, argv


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_camera, "LINGER_S", 0.3)
    monkeypatch.setattr(second_camera, "CHECK_S", 0.05)


@asynccontextmanager
async def running(
    film: Path, *more: str
) -> AsyncIterator[tuple[SecondCamera, Camera, "asyncio.Task[None]"]]:
    """Run a second camera as `fpvcar run` does; cancel it as its end does."""
    camera = Camera(argv(film, "framed", *more), True, silence_s=0.3)
    second = SecondCamera("rear", camera, 2_000_000)
    task = asyncio.create_task(second.run())
    try:
        yield second, camera, task
    finally:
        task.cancel()
        await asyncio.wait([task])


def pid_of(camera: Camera) -> int:
    assert camera.process is not None
    return camera.process.pid


def watch(second: SecondCamera) -> Viewer:
    """Add a viewer, as routes.py does."""
    second.wanted.set()
    return second.stream.add_viewer(lambda: False)


async def watched(second: SecondCamera) -> Viewer:
    """Add a viewer; wait for a picture of a running program."""
    viewer = watch(second)
    await until(lambda: viewer.waiting and second._camera.process)
    return viewer


async def test_program_runs_only_while_watched(film: Path) -> None:
    async with running(film) as (second, camera, _):
        await asyncio.sleep(0.2)
        assert camera.process is None and second._camera.state == STARTING
        for _ in range(2):  # and again after its end
            viewer = await watched(second)
            pid = pid_of(camera)
            await asyncio.sleep(0.5)
            assert camera.process and pid_of(camera) == pid, "it is watched"
            second.stream.remove(viewer)
            await until(lambda: second._camera.state == STARTING)
            assert camera.process is None and not alive(pid)
            assert camera.age_s(time.monotonic()) is None


async def test_page_that_comes_back_soon_finds_the_same_program(film: Path) -> None:
    async with running(film) as (second, camera, _):
        viewer = await watched(second)
        pid = pid_of(camera)
        second.stream.remove(viewer)
        watch(second)
        await asyncio.sleep(0.6)
        assert pid_of(camera) == pid


@pytest.mark.parametrize(
    "more", [(), ("--then", "ignore-term"), ("--after", "0", "--then", "hang")]
)
async def test_program_ends_with_the_service(film: Path, more: tuple[str, ...]) -> None:
    async with running(film, *more) as (second, camera, _):
        watch(second)
        await until(lambda: camera.process)
        pid = pid_of(camera)
    assert not alive(pid)


async def test_camera_that_hangs_or_dies_is_started_again(film: Path) -> None:
    for end in ("hang", "exit"):
        async with running(film, "--after", "5", "--then", end) as (second, camera, task):
            watch(second)
            await until(lambda: camera.restarts >= 2)
            assert not task.done()


async def test_fault_in_a_viewer_does_not_end_the_service(
    film: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(film) as (second, camera, task):
        viewer = watch(second)
        good, calls = viewer.offer, list[int]()

        def offer(frame: object) -> None:
            calls.append(1)
            if len(calls) == 1:
                raise RuntimeError("a fault")
            good(frame)  # type: ignore[arg-type]

        monkeypatch.setattr(viewer, "offer", offer)
        await until(lambda: viewer.waiting)
        assert not task.done()


def test_gate_has_no_picture_while_the_large_one_is_old() -> None:
    house = House(feature=second_camera.feature, profile=with_rear())
    cameras, ann = house.vehicle.cameras, house.visitor("Ann")
    ann.say(up.Take())

    def age_s(first_us: int | None) -> float | None:
        cameras.first._newest_us = first_us
        return cameras.picture_age_s(10.0)

    assert age_s(9_980_000) == pytest.approx(0.02) and age_s(None) is None
    ann.say(up.View("rear"))
    rear = cameras.channels["rear"].camera
    assert age_s(9_980_000) is None, "it has no picture yet"
    rear._newest_us = 9_760_000
    assert age_s(9_980_000) == pytest.approx(0.02) and age_s(None) is None
    assert age_s(9_500_000) == pytest.approx(0.5)
    rear._newest_us = 9_740_000
    assert age_s(9_980_000) is None


def with_rear() -> config.Profile:
    rear = {"command": ["true"], "width": 320, "height": 240, "bitrate": 500_000}
    return profiles.parse(minimal(cameras={"rear": rear}))


def test_feature_adds_its_camera_to_the_core() -> None:
    house = House(feature=second_camera.feature, profile=with_rear())
    assert house.vehicle.cameras.further == ("rear",)
    assert house.vehicle.cameras.channels["rear"].stream.bitrate.most == 500_000
