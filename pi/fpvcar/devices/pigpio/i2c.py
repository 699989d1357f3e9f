"""I2C devices behind pigpiod."""

import pigpio

from fpvcar.devices.i2c import ENABLE, I2cError
from fpvcar.devices.pigpio.pins import PigpioPins
from fpvcar.devices.pins import PinsRefused

LONGEST_S = 0.1
"""What pigpiod may wait for us: far less than an answer may take."""


class PigpioI2c:
    """A device behind pigpiod. Raises PinsFault too, when the daemon is the matter.

    With `posts` a write returns at once; what is wrong with it the next read or write
    of the device raises. Then pigpiod waits before a read, too: its thread of this
    connection sleeps, and ours wakes once.
    """

    def __init__(
        self, pins: PigpioPins, posts: bool, bus: int, address: int
    ) -> None:  # fmt: skip
        self._pins, self._client, self._posts = pins, pins.client, posts
        self._refused = 0
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
            got, data = self._pins.ask(
                self._where, pigpio._PI_CMD_I2CRI, (self._handle, register),
                size.to_bytes(4, "little"),
            )  # fmt: skip
        except PinsRefused as fault:
            raise I2cError(str(fault)) from None
        self._check_posted()
        if got < 0:
            raise I2cError(f"{self._where}: {pigpio.error_text(got)}")
        if got != size:
            raise I2cError(f"{self._where}: {got} bytes, expected {size}")
        return data

    def write(self, register: int, data: bytes) -> None:
        """Writes bytes from a register on. Raises I2cError."""
        if self._posts:
            self._check_posted()
            self._pins.post(
                self._where, pigpio._PI_CMD_I2CWI, (self._handle, register), data,
                self._note,
            )  # fmt: skip
            return
        try:
            self._pins.call(
                self._where, self._client.i2c_write_i2c_block_data,
                self._handle, register, data,
            )  # fmt: skip
        except PinsRefused as fault:
            raise I2cError(str(fault)) from None

    def put_off(self, seconds: float) -> float:
        """Leaves none of it to the caller, but where it may not post."""
        if not self._posts or seconds > LONGEST_S:
            return seconds
        self._pins.put_off(self._where, seconds)
        return 0.0

    def _note(self, result: int) -> None:
        self._refused = min(self._refused, result)

    def _check_posted(self) -> None:
        result, self._refused = self._refused, 0
        if result < 0:
            raise I2cError(f"{self._where}: {pigpio.error_text(result)}")

    def close(self) -> None:
        """Frees the daemon's handle, which outlives a connection. Raises PinsFault."""
        self._pins.call(self._where, self._client.i2c_close, self._handle)
