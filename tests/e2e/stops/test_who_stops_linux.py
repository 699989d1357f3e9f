"""Table "Who stops the car" for motors on the kernel's gpiochip, and on the kernel's PWM."""

from collections.abc import Iterator

import pytest
from testkit.harness import STRIP, usual_s
from testkit.stops import causes, linux_causes
from testkit.stops.ground import Ground, Scene, open_ground
from testkit.stops.stopping import Cause

from tests.e2e.stops.test_who_stops import rows

pytestmark = [pytest.mark.e2e, pytest.mark.alone]
RUNS, SOAK_RUNS = 1, 10
SMOKE = ("wheels stopped", "guardian hangs")
PWM_SMOKE = ("wheels stopped", linux_causes.BOTH_KILLED.name)


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """A bench with a gpiochip, for all tests of this file."""
    home = tmp_path_factory.mktemp("gpio")
    with open_ground(home, STRIP, *linux_causes.OPTIONS) as made:
        yield made
        print(made.bench.log())


@pytest.mark.soak
@pytest.mark.parametrize("cause", rows((*linux_causes.CAUSES, *linux_causes.BENCH_CAUSES), SMOKE))
def test_gpiochip_motors_stop_in_time(ground: Ground, cause: Cause[Scene], soaking: bool) -> None:
    runs = SOAK_RUNS if soaking else RUNS
    taken_s = [
        usual_s(lambda: causes.run_one(ground, cause).taken_s, cause.limit_s) for _ in range(runs)
    ]
    assert max(taken_s) <= cause.limit_s, taken_s


@pytest.fixture(scope="module")
def pwm_ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """A bench with the kernel's PWM."""
    home, kind = tmp_path_factory.mktemp("pwm"), linux_causes.PwmBench
    with open_ground(home, STRIP, *linux_causes.PWM_OPTIONS, kind=kind) as made:
        yield made
        print(made.bench.log())


@pytest.mark.soak
@pytest.mark.parametrize("cause", rows(linux_causes.PWM_CAUSES, PWM_SMOKE, linux_causes.SAMPLE))
def test_kernel_pwm_motors_stop_in_time(
    pwm_ground: Ground, cause: Cause[Scene], soaking: bool
) -> None:
    runs = SOAK_RUNS if soaking else RUNS
    taken_s = [
        usual_s(lambda: causes.run_one(pwm_ground, cause).taken_s, cause.limit_s)
        for _ in range(runs)
    ]
    assert max(taken_s) <= cause.limit_s, taken_s
