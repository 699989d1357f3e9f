"""Calibration as a guided run: one question a screen, with its place, for keys and a phone."""

import json
from contextlib import suppress

import pytest
from playwright.sync_api import Page
from testkit.browsers.panels import NEWS, begun, calibrating, held, one, phase
from testkit.browsers.seat import go_on, grown_up, open_menu, stands, until
from testkit.harness import GUARD, RunningBench

from tests.e2e.pages.test_calibration_page import LONG_S, OVERFLOW, SAYS, broken, carried
from tests.e2e.pages.test_calibration_page import OPTIONS as PLAIN

pytestmark = pytest.mark.e2e
OPTIONS = (*PLAIN, GUARD)
STEPS = 8
"""Steps of the bench's car: two motors twice, speed, two sensors, a battery."""
AHEAD_M = "window.fpvcar.state.ranges.find(({name}) => name === 'front').range_m ?? 9"
HELD_BACK = r"""/^Held back by the guard: 0\.\d\d\sm ahead\.$/.test(
  document.querySelector('[data-testid=calibration-held-back]').textContent)"""
FOCUSED = "document.activeElement?.dataset.testid"


def place(page: Page) -> str:
    """Return the place of the step in the run, such as "3 of 8"."""
    return str(one(page, "calibration-progress").inner_text())


def test_every_step_has_its_place_and_fits_a_phone(page: Page, bench: RunningBench) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    calibrating(page, bench)
    one(page, "calibration-start").click()
    for number in range(1, STEPS + 1):
        one(page, "calibration-progress").get_by_text(f"{number} of {STEPS}").wait_for()
        assert page.evaluate(OVERFLOW) == [0, 0], (
            number,
            page.locator("#calibration").inner_text(),
        )
        assert broken(page) == [], number
        if number == 2:
            one(page, "calibration-back").click()
            one(page, "calibration-progress").get_by_text(f"1 of {STEPS}").wait_for()
            one(page, "calibration-skip").click()
            one(page, "calibration-progress").get_by_text(f"2 of {STEPS}").wait_for()
        if number < STEPS:
            one(page, "calibration-skip").click()
    one(page, "say-nimh").click()
    one(page, "say-full").wait_for()
    assert not one(page, "say-nimh").is_visible(), "one question a screen"
    one(page, "calibration-skip").click()
    one(page, "calibration-start").wait_for()
    assert page.evaluate("localStorage['fpvcar.calibration']") == ""


def test_left_run_continues_at_its_step_with_what_was_kept(page: Page, bench: RunningBench) -> None:
    calibrating(page, bench)
    begun(page, "battery")
    one(page, "say-lithium").click()
    one(page, "calibration-keep").click()
    until(page, f"{SAYS} === 'Kept. That was the last step.'")
    one(page, "calibration-start").get_by_text(f"Start: {STEPS} steps").wait_for()
    begun(page, "distance-front")
    page.reload()
    until(page, "window.fpvcar?.state?.role === 'driver'", LONG_S)
    go_on(page)  # a slow reload stops the car
    if not page.evaluate("window.fpvcar.state.grown_up"):
        grown_up(page, bench)
    open_menu(page, "car")
    page.locator("#calibrate").click()
    one(page, "calibration-start").get_by_text(f"Continue with step 6 of {STEPS}").click()
    assert place(page) == f"6 of {STEPS}"
    changes = json.loads((bench.state / "calibration.json").read_text())["changes"]
    assert changes[-1]["what"] == "battery" and "battery.curve" in changes[-1]["values"]


def test_guard_is_named_with_its_range_and_the_tape_waits_for_the_wall(
    page: Page, bench: RunningBench
) -> None:
    calibrating(page, bench)
    carried(bench)
    begun(page, "distance-front")
    one(page, "tape-m").wait_for()
    assert one(page, "tape-m").is_disabled() and one(page, "say-tape").is_disabled()
    assert "Waiting for the wall:" in page.locator("#tape-waits").inner_text()
    one(page, "calibration-all").click()
    begun(page, "speed")
    for _ in range(8):
        with held(page), suppress(AssertionError):
            until(page, f"({AHEAD_M}) < 1.4", 8.0)
        if page.evaluate(f"({AHEAD_M}) < 1.5"):
            break
    for _ in range(60):
        if page.evaluate(f"({AHEAD_M}) < 0.72"):
            break
        with held(page):
            page.wait_for_timeout(300)
        page.wait_for_timeout(300)
    one(page, "calibration-skip").click()
    one(page, "tape-m").wait_for()
    until(page, "!document.querySelector('[data-testid=tape-m]').disabled")
    assert page.locator("#tape-waits").inner_text() == ""
    one(page, "tape-m").fill(str(page.evaluate(AHEAD_M)))
    one(page, "say-tape").click()
    one(page, "calibration-found").get_by_text("Sensor corrected by").wait_for()
    one(page, "calibration-back").click()
    one(page, "throttle").select_option("0.6")
    for _ in range(8):  # a late wish on a busy machine stops the car until the next push
        with held(page), suppress(AssertionError):
            until(page, HELD_BACK, 4.0)
            break
    else:
        raise AssertionError(one(page, "calibration-held-back").text_content())
    assert not page.evaluate(f"{NEWS}")


def test_keys_alone_begin_a_step_and_move_the_motor_only_while_enter_is_held(
    page: Page, bench: RunningBench
) -> None:
    carried(bench)
    calibrating(page, bench)
    until(page, f"{FOCUSED} === 'calibration-start'")
    page.keyboard.press("Enter")
    until(page, "document.activeElement?.tagName === 'H3'")
    for _ in range(3):
        page.keyboard.press("Tab")
        if page.evaluate(FOCUSED) == "calibration-hold":
            break
    assert page.evaluate(FOCUSED) == "calibration-hold"
    with bench.watch() as watch:
        for _ in range(6):
            page.keyboard.down("Enter")
            with suppress(AssertionError):
                until(page, f"{SAYS}.startsWith('The motor turns')", 4.0)
            page.keyboard.up("Enter")
            stands(watch)
            if phase(page) == "asks":
                break
    assert any(sample.driving for sample in watch.samples), "Enter moves nothing"
    one(page, "say-forward").wait_for()
    page.keyboard.press("Tab")
    until(page, f"{FOCUSED} === 'say-forward'")
    page.keyboard.press("Enter")
    until(page, f"{SAYS}.startsWith('The direction is right')")
    for _ in range(6):
        page.keyboard.press("Tab")
        if page.evaluate(FOCUSED) == "calibration-skip":
            break
    page.keyboard.press("Enter")
    one(page, "calibration-progress").get_by_text(f"2 of {STEPS}").wait_for()
