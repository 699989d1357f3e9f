"""An RC car in a browser: forward, brake, backward, stop, at the signal wire of its ESC."""

import contextlib
import json
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page
from testkit.browsers.panels import STEP, begun, calibrating, held, kept, one, phase
from testkit.browsers.seat import at_the_wheel, holds, until
from testkit.harness import SMALL, wait_for
from testkit.stops import esc_causes
from testkit.stops.pulses import stop_faults

pytestmark = [pytest.mark.e2e, pytest.mark.alone]
NEUTRAL_US = 1500.0


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[esc_causes.EscBench]:
    """A bench whose ESC brakes first, on the kernel's PWM as in hardware/rc-esc.toml."""
    home: Path = tmp_path_factory.mktemp("rc")
    made = esc_causes.EscBench(home, *SMALL, *esc_causes.options(esc_causes.KERNEL))
    try:
        made.wait_ready()
        yield made
    finally:
        made.stop()
        print(made.log())


def test_rc_car_drives_brakes_reverses_and_stops(page: Page, bench: esc_causes.EscBench) -> None:
    at_the_wheel(page, bench.url)
    with bench.watch() as watch:

        def pulse_us() -> float:
            return watch.pulses.all[-1].us

        wait_for(lambda: pulse_us() == NEUTRAL_US, "no neutral at the start")
        holds(page, watch, "ArrowUp")
        wait_for(lambda: pulse_us() > 1600.0, "no throttle")
        wait_for(lambda: bench.world().speed_mps > 0.3, "it does not drive forward")
        page.keyboard.up("ArrowUp")
        wait_for(lambda: pulse_us() == NEUTRAL_US, "a stop is neutral")
        assert stop_faults(watch.pulses.all, NEUTRAL_US) == []
        driven = len(watch.pulses.all)
        holds(page, watch, "ArrowDown")
        wait_for(lambda: bench.world().speed_mps < -0.3, "it does not drive backward")
        page.keyboard.up("ArrowDown")
        wait_for(lambda: pulse_us() == NEUTRAL_US, "a stop is neutral, also backward")
    widths = watch.pulses.widths[driven:]
    paused = widths.index(NEUTRAL_US)
    assert paused and max(widths[:paused]) < NEUTRAL_US, "first a brake"
    assert widths[paused + 1] < NEUTRAL_US and widths[-1] == NEUTRAL_US, "then backward"
    assert all(us <= NEUTRAL_US for us in widths), "backward never needs a forward pulse"
    assert "world: ESC:" not in bench.log()


def test_estop_is_neutral(page: Page, bench: esc_causes.EscBench) -> None:
    at_the_wheel(page, bench.url)
    with bench.watch() as watch:
        holds(page, watch, "ArrowUp")
        page.keyboard.press("Space")
        wait_for(lambda: not watch.now.driving, "it drives on")
        page.keyboard.up("ArrowUp")
        assert watch.pulses.widths[-1] == NEUTRAL_US
        until(page, "document.body.innerText.match(/[Ss]topped/)")
        assert watch.faults() == []


def pulsed(watch: esc_causes.EscWatch, pulse_us: float) -> None:
    """Wait until the ESC gets pulses of this width."""
    wait_for(lambda: watch.pulses.all[-1].us == pulse_us, f"no pulse of {pulse_us:g} us", 10.0)


def test_esc_is_calibrated_in_small_pulses(page: Page, tmp_path: Path) -> None:
    """Neutral by hand, then by both ends of the dead band; a stop takes a trial back."""
    true = ("--really=motors.drive.neutral_us = 1515", '--set=gate.blind = "ignore"')
    lines = esc_causes.options(esc_causes.KERNEL)
    bench = esc_causes.EscBench(tmp_path, *SMALL, *lines, *true)
    try:
        bench.wait_ready()
        page.set_viewport_size({"width": 390, "height": 844})
        calibrating(page, bench)
        with bench.watch() as watch:
            neutral_found_by_hand(page, watch)
            dead_band_found(page, bench)
            stop_takes_the_trial_back(page, watch)
            widths = watch.pulses.widths
        exported = page.evaluate("fetch('api/calibration/profile').then((answer) => answer.text())")
    finally:
        bench.stop()
        print(bench.log())
    values = json.loads((bench.state / "calibration.json").read_text())["changes"][-1]["values"]
    assert values["motors.drive.neutral_us"] == pytest.approx(1515.0, abs=10.0)
    assert 30.0 <= values["motors.drive.dead_band_us"] <= 120.0
    assert 1330.0 < min(widths) and max(widths) < 1680.0, "a pulse beyond the limit"
    assert "world: ESC:" not in bench.log()
    drive = tomllib.loads(exported)["motors"]["drive"]
    assert drive["neutral_us"] == values["motors.drive.neutral_us"]


def neutral_found_by_hand(page: Page, watch: esc_causes.EscWatch) -> None:
    begun(page, "neutral-drive")
    assert not one(page, "calibration-hold").is_visible()
    pulsed(watch, NEUTRAL_US)
    for number in (1, 2):
        one(page, "say-creeps_backward").click()
        pulsed(watch, NEUTRAL_US + 5.0 * number)
    one(page, "say-still").click()
    one(page, "calibration-found").wait_for()
    kept(page)
    pulsed(watch, NEUTRAL_US + 10.0)


def dead_band_found(page: Page, bench: esc_causes.EscBench) -> None:
    begun(page, "dead_band_us-drive")
    for _ in range(20):
        if phase(page) == "done":
            break
        until(page, f"{STEP}.then(({{phase}}) => phase !== 'rest')")
        with held(page), contextlib.suppress(AssertionError):
            wait_for(lambda: abs(bench.world().speed_mps) > 0.02, "it does not turn", 20.0)
            page.wait_for_timeout(400)
        assert phase(page) in ("first", "second"), page.evaluate(STEP)
        one(page, "say-turns").click()
        wait_for(lambda: abs(bench.world().speed_mps) < 0.01, "it rolls on", 10.0)
    one(page, "calibration-found").wait_for()
    kept(page)


def stop_takes_the_trial_back(page: Page, watch: esc_causes.EscWatch) -> None:
    kept_us = watch.pulses.all[-1].us
    begun(page, "neutral-drive")
    one(page, "say-creeps_backward").click()
    wait_for(lambda: watch.pulses.all[-1].us > kept_us + 4.0, "no trial", 10.0)
    page.keyboard.press("Space")
    pulsed(watch, kept_us)
    until(page, f"{STEP}.then(({{phase}}) => phase === 'stopped')")
