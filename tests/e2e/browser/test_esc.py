"""An RC car in a browser: forward, brake, backward, stop, at the signal wire of its ESC."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page
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
