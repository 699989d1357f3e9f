"""A person drives, calibrates and sets up a car in the engines of Firefox and of Safari.

All of that at a LAN address, over http and https; the service of a first boot has http only.
Chromium is in all other tests. A finger is a touch in Firefox; WebKitGTK's driver takes the same
actions, and makes pointer events of a mouse.
"""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from benchmarks.rdma.bidi import Tab, firefox
from testkit.browsers.phone import OFFERS, PLAIN, SECURE, drive_code
from testkit.browsers.webkit import WebKitTab, webkit
from testkit.harness import RunningBench, wait_for
from testkit.network.lan import Lan

from tests.e2e.pages.test_first_boot_page import serving

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.alone,
    pytest.mark.skipif(os.geteuid() != 0, reason="a LAN address needs root"),
]
AnyTab = Tab | WebKitTab
PAGES = {
    "recordings.html": "window.recordings?.drives >= 0",
    "buttons.html": "window.fpvcar?.glow",
    "network.html": "window.network?.asked",
}
"""Pages beside the seat, and the sign that each works."""
STICK_PX = 45
"""Way of a thumb that drives forward."""


@pytest.fixture(scope="module", params=["firefox-esr", "webkit"])
def opened_tab(request: pytest.FixtureRequest) -> Iterator[AnyTab]:
    """A page in each of the engines."""
    with firefox(request.param) if request.param != "webkit" else webkit() as opened:
        yield opened


@pytest.fixture(scope="module", params=["http", "https"])
def origin(request: pytest.FixtureRequest, lan_bench: RunningBench, lan: Lan) -> str:
    """Address of the seat, as another host on the LAN would use it."""
    return f"{request.param}://{lan.near}:{lan_bench.port + (request.param == 'https')}/"


@pytest.fixture
def tab(opened_tab: AnyTab) -> Iterator[AnyTab]:
    """The tab; it leaves the car after the test."""
    yield opened_tab
    opened_tab.goto("about:blank")


def until(tab: AnyTab, condition: str, within_s: float = 30.0) -> None:
    """Wait until an expression of the page is true."""
    wait_for(lambda: bool(tab.evaluate(f"Boolean({condition})")), f"not {condition}", within_s, 0.1)


def element(selector: str) -> str:
    """Return the expression for an element of the page."""
    return f"document.querySelector({json.dumps(selector)})"


def click(tab: AnyTab, selector: str) -> None:
    """Click an element by script as soon as it is shown."""
    until(tab, f"{element(selector)}?.checkVisibility() && !{element(selector)}.disabled")
    tab.evaluate(f"{element(selector)}.click()")


def middle(tab: AnyTab, selector: str) -> tuple[float, float]:
    """Return the middle of an element, scrolled into view, in px."""
    tab.evaluate(f"{element(selector)}.scrollIntoView({{block: 'center'}})")
    box = tab.evaluate(f"{element(selector)}.getBoundingClientRect().toJSON()")
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def fill(tab: AnyTab, selector: str, text: str) -> None:
    """Type a text into a field, again if keys were lost."""
    until(tab, f"{element(selector)}?.checkVisibility()")

    def typed() -> bool:
        tab.evaluate(f"({element(selector)}.value = '', {element(selector)}.focus())")
        for character in text:
            tab.keyboard.press(character)
        return bool(tab.evaluate(f"{element(selector)}.value === {json.dumps(text)}"))

    wait_for(typed, f"not typed into {selector}: {text}", 30.0, 0.5)


def grown_up_code(bench: RunningBench) -> str:
    code: str = json.loads((bench.state / "codes.json").read_text())["grown_up"]
    return code


def seated(tab: AnyTab, origin: str, bench: RunningBench) -> None:
    """Open the seat, enter the code, and wait for the wheel and a current picture."""
    tab.goto(origin)
    until(tab, "window.fpvcar?.state?.role")
    code = f"{{method: 'POST', headers: {{'X-Drive-Code': '{drive_code(bench)}'}}}}"
    assert tab.evaluate(f"fetch('api/recordings/unlock', {code}).then(({{ok}}) => ok)")
    tab.goto(origin)
    until(tab, "window.fpvcar?.video.shown > 10")
    until(tab, "window.fpvcar.state.role === 'driver' || window.fpvcar.state.seat_free")
    if tab.evaluate("window.fpvcar.state.role") != "driver":
        click(tab, "#wheel")
    until(tab, "window.fpvcar.state.role === 'driver'")
    until(tab, "window.fpvcar.video.ageMs < 400")
    resume(tab)


def resume(tab: AnyTab) -> None:
    """Push Resume while a stop holds the car; a silence or handover ends with a push of the stick.

    A button that has just appeared under a thumb ignores it for a moment.
    """
    free = "[undefined, 'silence', 'handover'].includes(window.fpvcar.state.stop?.cause)"
    until(tab, f"({free} || document.getElementById('resume').click(), {free})")


