"""Motors, pins and edges over the kernel's gpio-sim, i2c-stub and pwm-pca9685 in the guest.

For the limits of these tests see inside_gpio.py, inside_hat.py and inside_pwm.py.
"""

import json
import shutil
from pathlib import Path

import pytest

from tests.guest.machine import Guest
from tests.guest.modules import GPIO_SIM, PWM_PCA9685, module
from tests.guest_sensors.test_guest_sensors import STUB, bring
from tests.support.pins import pwm_contract

pytestmark = [pytest.mark.e2e, pytest.mark.guest]
SOAK_RUNS = 10
CHECKS = (
    "found",
    "levels",
    "duty",
    "servo",
    "edges",
    "steady",
    "echo",
    "busy",
    "beyond",
    "nobody",
    "loose",
    "wheels_killed",
    "wheels_hang",
)
HAT = ("set_up", "absent", "hang", "killed", "unguarded")
LONG = ("driver_killed", "driver_hangs", "guardian_killed", "guardian_hangs")
PWM = (
    "pwm_wheels_killed",
    "pwm_wheels_hang",
    "pwm_both_killed",
    "pwm_driver_killed",
    "pwm_driver_hangs",
    "pwm_guardian_killed",
    "pwm_guardian_hangs",
)


@pytest.fixture(scope="module")
def home(guest: Guest, share: Path) -> str:
    """Copy the programs into the guest's memory; return their folder."""
    here = share / "gpio"
    here.mkdir()
    bring(here)
    kernel = guest.check("uname -r").strip()
    for name in (GPIO_SIM, PWM_PCA9685):
        shutil.copy(module(name, kernel), here)
    guest.check("cp -r /share/gpio /tmp/gpio")
    return "/tmp/gpio"


def said(guest: Guest, home: str, script: str, for_s: float = 240.0) -> dict[str, str]:
    """Run a script in the guest; return the verdict on each check."""
    command = f"cd {home} && python3 -B -m tests.guest_sensors.{script}"
    verdicts: dict[str, str] = json.loads(guest.check(command, for_s))
    return verdicts


@pytest.fixture(scope="module")
def gpio(guest: Guest, home: str, soaking: bool) -> dict[str, str]:
    guest.check(
        "modprobe configfs && mount -t configfs none /sys/kernel/config && "
        f"insmod {home}/gpio-sim.ko"
    )
    runs = SOAK_RUNS if soaking else 1
    return said(guest, home, f"inside_gpio {runs}", 240.0 * runs)


@pytest.fixture(scope="module")
def hat(guest: Guest, home: str) -> dict[str, str]:
    guest.check(STUB)
    return said(guest, home, f"inside_hat {' '.join(HAT)}")


@pytest.fixture(scope="module")
def pwm(guest: Guest, home: str, gpio: dict[str, str]) -> dict[str, str]:
    guest.check(f"{STUB} && modprobe regmap-i2c && insmod {home}/pwm-pca9685.ko")
    return said(guest, home, f"inside_pwm {' '.join((*pwm_contract.CHECKS, *PWM))}", 400.0)


@pytest.mark.parametrize("name", [*pwm_contract.CHECKS, *PWM])
@pytest.mark.soak
@pytest.mark.long
def test_kernel_pwm(pwm: dict[str, str], name: str) -> None:
    assert pwm[name] == "ok", pwm[name]


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.parametrize("name", HAT)
def test_hat(hat: dict[str, str], name: str) -> None:
    assert hat[name] == "ok", hat[name]


@pytest.mark.soak
@pytest.mark.parametrize("name", CHECKS)
def test_gpio(gpio: dict[str, str], name: str) -> None:
    assert gpio[name] == "ok", gpio[name]


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.parametrize("name", LONG)
def test_fault_stops_motors(gpio: dict[str, str], name: str) -> None:
    assert gpio[name] == "ok", gpio[name]


@pytest.mark.soak
def test_guest_ran_exactly_the_listed_checks(gpio: dict[str, str], soaking: bool) -> None:
    assert sorted(gpio) == sorted(CHECKS + LONG if soaking else CHECKS)
