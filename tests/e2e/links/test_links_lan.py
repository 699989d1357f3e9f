"""A car on bad Wi-Fi, from another host: outages, and too little room.

Figures: `make benchmark ONLY=links`.
"""

import os
import statistics
from collections.abc import Iterator
from functools import partial

import pytest
from playwright.sync_api import Page, Playwright
from testkit.browsers.phone import on_the_lan, seconds_until_current, status, take_wheel
from testkit.browsers.seat import opened, probe
from testkit.harness import STRIP, RunningBench, usual_s, wait_for
from testkit.network.lan import Lan

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.alone,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]
OPTIONS = ("--host=0.0.0.0", STRIP)
MOST, THIRD = 2_000_000, 666_000
BACK_S = 1.0
"""The aim is 0.42 s; the rest allows for the machine."""
LEAST_FPS, AGE_MS = 4, 1000
"""On a busy machine. The benchmark's aim is 300 ms for every picture; at the full size they would
be 2 s old at the end."""


@pytest.fixture(scope="module", params=["webcodecs", "mse"])
def opened_far(
    request: pytest.FixtureRequest,
    bench: RunningBench,
    lan: Lan,
    playwright: Playwright,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Page]:
    """A page on the other host, by each path to the screen."""
    path: str = request.param
    url = f"http://{lan.near}:{bench.port}/?path={path}"
    home = tmp_path_factory.mktemp("far")
    with on_the_lan(lan, home, bench.port, playwright) as browser:
        page = opened(browser.new_page(), url)
        assert probe(page, "video.path") == path
        yield page


@pytest.fixture
def far(opened_far: Page, bench: RunningBench) -> Page:
    """The page on the other host, at the wheel."""
    take_wheel(opened_far, bench)
    return opened_far


def test_picture_is_current_soon_after_an_outage(far: Page, lan: Lan, bench: RunningBench) -> None:
    def back_s(length_s: float) -> float:
        far.wait_for_timeout(700)
        lan.lose()
        far.wait_for_timeout(length_s * 1000)
        assert probe(far, "video.ageMs") > 400
        lan.find()
        return seconds_until_current(far)

    for length_s in (0.6, 1.3, 3.1):
        assert usual_s(partial(back_s, length_s), BACK_S) < BACK_S


def test_narrow_link_gets_smaller_not_older_pictures(
    far: Page, lan: Lan, bench: RunningBench
) -> None:
    far.wait_for_timeout(1000)
    lan.narrow(THIRD, queue_bytes=20_000)
    far.wait_for_timeout(2000)
    shown, wanted = probe(far, "video.shown"), status(bench)["bitrate_wanted"]
    far.wait_for_timeout(3000)
    count = probe(far, "video.shown") - shown
    ages = probe(far, "video.latencyMs")[-count:]
    lan.widen()
    assert isinstance(wanted, int) and wanted < MOST
    assert count >= 3 * LEAST_FPS, f"{count} pictures in 3 s"
    assert statistics.quantiles(ages, n=10)[-1] < AGE_MS, ages
    wait_for(lambda: status(bench)["bitrate_wanted"] == MOST, "still small", 30.0, 0.1)
