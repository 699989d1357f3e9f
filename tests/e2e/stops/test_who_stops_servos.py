"""Table "Who stops the car" for servos that do not steer, on each back end, at their pulses."""

from collections.abc import Iterator

import pytest
from testkit.harness import STRIP
from testkit.stops import servo_causes
from testkit.stops.ground import Ground, open_ground
from testkit.stops.servo_causes import Row

pytestmark = [pytest.mark.e2e, pytest.mark.alone]


def car(name: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    options = (*servo_causes.COMMON, *servo_causes.CARS[name])
    with open_ground(tmp_path_factory.mktemp("servos"), STRIP, *options) as made:
        yield made
        print(made.bench.log())


@pytest.fixture(scope="module")
def pigpiod(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    yield from car("pigpiod", tmp_path_factory)


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    yield from car("kernel PWM", tmp_path_factory)


@pytest.fixture(scope="module")
def chip(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    yield from car("PCA9685", tmp_path_factory)


@pytest.mark.parametrize("row", servo_causes.PIGPIOD_ROWS, ids=lambda row: row.cause.name)
def test_servos_on_pigpiod_centre_as_set(pigpiod: Ground, row: Row) -> None:
    servo_causes.run_row(pigpiod, servo_causes.CARS["pigpiod"], row)


@pytest.mark.parametrize("row", servo_causes.KERNEL_ROWS, ids=lambda row: row.cause.name)
def test_servos_on_kernel_pwm_centre_as_set(kernel: Ground, row: Row) -> None:
    servo_causes.run_row(kernel, servo_causes.CARS["kernel PWM"], row)


@pytest.mark.parametrize("row", servo_causes.CHIP_ROWS, ids=lambda row: row.cause.name)
def test_servos_on_a_pca9685_centre_as_set(chip: Ground, row: Row) -> None:
    servo_causes.run_row(chip, servo_causes.CARS["PCA9685"], row)
