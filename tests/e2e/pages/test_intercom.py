"""Intercom over https: Chromium's beeping microphone at the car's speaker, the car's tone in the
page."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Playwright
from testkit.browsers.chromium import SHELL, chromium
from testkit.browsers.seat import go_on, grown_up, until, violations
from testkit.harness import SMALL, RunningBench, wait_for
from testkit.sound_card import SoundCard, linear

pytestmark = pytest.mark.e2e
SOUND = ('--set=intercom.speaker = "default"', '--set=intercom.microphone = "default"')
FLAGS = ("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream")
LOUDEST = """
const connect = AudioNode.prototype.connect;
AudioNode.prototype.connect = function (to, ...more) {
  if (to instanceof AudioDestinationNode && !window.ear) {
    window.ear = new AnalyserNode(this.context, {fftSize: 4096});
    connect.call(window.ear, to);
  }
  return connect.call(this, to instanceof AudioDestinationNode ? window.ear : to, ...more);
};
window.loudestHz = () => {
  if (!window.ear) return 0;
  const levels = new Float32Array(window.ear.frequencyBinCount);
  window.ear.getFloatFrequencyData(levels);
  const most = Math.max(...levels);
  return most > -60 ? levels.indexOf(most) * window.ear.context.sampleRate / 4096 : 0;
};
"""
"""An ear in front of the page's loudspeaker."""
OPEN = "!document.getElementById('microphone-open').hidden"


@pytest.fixture(scope="module")
def card(tmp_path_factory: pytest.TempPathFactory) -> SoundCard:
    """The sound card of the car."""
    return SoundCard(tmp_path_factory.mktemp("card"))


@pytest.fixture(scope="module")
def car(tmp_path_factory: pytest.TempPathFactory, card: SoundCard) -> Iterator[RunningBench]:
    """A car with an intercom, and https."""
    home = tmp_path_factory.mktemp("bench")
    running = RunningBench(home, "--host=0.0.0.0", *SMALL, *SOUND, env={"PATH": card.path})
    try:
        yield running.wait_ready()
    finally:
        running.stop()
        print(running.log())


@pytest.fixture(scope="module")
def talkative(playwright: Playwright) -> Iterator[Browser]:
    """Chromium with a microphone that beeps."""
    with chromium(SHELL, playwright, FLAGS) as running:
        yield running


@pytest.fixture
def page(talkative: Browser) -> Iterator[Page]:
    """A page that accepts the car's certificate."""
    context = talkative.new_context(
        viewport={"width": 1280, "height": 720}, ignore_https_errors=True
    )
    context.add_init_script(LOUDEST)
    yield context.new_page()
    context.close()


def at_the_wheel(page: Page, car: RunningBench) -> None:
    """Open the page over https, and take the wheel."""
    page.goto(f"https://localhost:{car.port + 1}/")
    until(page, "window.fpvcar?.state?.role && document.getElementById('gear')")
    if page.evaluate("window.fpvcar.state.role") != "driver":
        page.locator("#wheel").click()
    until(page, "window.fpvcar.state.role === 'driver'")
    go_on(page)


def loudest(sound: bytes) -> float:
    """Return the loudest level in mu-law."""
    return max((abs(linear(code)) for code in set(sound)), default=0.0)


def test_driver_talks_and_listens_after_a_grown_up_switched_it_on(
    page: Page, car: RunningBench, card: SoundCard, tmp_path: Path
) -> None:
    at_the_wheel(page, car)
    loaded = (
        "performance.getEntriesByType('resource').some(({name}) => name.endsWith('/intercom.js'))"
    )
    until(page, "document.getElementById('snapshot')")
    assert not page.evaluate(loaded), "it costs nothing while it is off"
    grown_up(page, car)
    page.locator("#intercom").check()
    page.locator("#talk").wait_for(state="attached")
    page.screenshot(path=tmp_path / "setting.png")
    assert violations(page) == []
    page.locator("[data-close=menu]").click()
    box = page.locator("#talk").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 10, box["y"] + 10)
    page.mouse.down()
    until(page, OPEN)
    wait_for(lambda: loudest(card.played()) > 0.05, "the car's speaker plays no beep", 20.0)
    page.screenshot(path=tmp_path / "talking.png")
    assert violations(page) == []
    page.mouse.up()
    until(page, f"!({OPEN})")
    wait_for(lambda: not card.running(), "the speaker's program runs on")
    page.locator("#listen").click()
    until(page, "Math.abs(window.loudestHz() - 440) < 20")
    page.screenshot(path=tmp_path / "listening.png")
    page.locator("#listen").click()
    wait_for(lambda: not card.running(), "the microphone's program runs on")
    page.keyboard.down("t")
    until(page, OPEN)
    page.evaluate("dispatchEvent(new Event('blur'))")
    until(page, f"!({OPEN})")
    page.keyboard.up("t")
    page.locator("#listen").click()
    wait_for(lambda: bool(card.running()), "the microphone does not run again")
    page.locator("#gear").click()
    page.locator("#intercom").uncheck()
    page.locator("#talk").wait_for(state="hidden")
    wait_for(lambda: not card.running(), "the microphone's program runs on")
