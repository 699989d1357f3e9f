"""Runs in the VM: contract and drivers over a real /dev/i2c-N, with i2c-stub behind.

    driver -> SmbusI2c -> smbus2 -> ioctl -> i2c-dev -> SMBus core -> i2c-stub (memory)

The stub only stores the bytes written. A chip's answer is put into it by transfers of a second open
file, just before the driver reads it. So each byte of each transfer goes through the kernel, in the
size, order and kind that the driver chose.

Limits: an adapter's own errors, clock stretching, and any chip's timing are not tested.
"""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from testkit.pins.i2c_contract import BUS, CHECKS, error_of

from fpvbench.chips.ina219 import Ina219 as Ina219Chip
from fpvbench.chips.vl53l0x import Vl53l0x as Vl53l0xChip
from fpvcar.devices.chips.ina219 import Ina219
from fpvcar.devices.chips.vl53l0x import Vl53l0x
from fpvcar.devices.i2c import I2cDevice
from fpvcar.devices.linux.i2c import SmbusI2c
from tests.vm_sensors import tell

HELD = 0x52
"""Address that a kernel driver holds."""
NOBODY_UID = 65534


class Chip(Protocol):
    """Chip model of the bench, by its transactions."""

    def write(self, data: bytes) -> None:
        """Take one complete write transaction."""

    def read(self, count: int) -> bytes:
        """Answer one complete read transaction."""


class Behind(I2cDevice):
    """The stub at an address, with a model's answers in it."""

    def __init__(self, bus: int, address: int, chip: Chip) -> None:
        self.transfers = 0
        self._driver, self._hand = SmbusI2c(bus, address), SmbusI2c(bus, address)
        self._chip = chip

    def read(self, register: int, size: int) -> bytes:
        """Return the chip's answer, after two passes through the kernel."""
        self.transfers += 1
        self._chip.write(bytes((register,)))
        self._hand.write(register, self._chip.read(size))
        return self._driver.read(register, size)

    def write(self, register: int, data: bytes) -> None:
        """Write through the kernel, then pass the stored bytes to the chip's model."""
        self.transfers += 1
        self._driver.write(register, data)
        self._chip.write(bytes((register,)) + self._hand.read(register, len(data)))

    def close(self) -> None:
        """Close the files of driver and hand."""
        self._driver.close()
        self._hand.close()


def stub_bus() -> int:
    """Return the number of i2c-stub's adapter."""
    for name in Path("/sys/class/i2c-adapter").glob("i2c-*/name"):
        if "stub" in name.read_text():
            return int(name.parent.name.removeprefix("i2c-"))
    raise RuntimeError("no i2c-stub")


def ina219(bus: int) -> None:
    """Read volts, and amps of both signs."""
    amps = 1.25
    device = Behind(bus, 0x40, Ina219Chip(lambda: 7.456, lambda: amps))
    gauge = Ina219(device, 0.1)
    for amps in (1.25, -0.5, 0.0):
        reading = gauge.read()
        assert reading and abs(reading.volts - 7.456) < 0.004, reading
        assert abs(reading.amps - amps) < 0.001, reading
    assert device.transfers >= 12, device.transfers
    device.close()


def vl53l0x(bus: int) -> None:
    """The sensor starts, calibrates twice, and gives some samples."""
    chip = Vl53l0xChip(lambda: 0.5, time.monotonic, boot_s=0.0)
    device = Behind(bus, 0x29, chip)
    sensor = Vl53l0x(device, time.monotonic, time.sleep)
    sensor.start()
    metres: list[float] = []
    end_s = time.monotonic() + 60.0
    while len(metres) < 5 and time.monotonic() < end_s:
        time.sleep(0.01)
        if (sample := sensor.read()) is not None:
            assert sample.range_m is not None, sample
            metres.append(sample.range_m)
    assert len(metres) == 5 and all(abs(one - 0.5) < 0.05 for one in metres), metres
    assert device.transfers > 150, device.transfers
    device.close()


def strangers(bus: int) -> None:
    """A stub without a model is no chip: both drivers refuse it by its ID bytes."""
    for address, make in (
        (0x40, lambda device: Ina219(device, 0.1)),
        (0x29, lambda device: Vl53l0x(device, time.monotonic, time.sleep)),
    ):
        device = SmbusI2c(bus, address)
        device.write(0x00, b"\0\0")
        device.write(0xC0, b"\xee\x00\x00")
        words = error_of(lambda make=make, device=device: make(device))  # type: ignore[misc]
        assert words.startswith(("no ", "neither ")), words
        device.close()


def held(bus: int) -> None:
    """An address held by the kernel's dummy driver is reported."""
    place = Path(f"/sys/bus/i2c/devices/i2c-{bus}/new_device")
    place.write_text(f"dummy {HELD:#x}")
    device = SmbusI2c(bus, HELD)
    words = error_of(lambda: device.read(0, 1))
    assert words.endswith("a driver of the kernel has this address"), words
    device.close()


def forbidden(bus: int) -> None:
    """A user outside the group i2c gets that advice."""
    os.seteuid(NOBODY_UID)
    try:
        words = error_of(lambda: SmbusI2c(bus, 0x50))
    finally:
        os.seteuid(0)
    assert "usermod -aG i2c" in words, words


def main() -> int:
    """Run every check and print its name with "ok" or its trace."""
    bus = stub_bus()

    def opens(number: int, address: int) -> I2cDevice:
        return SmbusI2c(bus if number == BUS else number, address)

    checks: dict[str, Callable[[], None]] = {
        check.__name__: (lambda check=check: check(opens))  # type: ignore[misc]
        for check in CHECKS
    }
    for own in (ina219, vl53l0x, strangers, held, forbidden):
        checks[own.__name__] = lambda own=own: own(bus)  # type: ignore[misc]
    tell(checks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
