"""Register model of a PCA9685 as a device, on a chip's file, without a daemon."""

from pathlib import Path

from fpvbench import soc as chip
from fpvbench.chips.i2c import Bus, Nack
from fpvbench.chips.pca9685 import motor_hat
from fpvcar.devices.i2c import I2cDevice, I2cError

ADDRESS = 0x60


class Wire(I2cDevice):
    """Address on a bus; counts transactions, and fails `failing` of them."""

    def __init__(self, bus: Bus, address: int = ADDRESS) -> None:
        self.bus, self.address = bus, address
        self.failing = self.closed = 0
        self.writes: list[tuple[int, bytes]] = []

    def read(self, register: int, size: int) -> bytes:
        """Read bytes of a register; raises I2cError."""
        self.write(register, b"")
        return self.bus.read(self.address, size)

    def write(self, register: int, data: bytes) -> None:
        """Write bytes to a register; raises I2cError."""
        self.writes.append((register, data))
        try:
            if self.failing:
                self.failing -= 1
                raise Nack("the wire shakes")
            self.bus.write(self.address, bytes((register, *data)))
        except Nack as fault:
            raise I2cError(f"I2C bus 1 address {self.address:#x}: {fault}") from None

    def close(self) -> None:
        self.closed += 1


def hat(folder: Path) -> tuple[chip.Soc, Wire]:
    """Return a chip's file, and the wire to the PCA9685 in it."""
    chip.create(folder / "soc")
    soc = chip.attach(folder / "soc")
    return soc, Wire(Bus(*motor_hat(soc, ADDRESS)))
