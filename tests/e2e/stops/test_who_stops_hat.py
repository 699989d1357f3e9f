"""Table "Who stops the car" for motors on a PCA9685, at the chip's outputs."""

from collections.abc import Iterator

import pytest
from testkit.harness import STRIP, usual_s
from testkit.stops import causes, hat_causes
from testkit.stops.ground import Ground, Scene, open_ground
from testkit.stops.stopping import Cause

from tests.e2e.stops.test_who_stops import rows

pytestmark = [pytest.mark.e2e, pytest.mark.alone]
RUNS, SOAK_RUNS = 1, 20
SMOKE = ("wheels stopped",)


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """A bench with a HAT, for all tests of this file."""
    home, kind = tmp_path_factory.mktemp("hat"), hat_causes.HatBench
    with open_ground(home, STRIP, *hat_causes.OPTIONS, kind=kind) as made:
        yield made
        print(made.bench.log())


@pytest.mark.soak
@pytest.mark.parametrize("cause", rows(hat_causes.CAUSES, SMOKE))
def test_hat_motors_stop_in_time(ground: Ground, cause: Cause[Scene], soaking: bool) -> None:
    runs = SOAK_RUNS if soaking else RUNS
    taken_s = [
        usual_s(lambda: causes.run_one(ground, cause).taken_s, cause.limit_s) for _ in range(runs)
    ]
    assert max(taken_s) <= cause.limit_s, taken_s
