"""I2C devices accessed through pigpiod."""

from typing import NoReturn

import pigpio

from fpvcar.devices.i2c import (
    ENABLE,
    FAULT,
    SHORT,
    I2cDevice,
    I2cError,
    Read,
    Receive,
    Step,
    Transfer,
    Write,
)
from fpvcar.devices.pigpio.pins import COMMAND, PigpioPins
from fpvcar.devices.pins import PinsRefused
from fpvcar.runtime.texts import BOTH, VERBATIM, Text, fault_text

UNACKNOWLEDGED = {
    pigpio.PI_I2C_READ_FAILED: Text("i2c_read_failed", "I2C read failed"),
    pigpio.PI_I2C_WRITE_FAILED: Text("i2c_write_failed", "I2C write failed"),
}
"""Result of a transfer -> its text."""
IN_RESULT = {1: pigpio._PI_CMD_I2CRB, 2: pigpio._PI_CMD_I2CRW}
"""Size -> command that reads so many bytes into its result, the low one first."""


class PigpioI2c(I2cDevice):
    """I2C device behind pigpiod. Raises PinsFault, too, for a fault of the daemon."""

    patience_s = 0.1
    """Time for which pigpiod may wait: its thread of this connection sleeps, and ours wakes
    once. The value is far below the time-out of an answer."""

    def __init__(self, pins: PigpioPins, bus: int, address: int) -> None:
        self._pins, self._client = pins, pins.client
        self._refused = 0
        self._place = {"bus": bus, "address": f"{address:#x}"}
        self._where = f"I2C bus {bus} address {address:#x}"
        try:
            self._handle = pins.call(self._where, self._client.i2c_open, bus, address)
        except PinsRefused as fault:
            raise I2cError(BOTH(first=fault_text(fault), second=ENABLE)) from None

    def read(self, register: int, size: int) -> bytes:
        """Read `size` bytes starting at a register. Raises I2cError."""
        (data,) = self.transfer(Read(register, size))
        return data

    def receive(self, size: int) -> bytes:
        """Read `size` bytes without a register. Raises I2cError."""
        (data,) = self.transfer(Receive(size))
        return data

    def write(self, register: int, data: bytes) -> None:
        """Write bytes starting at a register. Raises I2cError."""
        self.transfer(Write(register, data))

    def prepared(self, *steps: Step) -> Transfer:
        """Prepare a transfer that sends all steps in one packet, and receives all answers in
        another."""
        pins, where, count = self._pins, self._where, len(steps)
        commands = b"".join(map(self._encoded, steps))
        sizes = [step.size if isinstance(step, Read) else 0 for step in steps]
        in_results = [(n, size) for n, size in enumerate(sizes) if size in IN_RESULT]
        last = steps[-1]
        block_b = 0 if isinstance(last, Write) or sizes[-1] in IN_RESULT else last.size

        def transfer(after_s: float) -> list[bytes]:
            results, data = pins.exchange(where, commands, count, block_b > 0, after_s)
            if self._refused or min(results) < 0:
                self._refuse(min(results))
            if len(data) != block_b:
                raise self._error(SHORT(count=len(data), expected=block_b))
            data_read = [data] if block_b else []
            if in_results:
                data_read[:0] = [results[n].to_bytes(size, "little") for n, size in in_results]
            return data_read

        return transfer

    def post(self, register: int, data: bytes) -> None:
        """Send a write at once; its answer is read with the next one."""
        command = self._encoded(Write(register, data))
        self._pins.post(self._where, command, refused=self._note)

    def _encoded(self, step: Step) -> bytes:
        if isinstance(step, Receive):
            return COMMAND.pack(pigpio._PI_CMD_I2CRD, self._handle, step.size, 0)
        if isinstance(step, Write):
            number, data = pigpio._PI_CMD_I2CWI, step.data
        elif step.size in IN_RESULT:
            number, data = IN_RESULT[step.size], b""
        else:
            number, data = pigpio._PI_CMD_I2CRI, step.size.to_bytes(4, "little")
        return COMMAND.pack(number, self._handle, step.register, len(data)) + data

    def _note(self, result: int) -> None:
        self._refused = result

    def _refuse(self, result: int) -> NoReturn:
        """Raise I2cError for a refused posted write, or for a result below 0."""
        result, self._refused = self._refused or result, 0
        text = UNACKNOWLEDGED.get(result)
        raise self._error(text or VERBATIM(text=pigpio.error_text(result)))

    def _error(self, reason: Text) -> I2cError:
        return I2cError(FAULT(**self._place, reason=reason))

    def close(self) -> None:
        """Free the daemon's handle, as it outlives the connection. Raises PinsFault."""
        self._pins.call(self._where, self._client.i2c_close, self._handle)
