"""Motors, pins and edges over the kernel's gpio-sim, i2c-stub and pwm-pca9685 in the VM.

For the limits of these tests see inside_gpio.py, inside_hat.py and inside_pwm.py.
"""

import json
import shutil
from pathlib import Path

import pytest
from testkit.pins import pwm_contract
from testkit.vm.image import PIPES
from testkit.vm.machine import Vm
from testkit.vm.modules import GPIO_SIM, PWM_PCA9685, Modules, module

from tests.vm_sensors import inside_gpio, inside_wheels
from tests.vm_sensors.test_vm_sensors import STUB, bring

pytestmark = [pytest.mark.e2e, pytest.mark.vm, pytest.mark.needs(PIPES, Modules())]
SOAK_CHECKS, SOAK_STOPS = 3, 5
"""Runs of each check of the pins, and of each cause of a stop."""
RUN_S = 240.0
STOPS = [
    pytest.param(name, marks=pytest.mark.long if name in inside_wheels.LONG else ())
    for name in inside_wheels.CHECKS
]
HAT = ("set_up", "absent", "hang", "killed", "unguarded")
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
def home(vm: Vm, share: Path) -> str:
    """Copy the programs into the VM's memory; return their folder."""
    here = share / "gpio"
    here.mkdir()
    bring(here)
    for name in (GPIO_SIM, PWM_PCA9685):
        shutil.copy(module(name), here)
    vm.check("cp -r /share/gpio /tmp/gpio")
    return "/tmp/gpio"


def said(vm: Vm, home: str, script: str, for_s: float = RUN_S) -> dict[str, str]:
    """Run a script in the VM, whose modules are compiled once; return the verdict on each
    check."""
    command = f"cd {home} && python3 -m tests.vm_sensors.{script}"
    verdicts: dict[str, str] = json.loads(vm.check(command, for_s))
    return verdicts


@pytest.fixture(scope="module")
def pins(vm: Vm, home: str) -> str:
    """Load gpio-sim into the VM; return the folder of the programs."""
    vm.check(
        "modprobe configfs && mount -t configfs none /sys/kernel/config && "
        f"insmod {home}/gpio-sim.ko"
    )
    return home


@pytest.fixture(scope="module")
def gpio(vm: Vm, pins: str, soaking: bool) -> dict[str, str]:
    runs = SOAK_CHECKS if soaking else 1
    return said(vm, pins, f"inside_gpio {runs} {' '.join(inside_gpio.OWN)}", RUN_S * runs)


@pytest.fixture(scope="module")
def hat(vm: Vm, home: str) -> dict[str, str]:
    vm.check(STUB)
    return said(vm, home, f"inside_hat {' '.join(HAT)}")


@pytest.fixture(scope="module")
def pwm(vm: Vm, pins: str) -> dict[str, str]:
    vm.check(f"{STUB} && modprobe regmap-i2c && insmod {pins}/pwm-pca9685.ko")
    return said(vm, pins, f"inside_pwm {' '.join((*pwm_contract.CHECKS, *PWM))}", 400.0)


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
@pytest.mark.parametrize("name", inside_gpio.OWN)
def test_gpio(gpio: dict[str, str], name: str) -> None:
    assert gpio[name] == "ok", gpio[name]


@pytest.mark.soak
@pytest.mark.parametrize("name", STOPS)
def test_fault_stops_motors(vm: Vm, pins: str, name: str, soaking: bool) -> None:
    runs = SOAK_STOPS if soaking else 1
    verdict = said(vm, pins, f"inside_gpio {runs} {name}", RUN_S * runs)[name]
    assert verdict == "ok", verdict
