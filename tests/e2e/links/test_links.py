"""Bad links come back at once and disturb no other client. Figures: `make benchmark`."""

import statistics
import threading
import time
from contextlib import AbstractContextManager

import pytest
from playwright.sync_api import Page
from testkit.browsers.phone import seconds_until_current, status
from testkit.browsers.seat import opened, probe
from testkit.driver import open_socket
from testkit.harness import STRIP, RunningBench, usual_s, wait_for
from testkit.network.proxy import Link
from websockets.exceptions import ConnectionClosed

from fpvcar.wire.video import parse_video

pytestmark = [pytest.mark.e2e, pytest.mark.alone]
OPTIONS = (STRIP,)
MOST = 2_000_000
FPS = 30
BACK_S = 1.0
"""The aim is 0.2 s; the rest allows for the machine."""


class Eyes(AbstractContextManager["Eyes"]):
    """Viewer without a browser: (monotonic s, age in s, key) of each unit."""

    def __init__(self, port: int) -> None:
        self.units: list[tuple[float, float, bool]] = []
        self._socket = open_socket(port, "/ws/video")
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        self._thread.join()

    def _read(self) -> None:
        try:
            for packet in self._socket:
                assert isinstance(packet, bytes)
                now_s = time.monotonic()
                head, _ = parse_video(packet)
                age_s = now_s - head.capture_us / 1e6
                self.units.append((now_s, age_s, head.key))
        except ConnectionClosed:
            pass

    def watch(self, seconds: float) -> tuple[int, float, int]:
        """Return (units, median age in s, key frames) over so long."""
        self.units.clear()
        time.sleep(seconds)
        units = list(self.units)
        assert units, "nothing came"
        ages = [age_s for _, age_s, _ in units]
        return len(units), statistics.median(ages), sum(key for _, _, key in units)


@pytest.mark.parametrize("bad", ["stalled", "narrow", "cut"])
def test_viewer_on_bad_link_disturbs_no_other_viewer(bench: RunningBench, bad: str) -> None:
    seconds = 3.0
    with (
        Link(bench.port, 200_000 if bad == "narrow" else 4e6) as link,
        Eyes(bench.port) as good,
        Eyes(link.port) as poor,
    ):
        wait_for(lambda: len(poor.units) > 3, "the poor viewer sees nothing")
        if bad == "stalled":
            link.stall()
        elif bad == "cut":
            link.cut()
        count, age_s, keys = good.watch(seconds)
        suffered = len(poor.units) < 0.7 * FPS * seconds + 4
        wanted = status(bench)["bitrate_wanted"]
        link.mend()
    assert suffered, "the bad link was none"
    assert count >= 0.3 * FPS * seconds and age_s < 0.5, "it waits for the bad link"
    assert keys <= 2 * seconds + 1, "the poor viewer's key frames fill the good link"
    assert wanted == MOST, "a watcher's link lowers everybody's picture"


@pytest.mark.parametrize("path", ["", "?path=mse"])
def test_picture_is_current_soon_after_a_stall(page: Page, bench: RunningBench, path: str) -> None:
    with Link(bench.port, 4e6) as link:
        opened(page, f"http://localhost:{link.port}/{path}")

        def back_s() -> float:
            page.wait_for_timeout(500)
            link.stall()
            page.wait_for_timeout(1500)
            assert probe(page, "video.ageMs") > 1000
            link.mend()
            return seconds_until_current(page)

        for _ in range(2):
            assert usual_s(back_s, BACK_S) < BACK_S
