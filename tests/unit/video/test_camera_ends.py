"""Children of a camera's program end with it."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from testkit.hub import until

from fpvcar.video.camera import Camera
from fpvcar.video.h264 import AccessUnit
from tests.unit.video.test_camera import Filming, alive, argv, running

PARENT = """
    import asyncio, sys
    from fpvcar.video.camera import Camera
    async def main():
        camera = Camera(sys.argv[2:], sys.argv[1] == "framed")
        task = asyncio.create_task(camera.run())
        while camera.process is None:
            await asyncio.sleep(0.01)
        print(camera.process.pid, flush=True)
        await task
    asyncio.run(main())
"""


async def test_camera_that_ignores_sigterm_ends_within_a_second(film: Path) -> None:
    async with running(Filming(film, "plain", "--then", "ignore-term")) as camera:
        await until(lambda: camera.got)
        assert camera.process is not None
        pid = camera.process.pid
    assert not alive(pid)


async def test_children_of_a_shell_end_with_it(film: Path) -> None:
    units: list[AccessUnit] = []
    words = " ".join(argv(film, "plain"))
    camera = Camera(["sh", "-c", f"{words} | cat; true"], False)
    async with running(camera, units.append):
        await until(lambda: units)
        assert camera.process is not None
        group = camera.process.pid
    with pytest.raises(ProcessLookupError):
        for _ in range(200):
            os.killpg(group, 0)
            await asyncio.sleep(0.01)


async def test_cancelling_run_ends_the_child(film: Path) -> None:
    camera = Filming(film, "framed")
    task = asyncio.create_task(camera.film())
    await until(lambda: camera.got)
    assert camera.process is not None
    pid = camera.process.pid
    task.cancel()
    await asyncio.wait([task])
    assert not alive(pid)


@pytest.fixture(params=["hang", "write", "framed"])
def orphan(request: pytest.FixtureRequest, film: Path) -> Iterator[tuple[int, int]]:
    """Start a `run` with a camera, for killing; yield (parent, child)."""
    words = {
        "hang": ["plain", *argv(film, "plain", "--after", "0", "--then", "hang")],
        "write": ["plain", *argv(film, "plain", "--then", "ignore-term")],
        "framed": ["framed", *argv(film, "framed")],
    }[request.param]
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PARENT), *words], stdout=subprocess.PIPE
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    yield parent.pid, child
    parent.kill()
    parent.wait()
    parent.stdout.close()


def test_child_ends_when_run_is_killed(orphan: tuple[int, int]) -> None:
    parent, child = orphan
    time.sleep(0.3)  # past setpriv's own start
    assert alive(child)
    os.kill(parent, signal.SIGKILL)
    deadline_s = time.monotonic() + 5.0
    while alive(child) and time.monotonic() < deadline_s:
        time.sleep(0.01)
    assert not alive(child)
