"""Calibration in the drawer: the car moves only while a finger is down. The results match the
bench; they are kept, undone, exported."""

import json
import tomllib
from contextlib import suppress
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page
from testkit.browsers.panels import NEWS, STEP, begun, calibrating, held, kept, one, phase, seated
from testkit.browsers.seat import GAMEPAD, open_menu, until
from testkit.harness import STRIP, RunningBench, started, wait_for

from fpvbench.world import scene
from fpvbench.world.bridge import Bridges, Wiring, mx1508
from fpvbench.world.process import World
from fpvcar.config import profiles
from fpvcar.runtime import paths

pytestmark = pytest.mark.e2e
OPTIONS = (
    STRIP,
    "--set=camera.width = 320",
    "--set=camera.height = 240",
    "--set=camera.fps = 5",
    '--set=gate.blind = "ignore"',
    "--set=server.first_takes_wheel = true",
)
"""Few pictures: physics and a browser are enough load for a busy machine."""
LONG_S = 60.0
FINE_PWM = "--set=motors.{}.pwm_hz = 500"
PIN_STEP = 1 / 400
"""Step of the PWM at 400 Hz: pigpio counts it in 5 us. A PWM of 4000 Hz has 50 steps only."""
EXPORT = "fetch('/api/calibration/profile').then((answer) => answer.text())"
LATE = """() => {
  const ask = window.fetch;
  window.fetch = async (url, ...more) => {
    const answer = await ask(url, ...more);
    const ms = /keep/.test(url) ? 500 : /calibration$/.test(url) ? 1000 : 0;
    await new Promise((done) => setTimeout(done, ms));
    return answer;
  };
}"""
"""The car's answer to "keep", and its list, come late; until then there is no step."""
SAYS = "document.querySelector('[data-testid=calibration-says]')?.textContent"


OVERFLOW = """() => {
  const body = document.querySelector('#sheet-body');
  const bottom = (element) => element.getBoundingClientRect().bottom;
  const last = document.querySelector('[data-testid=calibration-skip]');
  return [body.scrollHeight - body.clientHeight, Math.max(0, bottom(last) - bottom(body))];
}"""
"""How far the sheet scrolls, and how far the last button is out of sight, in px."""


def broken(page: Page) -> list[str]:
    """Return the rules that axe-core finds broken."""
    found = Axe().run(page, context="#calibration").response["violations"]
    return [f"{each['id']}: {each['nodes'][0]['html']}" for each in found]


def test_held_finger_moves_motor_and_direction_can_be_undone(
    page: Page, bench: RunningBench
) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    calibrating(page, bench)
    assert broken(page) == []
    page.locator("[data-close=sheet]").click()
    open_menu(page, "grown-ups")
    for number, limit in ((0, 0.167), (1, 0.5), (2, 1.0)):  # of 0.2 to 1.4 m/s
        page.locator(f"[data-testid=preset-{number}]").click()
        until(page, f"window.fpvcar.state.limit === {limit}")
    open_menu(page, "car")
    page.locator("#calibrate").click()
    file = bench.state / "calibration.json"
    assert not file.exists()
    begun(page, "direction-steer")
    assert broken(page) == []
    with bench.watch() as watch:
        page.wait_for_timeout(300)
        assert not any(sample.driving for sample in watch.samples)
        for _ in range(6):
            with held(page), suppress(AssertionError):
                until(page, f"{SAYS}.startsWith('It turns')", 3.0)
            wait_for(lambda: not watch.now.driving, "it turns on", 1.0)
            if phase(page) == "asks":
                break
    assert any(sample.duties[2] > 0.0 for sample in watch.samples)
    assert not any(sample.duties[0] or sample.duties[3] for sample in watch.samples)
    one(page, "say-right").click()
    page.evaluate(LATE)
    one(page, "calibration-keep").click()
    until(page, f"{NEWS} === 'Kept.'")
    page.wait_for_timeout(1500)
    assert page.evaluate(NEWS) == "Kept.", "and not that the step has ended"
    now = json.loads(file.read_text())
    assert now["changes"][0]["values"] == {"motors.steer.invert": True}
    text = page.evaluate(EXPORT)
    assert profiles.parse(tomllib.loads(text)).motors.pair[1].invert
    one(page, "calibration-all").click()
    one(page, "calibration-undo").click()
    until(page, f"{SAYS} === 'Undone.'")
    assert json.loads(file.read_text())["now"] == -1
    assert one(page, "calibration-undo").is_disabled()
    one(page, "calibration-history").locator("summary").click()
    assert "Direction: steering" in one(page, "calibration-history").inner_text()
    one(page, "calibration-values").locator("summary").click()
    one(page, "motors.drive.trim").fill("0.9")
    one(page, "motors.drive.trim").press("Enter")
    until(page, "!!document.querySelector('#calibration .fault')?.textContent")
    assert "0.5" in page.locator("#calibration .fault").inner_text()
    assert one(page, "begin-speed").is_visible()