def pushing(
    tab: AnyTab, push: Callable[[], None], let_go: Callable[[], None], drives: Callable[[], object]
) -> None:
    """Push until the car drives. A starved browser or bench stops it, and a person pushes again."""

    def goes() -> bool:
        if tab.evaluate("window.fpvcar.state.stop !== null"):
            let_go()
            resume(tab)
            push()
        return bool(drives())

    push()
    wait_for(goes, "the car stands still", 30.0, 0.3)


def test_person_sees_drives_stops_and_resumes(
    tab: AnyTab, origin: str, lan_bench: RunningBench
) -> None:
    seated(tab, origin, lan_bench)
    offers = SECURE if origin.startswith("https") else PLAIN
    path = {"picture": "webcodecs"} if isinstance(tab, WebKitTab) else {}
    assert tab.evaluate(OFFERS) == offers | path, "as in docs/access.md"
    pushing(
        tab,
        lambda: tab.keyboard.down("ArrowUp"),
        lambda: tab.keyboard.up("ArrowUp"),
        lambda: tab.evaluate("window.fpvcar.state.throttle > 0.2"),
    )
    tab.keyboard.up("ArrowUp")
    until(tab, "window.fpvcar.state.throttle === 0")
    tab.keyboard.press(" ")
    until(tab, "window.fpvcar.state.stop?.cause.startsWith('estop')")
    tab.keyboard.down("ArrowUp")
    assert tab.evaluate("window.fpvcar.state.throttle") == 0
    tab.keyboard.up("ArrowUp")
    resume(tab)
    shown = tab.evaluate("window.fpvcar.video.shown")
    until(tab, f"window.fpvcar.video.shown > {shown + 20}")
    for page, works in PAGES.items():
        tab.goto(f"{origin}{page}")
        until(tab, works)


def test_finger_on_the_stick_drives_until_it_lifts(
    tab: AnyTab, origin: str, lan_bench: RunningBench
) -> None:
    seated(tab, origin, lan_bench)
    tab.evaluate("document.body.dataset.input = 'touch'")
    x, y = middle(tab, "#pad-drive")

    def push() -> None:
        tab.finger.down(x, y)
        tab.finger.move(x, y - STICK_PX)

    with lan_bench.watch() as watch:
        pushing(tab, push, tab.finger.up, lambda: watch.now.driving)
        tab.finger.up()
        wait_for(lambda: not watch.now.driving, "the motors still run")
        until(tab, "window.fpvcar.state.throttle === 0")
        assert tab.evaluate("document.querySelector('.pad.held')") is None


def test_held_step_of_the_calibration_turns_a_motor(
    tab: AnyTab, origin: str, lan_bench: RunningBench
) -> None:
    seated(tab, origin, lan_bench)
    click(tab, "#gear")
    click(tab, "#tab-grown-ups")
    if not tab.evaluate("window.fpvcar.state.grown_up"):
        click(tab, "#grown-code")
        fill(tab, "#code", grown_up_code(lan_bench))
        tab.keyboard.press("Enter")
    until(tab, "window.fpvcar.state.grown_up")
    until(tab, "fetch('api/calibration').then(({ok}) => ok)")  # the code's cookie has come
    click(tab, "#tab-car")
    click(tab, "#calibrate")
    click(tab, "[data-testid=begin-direction-steer]")
    hold = "[data-testid=calibration-hold]"
    until(tab, f"{element(hold)}?.checkVisibility()")
    with lan_bench.watch() as watch:
        x, y = middle(tab, hold)
        pushing(tab, lambda: tab.finger.down(x, y), tab.finger.up, lambda: watch.now.driving)
        tab.finger.up()
        wait_for(lambda: not watch.now.driving, "the motor still turns")
    assert not any(sample.duties[0] or sample.duties[1] for sample in watch.samples)


def test_first_boot_is_answered_and_the_car_joins_a_wifi(
    tab: AnyTab, lan_bench: RunningBench, lan: Lan, tmp_path: Path
) -> None:
    with serving(tmp_path) as (service, port):
        tab.goto(f"http://{lan.near}:{port}/")
        until(tab, "document.querySelector('#questions')?.checkVisibility()")
        for name, value in (("board", "l298n"), ("country", "FI")):
            tab.evaluate(f"document.getElementById('{name}').value = '{value}'")
        fill(tab, "#name", "Rusty")
        click(tab, "#questions button")
        until(tab, "document.querySelector('#answer').checkVisibility()")
        codes = json.loads((tmp_path / "codes.json").read_text())
        assert tab.evaluate("document.getElementById('drive').innerText") == codes["drive"]
        assert service.wait(20.0) == 0
    tab.goto(f"http://{lan.near}:{lan_bench.port}/network")
    until(tab, "window.network?.asked")
    if not tab.evaluate("Boolean(document.querySelector('#list button'))"):
        fill(tab, "#code", grown_up_code(lan_bench))
        click(tab, "#unlock button")
    home = (
        "[...document.querySelectorAll('#list button')].find((one) => /Home/.test(one.innerText))"
    )
    until(tab, f"({home})?.disabled === false")
    tab.evaluate(f"{home}.click()")
    fill(tab, "#key", "home sweet home")
    click(tab, "#join .primary")
    until(tab, "/ Home\\.$/.test(document.getElementById('says').textContent)", 60.0)
