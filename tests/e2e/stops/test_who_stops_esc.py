"""Table "Who stops the car" for an RC car's ESC, on each back end, at its signal wire."""

from collections.abc import Iterator

import pytest
from testkit.harness import STRIP, usual_s
from testkit.stops import causes, esc_causes
from testkit.stops.ground import Ground, Scene, open_ground
from testkit.stops.stopping import Cause

from tests.e2e.stops.test_who_stops import rows

pytestmark = [pytest.mark.e2e, pytest.mark.alone]
RUNS, SOAK_RUNS = 1, 10


def car(name: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """Run a bench with an ESC, for all rows of its back end."""
    lines, _ = esc_causes.CARS[name]
    home, kind = tmp_path_factory.mktemp("esc"), esc_causes.EscBench
    with open_ground(home, STRIP, *esc_causes.options(lines), kind=kind) as made:
        yield made
        print(made.bench.log())
        assert "ESC: throttle before it was armed" not in made.bench.log()


@pytest.fixture(scope="module")
def pigpiod(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    yield from car("pigpiod", tmp_path_factory)


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    yield from car("kernel PWM", tmp_path_factory)


@pytest.fixture(scope="module")
def hat_oe(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    yield from car("PCA9685 with OE", tmp_path_factory)


@pytest.fixture(scope="module")
def hat_guardian(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    yield from car("PCA9685 by guardian", tmp_path_factory)


def stops_in_time(ground: Ground, cause: Cause[Scene], soaking: bool) -> None:
    runs = SOAK_RUNS if soaking else RUNS
    taken_s = [
        usual_s(lambda: causes.run_one(ground, cause).taken_s, cause.limit_s) for _ in range(runs)
    ]
    assert max(taken_s) <= cause.limit_s, taken_s
    print(f"{cause.name}: {max(taken_s):.3f} s of {cause.limit_s:g} s")


@pytest.mark.soak
@pytest.mark.parametrize(
    "cause", rows(esc_causes.PIGPIOD_CAUSES, ("wheels killed", "pigpiod killed"))
)
def test_esc_on_pigpiod_stops_in_time(pigpiod: Ground, cause: Cause[Scene], soaking: bool) -> None:
    stops_in_time(pigpiod, cause, soaking)


@pytest.mark.soak
@pytest.mark.parametrize("cause", rows(esc_causes.KERNEL_CAUSES, ("wheels stopped",)))
def test_esc_on_kernel_pwm_stops_in_time(
    kernel: Ground, cause: Cause[Scene], soaking: bool
) -> None:
    stops_in_time(kernel, cause, soaking)


@pytest.mark.soak
@pytest.mark.parametrize("cause", rows(esc_causes.OE_CAUSES, ("I2C error, OE wired",)))
def test_esc_on_pca9685_with_oe_stops_in_time(
    hat_oe: Ground, cause: Cause[Scene], soaking: bool
) -> None:
    stops_in_time(hat_oe, cause, soaking)


@pytest.mark.soak
@pytest.mark.parametrize("cause", rows(esc_causes.GUARDIAN_CAUSES, ("guardian hangs",)))
def test_esc_on_pca9685_by_guardian_stops_in_time(
    hat_guardian: Ground, cause: Cause[Scene], soaking: bool
) -> None:
    stops_in_time(hat_guardian, cause, soaking)