def test_gamepad_axes_are_assigned_to_roles_and_drive(
    browser: Browser, bench: RunningBench
) -> None:
    context = browser.new_context(
        viewport={"width": 844, "height": 390}, has_touch=True, is_mobile=True
    )
    page = context.new_page()
    page.add_init_script(GAMEPAD)
    seated(page, bench.url)
    page.evaluate("plug()")
    open_menu(page, "drive")
    page.locator("#show-sticks").click()
    until(page, "document.querySelectorAll('#sticks .bars li').length === 25")
    page.locator("#sticks [data-testid=role-forward]").click()
    until(page, "!!document.querySelector('#sticks').textContent.match('Now press')")
    page.evaluate("pad.axes[1] = -1")
    until(page, "!!localStorage['fpvcar.sticks']?.includes('\"forward\":\"a1-\"')")
    assert page.evaluate("window.fpvcar.wish.throttle") == 0
    page.locator("#sticks [data-testid=gamepad-says]", has_text="Test Pad").wait_for()
    page.locator("#sticks [data-testid=left-handed]").check()
    found = Axe().run(page, context="#sticks").response["violations"]
    assert [each["id"] for each in found] == []
    page.evaluate("pad.axes[1] = 0")
    page.reload()  # the setting is kept
    until(page, "window.fpvcar?.state?.role === 'driver'", LONG_S)
    boxes = [page.locator(f"#pad-{name}").bounding_box() for name in ("drive", "steer")]
    assert boxes[0] and boxes[1] and boxes[0]["x"] > boxes[1]["x"]
    page.evaluate("plug()")
    for _ in range(5):
        page.evaluate("pad.axes[1] = 0")
        page.wait_for_timeout(100)
        page.evaluate("pad.axes[1] = -1")
        with suppress(AssertionError):
            until(page, "window.fpvcar.wish.throttle === 1", 2.0)
            break
    assert page.evaluate("window.fpvcar.wish.throttle") == 1
    context.close()


def found(page: Page, key: str) -> float:
    """Return the step's result from the car's state."""
    return float(page.evaluate(STEP)["found"][key])


def carried(bench: RunningBench) -> None:
    """Carry the car back to its start."""
    before = bench.world().time_ns
    bench.kill("world")
    wait_for(
        lambda: bench.world().tick < 100 and bench.world().time_ns > before + 10**8,
        "it is not carried",
        20.0,
    )
    assert abs(bench.world().x_m - scene.START_X_M) < 0.01


def turned_round(page: Page, bench: RunningBench) -> None:
    """Answer as a person would for a motor with swapped wires."""
    begun(page, "direction-drive")
    for _ in range(6):
        with held(page), suppress(AssertionError):
            wait_for(lambda: bench.world().speed_mps < -0.1, "it does not turn", 3.0)
        if phase(page) == "asks":
            break
    until(page, f"{SAYS} === 'Which way did it turn?'")
    one(page, "say-backward").click()
    kept(page)


def dead_band(page: Page) -> float:
    """Find the dead band with the range sensor behind the car."""
    begun(page, "dead_band-drive")
    for _ in range(20):
        before = phase(page)
        if before == "done":
            break
        if before == "rest":
            page.wait_for_timeout(200)
            continue
        with held(page), suppress(AssertionError):
            until(page, f"{STEP}.then(({{phase}}) => phase !== '{before}')", 25.0)
    value = found(page, "motors.drive.dead_band")
    kept(page)
    return value


