"""Driving over far links: the share of the time that the car drives."""

import os
import time
from collections.abc import Iterator

import pytest
from testkit.browsers.phone import drive_code
from testkit.driver import Driver, free, sit_down
from testkit.harness import SMALL, RunningBench, started
from testkit.network.air import Air, Weather

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.alone,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]
HELD_S = 3.0


@pytest.fixture(scope="module")
def air() -> Iterator[Air]:
    with Air() as made:
        yield made


@pytest.fixture(scope="module")
def far_bench(tmp_path_factory: pytest.TempPathFactory, air: Air) -> Iterator[RunningBench]:
    with started(tmp_path_factory.mktemp("far"), "--host=0.0.0.0", *SMALL) as running:
        yield running


def share_driven(air: Air, bench: RunningBench, weather: Weather) -> float:
    """Hold the stick forward over this weather; return the share of the time that the car drove.

    The weather changes after the seat is taken, which a slow link would only delay.
    """
    with Driver(
        bench.port, code=drive_code(bench), host=air.near, link=air.connect(bench.port)
    ) as driver:
        sit_down(driver)
        free(driver)
        with bench.watch() as watch:
            air.set(weather)
            time.sleep(1.0)  # the newest nonce is now as old as the link makes it
            driver.wish = (0.3, 0.0)
            time.sleep(1.0)
            drove, until_s = [], time.monotonic() + HELD_S
            while time.monotonic() < until_s:
                drove.append(watch.now.driving)
                time.sleep(0.01)
            air.find()
        free(driver)
    return sum(drove) / len(drove)


@pytest.mark.parametrize(
    ("round_trip_s", "loss", "least"), [(0.04, 0.0, 0.9), (0.1, 0.01, 0.6), (0.24, 0.0, 0.9)]
)
def test_car_drives_over_a_far_link(
    air: Air, far_bench: RunningBench, round_trip_s: float, loss: float, least: float
) -> None:
    """A run that fails is repeated once: a busy machine stops the car, too."""
    weather = Weather(delay_s=round_trip_s / 2, loss=loss)
    assert any(share_driven(air, far_bench, weather) >= least for _ in range(2))


def test_car_waits_beyond_the_longest_round_trip(air: Air, far_bench: RunningBench) -> None:
    assert share_driven(air, far_bench, Weather(delay_s=0.25)) == 0.0
