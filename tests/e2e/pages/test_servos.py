"""Pan and tilt on the bench: from keys, stick and viewers to the pulses at the emulated pins."""

import json
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from testkit.browsers.seat import (
    GAMEPAD,
    at_the_wheel,
    drives,
    go_on,
    grown_up,
    open_menu,
    opened,
    until,
)
from testkit.driver import Driver, free, sit_down, stand_up
from testkit.harness import RunningBench, started, wait_for

from fpvbench.world.bridge import aimed_deg
from fpvcar.config import profiles
from fpvcar.runtime import paths

pytestmark = pytest.mark.e2e
SERVOS = profiles.load(paths.HARDWARE / "pan-tilt.toml").servos
OPTIONS = (
    f"--profile={paths.HARDWARE / 'pan-tilt.toml'}",
    "--set=server.first_takes_wheel = true",
    "--set=camera.width = 320",
    '--set=car.name = "Plague"',
    "--set=camera.height = 240",
)
READY = "document.getElementById('look')?.hidden === false"


def angles(bench: RunningBench) -> tuple[float, float]:
    """Return pan and tilt by the pulses at their pins."""
    pan, tilt = (aimed_deg(bench.soc, servo) for servo in SERVOS.values())
    assert pan is not None and tilt is not None, "no pulses"
    return pan, tilt


def fetched(bench: RunningBench, path: str) -> str:
    """Return the body of an answer, also of a 503."""
    try:
        with urllib.request.urlopen(f"{bench.url}{path}") as answer:
            return str(answer.read(), "utf-8")
    except urllib.error.HTTPError as refused:
        with refused:
            return str(refused.read(), "utf-8")


def reaches(bench: RunningBench, pan: float, tilt: float) -> None:
    wait_for(
        lambda: [round(deg) for deg in angles(bench)] == [pan, tilt],
        f"{angles(bench)} is not {pan}, {tilt}",
    )


def settle(bench: RunningBench) -> None:
    """Wait until the angles have not changed for 0.3 s."""
    last, since_s = angles(bench), time.monotonic()
    while time.monotonic() - since_s < 0.3:
        time.sleep(0.02)
        if (now := angles(bench)) != last:
            last, since_s = now, time.monotonic()


@pytest.fixture
def page(bench: RunningBench, browser: Browser) -> Page:
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    at_the_wheel(page, bench.url)
    until(page, READY)
    page.keyboard.press("r")
    reaches(bench, 0, 0)
    return page


def held(
    page: Page, key: str, bench: RunningBench, axis: int, beyond: float, driver: Page | None = None
) -> None:
    """Hold a key until an axis is beyond an angle; a stop ends a motion, so it tries again."""
    drives(
        driver or page,
        lambda: angles(bench)[axis] * beyond > beyond * beyond,
        lambda: page.keyboard.down(key),
        lambda: page.keyboard.up(key),
        key,
    )
    page.keyboard.up(key)


def test_keys_turn_the_camera_to_its_limits_and_back(bench: RunningBench, page: Page) -> None:
    held(page, "j", bench, 0, 20.0)
    held(page, "l", bench, 0, -20.0)
    page.keyboard.down("i")
    page.keyboard.down("l")
    reaches(bench, -70, 45)
    page.keyboard.up("i")
    page.keyboard.up("l")
    page.keyboard.press("r")
    reaches(bench, 0, 0)
    assert page.evaluate("window.fpvcar.state.settings.head_lights") is False


def test_stick_on_the_screen_turns_it_and_a_tap_looks_ahead(
    bench: RunningBench, page: Page
) -> None:
    box = page.locator("#look").bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 60, y + 60, steps=4)
    reaches(bench, 70, -30)
    until(page, "Math.round(window.fpvcar.state.parts.servos.servos.pan.deg) === 70")
    view = page.locator("#look .view").get_attribute("transform")
    assert view == "translate(0 46)", "the picture shows another direction"
    page.mouse.up()
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.up()
    reaches(bench, 0, 0)


def test_lost_focus_and_closed_page_hold_it_still(bench: RunningBench, page: Page) -> None:
    page.keyboard.down("j")
    wait_for(lambda: angles(bench)[0] > 5.0, "it does not turn")
    page.context.close()
    settle(bench)
    assert angles(bench)[0] < 70.0, "it turned on to its limit"


def test_stop_holds_pan_and_centres_tilt_as_in_the_profile(bench: RunningBench, page: Page) -> None:
    held(page, "j", bench, 0, 30.0)
    held(page, "i", bench, 1, 20.0)
    page.keyboard.press("Space")
    wait_for(lambda: round(angles(bench)[1]) == 0, "tilt is not centred")
    pan = angles(bench)[0]
    assert pan > 30.0
    page.keyboard.down("l")
    page.wait_for_timeout(500)
    page.keyboard.up("l")
    assert angles(bench)[0] == pan, "a stopped car turned its camera"
    go_on(page)
    held(page, "l", bench, 0, -5.0)


def test_viewer_turns_it_once_a_grown_up_allows_it(
    bench: RunningBench, browser: Browser, page: Page
) -> None:
    viewer = browser.new_page(viewport={"width": 844, "height": 390})
    opened(viewer, bench.url)
    until(viewer, READY)
    assert viewer.locator("#look").get_attribute("aria-disabled") == "true"
    viewer.keyboard.down("j")
    viewer.wait_for_timeout(500)
    viewer.keyboard.up("j")
    assert [round(deg) for deg in angles(bench)] == [0, 0]
    grown_up(page, bench)
    page.locator("#tab-car").click()
    page.locator("#let-look").check()
    until(viewer, "document.getElementById('look').getAttribute('aria-disabled') === 'false'")
    held(viewer, "j", bench, 0, 20.0, page)
    page.locator("#let-look").uncheck()
    until(viewer, "document.getElementById('look').getAttribute('aria-disabled') === 'true'")


