"""The same units with the drive motor on the kernel's PWM, which outlives its process.

The PWM is a PCA9685 of the kernel's own driver; the kernel's trace shows each write. For the limits
of these tests see __init__.py, kernel_pwm.sh and inside.py.
"""

import time
from collections.abc import Iterator

import pytest
from testkit.vm.image import long_marks
from testkit.vm.modules import GPIO_SIM, PWM_PCA9685, Modules

from tests.vm_units.car import (
    BOTH_KILLED,
    CAMERA,
    LIMITS_S,
    PWM_BROKEN,
    TRIXIE,
    WHEELS,
    Car,
    assert_stops,
    booted,
)

pytestmark = long_marks(TRIXIE, Modules(TRIXIE))
CAUSES = [
    *(cause for cause in LIMITS_S if cause.split()[0] in ("run", "wheels", "guardian", "camera")),
    BOTH_KILLED,
]
CONFIG = "/etc/fpvcar/car.toml"
DUTY = "cat /sys/bus/i2c/devices/*-0041/pwm/pwmchip*/pwm[01]/duty_cycle"
ASK = """python3 -c '
from pathlib import Path
from fpvcar.wheels.pins_off_client import SOCKET, ask_helper
assert ask_helper(Path("/run/fpvcar") / SOCKET, %s)'"""
SOON = "for n in $(seq 60); do if %s; then exit; fi; sleep 1; done; exit 1"
ON_PWM = f"""
sed -i 's/^forward = 17.*/forward = 12\\npwm_hz = 1000/; s/^reverse = 27.*/reverse = 13/' {CONFIG}
cd /sys/bus/i2c/devices
printf '\\n[pins]\\nbackend = "linux"\\npwm = [12, 13]\\npwm_device = "%s"\\n' *-0041 >>{CONFIG}
"""


@pytest.fixture(scope="module")
def car(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Car]:
    with booted(tmp_path_factory) as made:
        made.install("kernel_pwm", [GPIO_SIM, PWM_PCA9685])
        made.check(ON_PWM)
        made.check(CAMERA)
        yield made


@pytest.mark.parametrize("cause", CAUSES)
def test_kernel_pwm_stops_in_time_and_car_recovers_alone(
    car: Car, cause: str, pytestconfig: pytest.Config
) -> None:
    assert_stops(car, cause, pytestconfig)


def test_unit_switches_pwm_off_without_root_and_without_traceback(car: Car) -> None:
    """The users of the units may write the files of the PWM, by group and sandbox."""
    told = car.check("journalctl --boot --output=cat")
    assert "pins-off: off: PWM of GPIO 12" in told and "pins-off: off: PWM of GPIO 13" in told
    assert "Traceback" not in told and "NOT off" not in told
    assert [line for line in told.splitlines() if "ermission denied" in line] == []


def test_late_helper_leaves_a_newer_wheels_alone_and_stops_a_mute_one(car: Car) -> None:
    with car.driven():
        wheels = car.check(WHEELS).strip()
        car.check(ASK % "1")
        car.check(SOON % f"journalctl --boot --output=cat | grep 'newer wheels, process {wheels},'")
        time.sleep(1)
        assert set(car.check(DUTY).split()) != {"0"} and car.check(WHEELS).strip() == wheels
        car.check(ASK % wheels)
        car.check(SOON % f"! {DUTY} | grep --quiet '[1-9]'")
        car.check(SOON % f"[ $({WHEELS}) != {wheels} ]")
    car.stop("run killed")


def test_fpvcar_stop_switches_pwm_off(car: Car) -> None:
    with car.driven():
        told = car.vm.run("fpvcar stop 2>&1", 900.0).stdout
        assert "off: PWM of GPIO 12" in told
        assert set(car.check(DUTY).split()) == {"0"}


def test_reboot_stops_car_on_kernel_pwm_and_car_drives_again(
    car: Car, pytestconfig: pytest.Config
) -> None:
    assert_stops(car, "whole car rebooted", pytestconfig)
    car.stop("run killed")


def test_pwm_that_takes_no_write_loses_its_pin_until_the_next_boot(
    car: Car, pytestconfig: pytest.Config
) -> None:
    assert_stops(car, PWM_BROKEN, pytestconfig)
    assert "PWM of GPIO 12: NOT off" in car.check("journalctl --boot --output=cat")
    car.reboot()
    car.stop("run killed")