def true_dead_band() -> float:
    """Return the least duty on the pin at which the same car moves off."""
    profile = profiles.load(paths.HARDWARE / "bench.toml")
    losses = Wiring(profile.motors).losses
    for step in range(40, 100):
        world = World(1, profile.battery, losses=losses)
        for _ in range(100):
            world.step(Bridges(mx1508(step * PIN_STEP, 0.0)))
        if world.pose[0] - scene.START_X_M > 0.01:
            return step * PIN_STEP
    raise AssertionError("it never moves")


def runs(page: Page, bench: RunningBench, throttle: float, seconds: float) -> float:
    """Run at a throttle; return the world's speed at its end."""
    carried(bench)
    one(page, "throttle").select_option(f"{throttle:g}")
    count = page.locator("#calibration li").count()
    for _ in range(8):
        with held(page):
            page.wait_for_timeout(seconds * 1000)
            speed_mps = float(bench.world().speed_mps)
        page.wait_for_timeout(1200)
        if page.locator("#calibration li").count() > count:
            return speed_mps
        carried(bench)
    raise AssertionError(f"no run: {phase(page)}")


@pytest.mark.soak
@pytest.mark.long
def test_whole_calibration_finds_the_true_values(browser: Browser, tmp_path: Path) -> None:
    wrong = ("--set=motors.drive.dead_band = 0.05", "--set=guard.top_mps = 0.8")
    swapped = "--really=motors.drive.invert = true"
    with started(tmp_path, *OPTIONS, *wrong, swapped, FINE_PWM.format("drive")) as bench:
        page = browser.new_page()
        calibrating(page, bench)
        turned_round(page, bench)
        carried(bench)
        value = dead_band(page)
        assert value == pytest.approx(true_dead_band(), rel=0.05)
        begun(page, "speed")
        for throttle, seconds in ((0.3, 2.6), (0.6, 1.8)):
            runs(page, bench, throttle, seconds)
        top = found(page, "guard.top_mps")
        least = found(page, "speeds.least_mps")
        kept(page)
        print(f"dead band {value}, top {top}, least {least}")
        begun(page, "speed")
        true = runs(page, bench, 0.6, 2.2)
        assert least + 0.6 * (top - least) == pytest.approx(true, rel=0.10)
        now = profiles.parse(tomllib.loads(page.evaluate(EXPORT)))
        assert now.motors.pair[0].invert and now.guard.top_mps == top


@pytest.mark.soak
@pytest.mark.long
def test_uneven_sides_are_balanced(browser: Browser, tmp_path: Path) -> None:
    true = 0.08
    alike = [
        f"--set=motors.{name}.{line}"
        for name in ("left", "right")
        for line in ("dead_band = 0.14", "max_volts = 3.0", "pwm_hz = 500")
    ]
    profile = f"--profile={paths.HARDWARE / 'differential.toml'}"
    uneven = f"--really=motors.balance = {true}"
    with started(tmp_path, *OPTIONS, profile, *alike, uneven) as bench:
        page = browser.new_page()
        calibrating(page, bench)
        begun(page, "straight")
        for _ in range(6):
            carried(bench)
            with held(page):
                page.wait_for_timeout(1800)
            until(page, f"{SAYS} === 'How far did it go?'")
            page.wait_for_timeout(1000)
            world = bench.world()
            one(page, "way-m").fill(f"{world.x_m - scene.START_X_M:.3f}")
            one(page, "calibration-skip").click()
            one(page, "aside-cm").fill(f"{abs(world.y_m) * 100:.1f}")
            one(page, "aside-to").select_option("1" if world.y_m > 0.0 else "-1")
            one(page, "say-aside").click()
            until(page, f"{STEP}.then(({{phase}}) => phase !== 'asks')")
            if phase(page) == "done":
                break
        assert found(page, "motors.balance") == pytest.approx(true, rel=0.05)
        kept(page)