def test_gamepad_turns_it_by_its_right_stick_and_d_pad(
    bench: RunningBench, browser: Browser
) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    context.add_init_script(GAMEPAD)
    page = at_the_wheel(context.new_page(), bench.url)
    until(page, READY)
    page.evaluate("window.plug(); window.pad.buttons[11].pressed = true")
    reaches(bench, 0, 0)
    page.evaluate("window.pad.buttons[11].pressed = false; window.pad.axes = [0, 0, -1, 1]")
    reaches(bench, 70, -30)
    page.evaluate("window.pad.axes = [0, 0, 0, 0]; window.pad.buttons[15].pressed = true")
    reaches(bench, -70, -30)
    page.evaluate("window.pad.buttons[15].pressed = false; window.pad.buttons[11].pressed = true")
    reaches(bench, 0, 0)
    context.close()


TURNED = """([alpha, beta, gamma]) => dispatchEvent(
  new DeviceOrientationEvent('deviceorientation', {alpha, beta, gamma}))"""


def test_camera_follows_the_phone_if_asked(bench: RunningBench, browser: Browser) -> None:
    context = browser.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True
    )
    context.add_init_script(
        "localStorage.setItem('fpvcar.seen', 'yes');"
        "DeviceOrientationEvent.requestPermission = async () => 'granted';"
    )
    page = at_the_wheel(context.new_page(), bench.url)
    until(page, READY)
    page.locator("#look").tap()
    reaches(bench, 0, 0)
    page.evaluate(TURNED, [0, 90, 0])
    open_menu(page, "drive")
    page.locator("#look-phone").check()
    page.evaluate(TURNED, [10, 90, 0])
    page.wait_for_timeout(100)
    page.evaluate(TURNED, [40, 110, 0])
    reaches(bench, 30, 20)
    page.locator("#look-phone").uncheck()
    page.evaluate(TURNED, [90, 90, 0])
    settle(bench)
    reaches(bench, 30, 20)
    context.close()


@pytest.mark.parametrize("pwm", ["[]", "[12, 13]"], ids=["thread", "kernel's PWM"])
def test_kernels_pins_make_the_pulses(tmp_path: Path, pwm: str) -> None:
    more = ("--pins=kernel", '--set=pins.backend = "linux"', f"--set=pins.pwm = {pwm}")
    with started(tmp_path, *OPTIONS, *more) as bench:
        wait_for(lambda: aimed_deg(bench.soc, SERVOS["tilt"]) is not None, "no pulses", 20.0)
        reaches(bench, 0, 0)


def test_replay_shows_where_the_camera_looked(tmp_path: Path, browser: Browser) -> None:
    with started(tmp_path, *OPTIONS, "--set=recording.segment_s = 5") as bench:
        with Driver(bench.port) as driver:
            sit_down(driver)
            free(driver)
            driver.drive(0.3, 0.0)
            time.sleep(1.0)
            driver.drive(0.0, 0.0)
            driver.say(kind="look", to={"pan": 40, "tilt": 20}, seen=driver.seen)
            reaches(bench, 40, 20)
            time.sleep(6.0)  # a further file begins, in which nothing turns
            stand_up(driver)
        page = browser.new_page(viewport={"width": 390, "height": 844})
        page.goto(f"{bench.url}recordings.html")
        until(page, "window.recordings?.drives >= 1")
        page.locator("#list a").first.click()
        until(page, "window.recordings.lines.some((line) => line.includes('pan'))")
        views = []
        for key in ("Home", "End"):
            page.keyboard.press(key)
            until(page, "document.getElementById('look').hidden === false")
            page.wait_for_timeout(300)
            views.append(page.locator("#look .view").get_attribute("transform"))
        assert views == ["translate(33 28)", "translate(14 15)"]
        assert page.locator("#look").get_attribute("aria-label")
        page.screenshot(path=str(tmp_path / "replay.png"))
        page.close()


def test_fault_of_a_chip_is_shown_and_the_car_drives(tmp_path: Path, browser: Browser) -> None:
    on_chip = (
        "--set=servos = {}",
        "--set=servos.pan = {channel = 0}",
        "--set=servos.tilt = {channel = 15}",
    )
    with started(tmp_path, *OPTIONS, *on_chip) as bench:
        page = browser.new_page(viewport={"width": 390, "height": 844}, locale="fr")
        at_the_wheel(page, bench.url)
        until(page, READY)
        bench.soc.hat.broken = 1
        until(page, "document.getElementById('look').classList.contains('fault')")
        label = page.locator("#look").get_attribute("aria-label") or ""
        assert "PCA9685" in label and label.startswith("La caméra ne peut pas tourner")
        assert "PCA9685" in json.loads(fetched(bench, "api/status"))["servos"]
        assert "servos: PCA9685" in fetched(bench, "healthz")

        def moves() -> bool:
            page.keyboard.up("ArrowUp")
            page.wait_for_timeout(200)
            page.keyboard.down("ArrowUp")
            page.wait_for_timeout(500)
            return any(bench.soc.pin[gpio].duty() for gpio in bench.pins)

        wait_for(moves, "it stands")
        page.keyboard.up("ArrowUp")
        open_menu(page, "car")
        assert "PCA9685" in page.locator("#menu").inner_text()
        bench.soc.hat.broken = 0
        until(page, "!document.getElementById('look').classList.contains('fault')")
        assert json.loads(fetched(bench, "api/status"))["servos"] == "ok"
        assert "servos" not in fetched(bench, "healthz")
        page.close()
