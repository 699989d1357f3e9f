"""I2C devices behind pigpiod."""

import pigpio

from fpvcar.devices.i2c import ENABLE, I2cError
from fpvcar.devices.pigpio.pins import PigpioPins
from fpvcar.devices.pins import PinsRefused


class PigpioI2c:
    """A device behind pigpiod. Raises PinsFault too, when the daemon is the matter."""

    def __init__(self, pins: PigpioPins, bus: int, address: int) -> None:
        self._pins, self._client = pins, pins.client
        self._where = f"I2C bus {bus} address {address:#x}"
        try:
            self._handle = pins.call(
                self._where, self._client.i2c_open, bus, address
            )  # fmt: skip
        except PinsRefused as fault:
            raise I2cError(f"{fault}; {ENABLE}") from None

    def read(self, register: int, size: int) -> bytes:
        """Reads `size` bytes from a register on. Raises I2cError."""
        try:
            got, data = self._pins.call(
                self._where, self._client.i2c_read_i2c_block_data,
                self._handle, register, size,
            )  # fmt: skip
        except PinsRefused as fault:
            raise I2cError(str(fault)) from None
        if got < 0:
            raise I2cError(f"{self._where}: {pigpio.error_text(got)}")
        if got != size:
            raise I2cError(f"{self._where}: {got} bytes, expected {size}")
        return bytes(data)

    def write(self, register: int, data: bytes) -> None:
        """Writes bytes from a register on. Raises I2cError."""
        try:
            self._pins.call(
                self._where, self._client.i2c_write_i2c_block_data,
                self._handle, register, data,
            )  # fmt: skip
        except PinsRefused as fault:
            raise I2cError(str(fault)) from None

    def close(self) -> None:
        """Frees the daemon's handle, which outlives a connection. Raises PinsFault."""
        self._pins.call(self._where, self._client.i2c_close, self._handle)
