"""Pictures change their size. On a busy machine WebCodecs would give way to MSE."""

import signal
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from testkit.browsers.seat import probe
from testkit.cameras.video_source import encode
from testkit.harness import RunningBench, started, wait_for

from fpvcar.video import h264
from tests.e2e.video.glass import PATHS, goes_on, look_at, signal_all

pytestmark = [pytest.mark.e2e, pytest.mark.alone]

FAKE = Path(__file__).resolve().parents[3] / "testkit" / "cameras" / "fake_camera.py"


SIZES = {"small": (640, 480), "wide": (1280, 720)}


class Film:
    """The film that the fake camera plays: it can be swapped while the car runs."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def put(self, *sizes: str) -> None:
        """Write a second of pictures of each size in turn."""
        data = b"".join(
            struct.pack("<IBBHQ", len(unit), 1, int(h264.is_key(unit)), 0, 0) + unit
            for size in sizes
            for unit in film(size)
        )
        new = self.path.with_suffix(".new")
        new.write_bytes(data)
        new.rename(self.path)

    def cameras(self, bench: RunningBench) -> list[int]:
        """Return the processes that play the film."""
        found = []
        for pid in bench.children():
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if words[1:3] == [bytes(FAKE), bytes(self.path)]:
                found.append(pid)
        assert found, "no camera process"
        return found


def film(size: str) -> tuple[bytes, ...]:
    width, height = SIZES[size]
    return encode(frames=30, gop=15, width=width, height=height, noise=4)


@pytest.fixture(scope="module")
def cinema(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningBench, Film]]:
    """A bench whose camera is a program that plays a film of any size."""
    home = tmp_path_factory.mktemp("cinema")
    shown = Film(home / "film")
    shown.put("small")
    words = [sys.executable, str(FAKE), str(shown.path), "plain"]
    command = ", ".join(f'"{word}"' for word in words)
    with started(home, f"--set=camera.command = [{command}]") as running:
        yield running, shown


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page that has not been opened yet; it needs no other bench."""
    context = browser.new_context()
    yield context.new_page()
    context.close()


def size_is(page: Page, size: str) -> Callable[[], bool]:
    return lambda: tuple(probe(page, "video.size")) == SIZES[size]


@PATHS
def test_picture_follows_camera_restarted_at_another_size(
    page: Page, cinema: tuple[RunningBench, Film], path: str
) -> None:
    bench, shown = cinema
    shown.put("small")
    signal_all(shown.cameras(bench), signal.SIGKILL)
    look_at(page, bench.url, path)
    wait_for(size_is(page, "small"), "the picture is not small")
    shown.put("wide")
    signal_all(shown.cameras(bench), signal.SIGKILL)
    wait_for(size_is(page, "wide"), f"the size stayed {probe(page, 'video.size')}")
    goes_on(page)
    ratio = page.evaluate("document.body.style.getPropertyValue('--ratio')")
    assert ratio == "1280 / 720"
    assert probe(page, "video.path") == path and probe(page, "video.faults") == 0


@PATHS
def test_picture_follows_size_change_in_mid_stream(
    page: Page, cinema: tuple[RunningBench, Film], path: str
) -> None:
    bench, shown = cinema
    shown.put("small", "wide")
    signal_all(shown.cameras(bench), signal.SIGKILL)
    look_at(page, bench.url, path)
    for size in ("wide", "small", "wide"):
        wait_for(size_is(page, size), f"{size} does not come", 10.0)
    goes_on(page)
    assert probe(page, "video.path") == path and probe(page, "video.faults") == 0
