"""First drive on each kind of pins of the bench: motors, ranges, battery, a button and its LED."""

from pathlib import Path

import pytest
from testkit.driver import Driver, free, set_off, sit_down, stand_up
from testkit.harness import NO_GUARD, STRIP, started, wait_for

from fpvbench import soc as chip
from fpvbench.outside import drive
from fpvcar.config import BENCH_PINS, profiles
from fpvcar.runtime import paths

pytestmark = [pytest.mark.e2e, pytest.mark.smoke]
RED = profiles.load(paths.HARDWARE / "bench.toml").buttons["red"]


@pytest.mark.parametrize("pins", BENCH_PINS)
def test_first_drive_reaches_each_part_of_the_car(tmp_path: Path, pins: str) -> None:
    assert RED.button is not None and RED.led is not None
    with (
        started(tmp_path, STRIP, NO_GUARD, f"--pins={pins}") as bench,
        Driver(bench.port) as driver,
        bench.watch() as watch,
    ):
        sit_down(driver)
        free(driver)
        set_off(driver, watch)
        driver.drive(0.0, 0.0)
        wait_for(lambda: not watch.now.driving, "drives on")
        stand_up(driver)

        def battery() -> dict[str, float | str]:
            return driver.state["battery"] or {}

        wait_for(lambda: battery().get("state") == "ok", "no battery")
        assert battery()["volts"] == pytest.approx(bench.world().battery_v, abs=0.5)

        def healthy() -> set[str]:
            return {one["name"] for one in driver.state["ranges"] if one["state"] == "ok"}

        wait_for(lambda: healthy() >= {"front", "rear"}, "no ranges")
        led = bench.soc.pin[RED.led]
        drive(bench.soc, RED.button, 0)
        wait_for(lambda: led.duty() > 0.0, "the pushed button is dark")
        drive(bench.soc, RED.button, chip.FLOATING)
        wait_for(lambda: led.duty() == 0.0, "the button stays lit")
