"""The same units on a Pi without a pin daemon: the kernel has the pins, and a guardian.

For the limits of these tests see __init__.py, gpiochip.sh and inside.py.
"""

from collections.abc import Iterator

import pytest
from testkit.vm.image import long_marks
from testkit.vm.modules import GPIO_SIM, Modules

from tests.vm_units.car import CAMERA, LIMITS_S, TRIXIE, WHEELS, Car, assert_stops, booted

pytestmark = long_marks(TRIXIE, Modules(TRIXIE))
CAUSES = [
    cause for cause in LIMITS_S if cause.split()[0] in ("run", "wheels", "guardian", "camera")
]
OWN_MB = "awk '/^Pss:/ {print $2 / 1024}' /proc/%s/smaps_rollup"
MOST_MB = {"wheels": 20.0, "guardian": 8.0}


@pytest.fixture(scope="module")
def car(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Car]:
    with booted(tmp_path_factory) as made:
        made.install("gpiochip", [GPIO_SIM])
        made.check(CAMERA)
        yield made


@pytest.mark.parametrize("cause", CAUSES)
def test_car_stops_in_time_and_recovers_alone(
    car: Car, cause: str, pytestconfig: pytest.Config
) -> None:
    assert_stops(car, cause, pytestconfig)


def test_kernel_pins_stop_the_car_without_gpiomem(car: Car) -> None:
    """Prove that the kernel's pins stopped the car: without /dev/gpiomem there is no register to
    turn a pin off in."""
    assert car.vm.run("test -e /dev/gpiomem").returncode
    assert "Traceback" not in car.check("journalctl --boot --output=cat")


def test_wheels_and_guardian_stay_within_memory_limit(car: Car) -> None:
    wheels = car.check(WHEELS).strip()
    guardian = car.check(f"cat /proc/{wheels}/task/{wheels}/children").strip()
    for name, pid in (("wheels", wheels), ("guardian", guardian)):
        own_mb = float(car.check(OWN_MB % pid))
        print(f"{name}: {own_mb:.1f} MB")
        assert own_mb <= MOST_MB[name]


def test_reboot_stops_car_and_car_drives_again(car: Car, pytestconfig: pytest.Config) -> None:
    assert_stops(car, "whole car rebooted", pytestconfig)
    before = car.check("journalctl --boot=-1 --output=cat")
    assert "Stopped fpvcar-wheels.service" in before
    car.stop("run killed")
