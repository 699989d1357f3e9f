"""The collision guard at the wheel: its actions, texts and sounds; /healthz."""

import re
import signal
import urllib.error
import urllib.request

import pytest
from playwright.sync_api import Page, expect
from prometheus_client.parser import text_string_to_metric_families
from testkit.browsers.seat import at_the_wheel, drives, grown_up, open_menu, until
from testkit.harness import SMALL, RunningBench, wait_for

from fpvbench import soc as chip
from fpvcar.config import profiles
from fpvcar.runtime import paths

pytestmark = [pytest.mark.e2e, pytest.mark.alone]
# The guard has the setting of the bench's profile, unlike in other tests.
OPTIONS = (
    *SMALL,
    '--set=guard.mode = "limit"',
    '--set=depth.source = "bench"',
    '--set=gate.blind = "ignore"',
)
SENSORS = profiles.load(paths.HARDWARE / "bench.toml").sensors
SAYS = "document.querySelector('.guard-says')?.textContent"
LISTEN = """
window.beeps = 0;
AudioParam.prototype.setValueAtTime = function(value) {
  if (value > 0) window.beeps += 1;
  return this;
};
"""


def fetched(bench: RunningBench, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"{bench.url}{path}", timeout=5.0) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode()


def metric(bench: RunningBench, name: str, **labels: str) -> float | None:
    text = fetched(bench, "metrics")[1]
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name == f"fpvcar_{name}" and sample.labels == labels:
                return float(sample.value)
    return None


def reverses(page: Page, reached: str) -> None:
    """Hold the key down until the condition holds; try again where a busy machine was silent."""
    drives(
        page,
        lambda: bool(page.evaluate(reached)),
        lambda: page.keyboard.down("ArrowDown"),
        lambda: page.keyboard.up("ArrowDown"),
        reached,
    )


@pytest.mark.smoke
def test_guard_slows_and_stops_reverse_at_a_wall(page: Page, bench: RunningBench) -> None:
    """The car slows, stops before the wall, shows a message and beeps. Once a grown-up has set
    the guard to warn, it only shows the message."""
    page.add_init_script(LISTEN)
    at_the_wheel(page, bench.url)
    until(page, f"{SAYS} === '' && window.fpvcar.state.guard.mode === 'limit'")
    assert page.evaluate("window.beeps") == 0
    reverses(page, "window.fpvcar.state.reason === 'guarded'")
    reverses(page, f"{SAYS}.includes('m behind: the car stops')")
    wait_for(lambda: abs(bench.world().speed_mps) < 0.02, "it drives on")
    assert bench.world().hardest_mps < 0.1, "it met the wall, and be it for a moment"
    assert page.evaluate("window.beeps") > 2
    page.keyboard.up("ArrowDown")
    until(page, f"{SAYS} === ''")
    grown_up(page, bench)
    page.locator("#guard").select_option("warn")
    until(page, "window.fpvcar.state.guard.mode === 'warn'")
    page.keyboard.press("Escape")  # closes the panel
    assert page.evaluate("window.fpvcar.state.stop") is None
    page.keyboard.press("Escape")  # no panel is open: stops the car
    page.locator("#resume").click()
    until(page, "window.fpvcar.state.stop === null")
    reverses(page, f"{SAYS}.includes('m behind: brake!')")
    assert page.evaluate("window.fpvcar.state.reason") != "guarded"
    page.keyboard.up("ArrowDown")
    assert metric(bench, "guard_mode", mode="warn") == 1
    assert (metric(bench, "gate_reasons_total", reason="guarded") or 0) >= 1
    assert (metric(bench, "stops_total", cause="estop_grown_up") or 0) >= 1


def test_failed_rear_sensor_is_shown_and_reversing_beeps(page: Page, bench: RunningBench) -> None:
    """The drawer shows the sensor, the reason and the time of the fault; reversing beeps."""
    page.add_init_script(LISTEN)
    at_the_wheel(page, bench.url)
    ill = page.locator("#sensor-faults")
    echo = bench.soc.pin[SENSORS.ultrasound["rear"].echo]
    echo.external = 0  # its wire is off
    try:
        open_menu(page, "car")
        expect(ill).to_have_text(re.compile(r"^rear: does not answer, .* \d+.s ago$"))
        label = page.locator("#ranges").get_attribute("aria-label") or ""
        assert re.search(r"rear: no distance \(does not answer, .*.s ago\)", label)
        page.locator("#gear").click()
        assert page.evaluate("window.beeps") == 0
        reverses(page, "window.beeps > 0")
        page.keyboard.up("ArrowDown")
    finally:
        echo.external = chip.FLOATING
    open_menu(page, "car")
    expect(ill).to_be_hidden()


def test_depth_camera_is_range_sensor_and_drawer_picture(page: Page, bench: RunningBench) -> None:
    """The depth camera is a range sensor, and a picture among the figures."""
    at_the_wheel(page, bench.url)
    young = "window.fpvcar.state.ranges.find((one) => one.name === 'depth')"
    until(page, f"{young}.state === 'ok' && {young}.age_s < 0.5")
    page.locator("#link-chip").click()
    page.locator("#show-figures").click()
    until(page, "document.querySelector('#depth')?.naturalWidth === 80")


def test_healthz_and_metrics_follow_the_car(bench: RunningBench) -> None:
    wait_for(lambda: fetched(bench, "healthz") == (200, "ok\n"), "not well")
    assert (metric(bench, "battery_volts") or 0.0) > 6.0
    bench.kill("wheels", signal.SIGSTOP)
    try:
        wait_for(lambda: fetched(bench, "healthz")[0] == 503, "well with hung wheels")
        assert "wheels: " in fetched(bench, "healthz")[1]
        assert metric(bench, "wheels_up") == 0
    finally:
        bench.kill("wheels", signal.SIGCONT)
    wait_for(lambda: fetched(bench, "healthz") == (200, "ok\n"), "not well again")
