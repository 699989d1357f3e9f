"""I2C devices through the kernel, /dev/i2c-N, by smbus2: independent of pigpiod's sampling.

Only functions of smbus2 0.4.3 are used: Debian Trixie ships that version.

One byte is sent as SMBus byte data, two as word data, more as an I2C block. They are
alike on the wire, and SMBus-only adapters (and i2c-stub) support the first two.
"""

import contextlib
import ctypes
import errno
import fcntl
from typing import Any

import smbus2

from fpvcar.devices.i2c import ENABLE, FAULT, SHORT, I2cDevice, I2cError
from fpvcar.runtime.texts import Text, os_reason

I2C_TIMEOUT = 0x0702  # <linux/i2c-dev.h>
TIMEOUT_10_MS = 5
"""For the whole adapter; the default is 1 s, and a motor may be waiting on the bus."""
NOBODY = {errno.EREMOTEIO, errno.ENXIO, errno.ENODEV, errno.EIO}
"""Errors that adapters report for an unacknowledged byte."""
NO_BUS = {
    errno.ENOENT: Text("i2c_absent", "no such bus: {advice}", advice=ENABLE),
    errno.EACCES: Text(
        "i2c_denied", "not allowed: sudo usermod -aG i2c USER, for the user who runs this"
    ),
}
CAUSES = {
    errno.EBUSY: Text("i2c_kernel", "a driver of the kernel has this address"),
    errno.ETIMEDOUT: Text("i2c_hangs", "the bus hangs: is SDA or SCL held low?"),
    errno.EAGAIN: Text("i2c_taken", "the bus is taken by another master"),
}
NO_READ = Text("i2c_read", "no chip acknowledges the read")
NO_WRITE = Text("i2c_write", "no chip acknowledges the write")


class SmbusI2c(I2cDevice):
    """I2C device on a kernel bus, /dev/i2c-N."""

    def __init__(self, bus: int, address: int) -> None:
        self._address = address
        self._where = {"bus": bus, "address": f"{address:#x}"}
        try:
            self._bus: Any = smbus2.SMBus(bus)
        except OSError as fault:
            reason = NO_BUS.get(fault.errno or 0, os_reason(fault))
            raise I2cError(
                Text("i2c_bus", "/dev/i2c-{bus}: {reason}", bus=bus, reason=reason)
            ) from None
        with contextlib.suppress(OSError):  # not every adapter supports it
            fcntl.ioctl(self._bus.fd or 0, I2C_TIMEOUT, TIMEOUT_10_MS)

    def read(self, register: int, size: int) -> bytes:
        """Read `size` bytes starting at a register. Raises I2cError."""
        bus, address = self._bus, self._address
        try:
            if size == 1:
                return bytes((bus.read_byte_data(address, register),))
            if size == 2:
                word: int = bus.read_word_data(address, register)
                return word.to_bytes(2, "little")
            data = bytes(bus.read_i2c_block_data(address, register, size))
        except OSError as fault:
            raise self._error(NO_READ, fault) from None
        if len(data) != size:
            reason = SHORT(count=len(data), expected=size)
            raise I2cError(FAULT(**self._where, reason=reason))
        return data

    def receive(self, size: int) -> bytes:
        """Read `size` bytes without a register. Raises I2cError."""
        message = smbus2.i2c_msg.read(self._address, size)
        try:
            self._bus.i2c_rdwr(message)
        except OSError as fault:
            raise self._error(NO_READ, fault) from None
        return ctypes.string_at(message.buf, size)

    def write(self, register: int, data: bytes) -> None:
        """Write bytes starting at a register. Raises I2cError."""
        bus, address = self._bus, self._address
        try:
            if len(data) == 1:
                bus.write_byte_data(address, register, data[0])
            elif len(data) == 2:
                word = int.from_bytes(data, "little")
                bus.write_word_data(address, register, word)
            else:
                bus.write_i2c_block_data(address, register, list(data))
        except OSError as fault:
            raise self._error(NO_WRITE, fault) from None

    def close(self) -> None:
        self._bus.close()

    def _error(self, unacknowledged: Text, fault: OSError) -> I2cError:
        number = fault.errno or 0
        reason = CAUSES.get(number, os_reason(fault))
        if number in NOBODY:
            reason = unacknowledged
        return I2cError(FAULT(**self._where, reason=reason))
