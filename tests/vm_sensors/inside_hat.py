"""Runs in the VM: the real `wheels` with a PCA9685 that is the kernel's i2c-stub.

The stub only stores bytes. The chip's own reaction after "all off" is imitated here by hand, and
the stored registers stand for its outputs. The chip itself is not tested.
"""

import signal
import sys
from collections.abc import Callable

from fpvcar.devices.chips import pca9685
from fpvcar.devices.linux.i2c import SmbusI2c
from fpvcar.devices.pins import PinsLost
from tests.vm_sensors import tell
from tests.vm_sensors.inside_i2c import stub_bus
from tests.vm_sensors.inside_wheels import Car, pull

ADDRESS, NOBODY = 0x60, 0x61
IN1 = pca9685.LED0 + 4 * 10 + 1
"""ON_H register of the output that sends M1 forward."""
PROFILE = """
[car]
name = "Bowser"
[pins]
backend = "linux"
[pca9685]
bus = {bus}
address = {address}
[motors.drive]
driver = "motor-hat"
port = 1
[motors.steer]
driver = "motor-hat"
port = 2
"""


class Chip:
    """The stub, through a second open file."""

    def __init__(self, bus: int) -> None:
        self._bus, self._hand = bus, SmbusI2c(bus, ADDRESS)

    def driven(self) -> bool:
        """Return whether M1's bridge is on, and "all off" is not set."""
        off = self._hand.read(pca9685.ALL_OFF_H, 1)[0]
        return bool(self._hand.read(IN1, 1)[0]) and not off & pca9685.FULL

    def car(self) -> Car:
        """Return a driving car. "all off" is cleared after that, as the chip does at the next
        write."""
        self._hand.write(IN1, b"\0")

        def driven() -> bool:
            if self._hand.read(IN1, 1)[0]:
                return True
            self._hand.write(pca9685.ALL_OFF_H, b"\0")
            return False

        car = Car(PROFILE.format(bus=self._bus, address=ADDRESS), driven)
        self._hand.write(pca9685.ALL_OFF_H, b"\0")
        car.watch(self.driven)
        return car

    def set_up(self) -> None:
        """The chip gets "all off", then: awake, totem pole, the highest frequency."""
        self._hand.write(pca9685.ALL_OFF_H, b"\0")
        pca9685.Pca9685(self._hand, 1526)
        registers = {
            pca9685.ALL_OFF_H: pca9685.FULL,
            pca9685.MODE1: pca9685.AUTO_INCREMENT,
            pca9685.MODE2: pca9685.TOTEM_POLE,
            pca9685.PRE_SCALE: 3,
        }
        found = {one: self._hand.read(one, 1)[0] for one in registers}
        assert found == registers, found

    def absent(self) -> None:
        """A HAT that does not answer is refused with its name and the fault."""
        try:
            pca9685.Pca9685(SmbusI2c(self._bus, NOBODY), 1526)
        except PinsLost as fault:
            assert "no chip acknowledges the write" in str(fault), fault
            return
        raise AssertionError("not refused")


def main() -> int:
    """Run the checks named by the arguments and print each name with "ok" or its trace."""
    chip = Chip(stub_bus())
    checks: dict[str, Callable[[], None]] = {
        "set_up": chip.set_up,
        "absent": chip.absent,
        "hang": lambda: pull(chip.car(), "wheels", signal.SIGSTOP),
        "killed": lambda: pull(chip.car(), "wheels", signal.SIGKILL),
        "unguarded": lambda: pull(chip.car(), "guardian", signal.SIGKILL),
    }
    tell({name: checks[name] for name in sys.argv[1:]})
    return 0


if __name__ == "__main__":
    sys.exit(main())
