"""A person drives in the engines of Firefox and of Safari, over http and https at a LAN address.

Chromium is in all other tests.
"""

import os
from collections.abc import Iterator

import pytest
from benchmarks.rdma.bidi import Tab, firefox

from tests.e2e.harness import SMALL, RunningBench, started, wait_for
from tests.e2e.links.phone import drive_code
from tests.support.browsers.webkit import WebKitTab, webkit
from tests.support.lan import Lan

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.alone,
    pytest.mark.skipif(os.geteuid() != 0, reason="a LAN address needs root"),
]
PAGES = {
    "recordings.html": "window.recordings?.drives >= 0",
    "buttons.html": "window.fpvcar?.glow",
    "network.html": "window.network?.asked",
}
"""Pages beside the seat, and the sign that each works."""


@pytest.fixture(scope="module")
def lan() -> Iterator[Lan]:
    """A network whose near end is an address of this host."""
    with Lan() as made:
        yield made


@pytest.fixture(scope="module")
def car(tmp_path_factory: pytest.TempPathFactory, lan: Lan) -> Iterator[RunningBench]:
    with started(tmp_path_factory.mktemp("lan"), "--host=0.0.0.0", *SMALL) as running:
        yield running


@pytest.fixture(scope="module", params=["firefox-esr", "webkit"])
def tab(request: pytest.FixtureRequest) -> Iterator[Tab | WebKitTab]:
    """Tab of each engine."""
    with firefox(request.param) if request.param != "webkit" else webkit() as opened:
        yield opened


def until(tab: Tab | WebKitTab, condition: str, within_s: float = 30.0) -> None:
    """Wait until an expression of the page is true."""
    wait_for(lambda: bool(tab.evaluate(f"Boolean({condition})")), f"not {condition}", within_s, 0.1)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_person_sees_drives_stops_and_resumes(
    tab: Tab | WebKitTab, scheme: str, car: RunningBench, lan: Lan
) -> None:
    origin = f"{scheme}://{lan.near}:{car.port + (scheme == 'https')}/"
    tab.goto(origin)
    until(tab, "window.fpvcar?.state?.role")
    code = f"{{method: 'POST', headers: {{'X-Drive-Code': '{drive_code(car)}'}}}}"
    assert tab.evaluate(f"fetch('api/recordings/unlock', {code}).then(({{ok}}) => ok)")
    tab.goto(origin)
    until(tab, "window.fpvcar?.video.shown > 10")
    until(tab, "window.fpvcar.state.role === 'driver' || window.fpvcar.state.seat_free")
    if tab.evaluate("window.fpvcar.state.role") != "driver":
        tab.evaluate("document.getElementById('wheel').click()")
    until(tab, "window.fpvcar.state.role === 'driver'")
    until(tab, "window.fpvcar.video.ageMs < 400")
    tab.keyboard.down("ArrowUp")
    until(tab, "window.fpvcar.state.throttle > 0.2")
    tab.keyboard.up("ArrowUp")
    until(tab, "window.fpvcar.state.throttle === 0")
    tab.keyboard.press(" ")
    until(tab, "window.fpvcar.state.stop?.cause === 'estop'")
    tab.keyboard.down("ArrowUp")
    assert tab.evaluate("window.fpvcar.state.throttle") == 0
    tab.keyboard.up("ArrowUp")
    # A button that has just appeared under a thumb ignores it for a moment.
    until(tab, "(document.getElementById('resume').click(), window.fpvcar.state.stop === null)")
    shown = tab.evaluate("window.fpvcar.video.shown")
    until(tab, f"window.fpvcar.video.shown > {shown + 20}")
    for page, works in PAGES.items():
        tab.goto(f"{origin}{page}")
        until(tab, works)
    tab.goto("about:blank")
