"""VL53L1X, and VL53L3CX and VL53L4CD as far as its registers serve: time-of-flight range sensors
of up to 4 m. ST DS12385; registers as in ST's Ultra Lite Driver (STSW-IMG009, UM2510).

It is used like vl53l0x.py. An index of this family has two bytes: the first stands for the
register of an I2cDevice, the second is sent as data.
"""

import struct
from collections.abc import Callable

from fpvcar.devices.chips.vl53l0x import CALIBRATION, POLL_S, Sample, Status, TofChip, sample_of
from fpvcar.devices.i2c import I2cDevice, Receive, Write
from fpvcar.runtime.clock import Clock
from fpvcar.runtime.texts import Text

SOFT_RESET = 0x0000
I2C_ADDRESS = 0x0001
VHV_LOOP_BOUND = 0x0008
VHV_INIT = 0x000B
INTERRUPT_STATUS = 0x0031
RANGE_TIMEOUT_A, RANGE_TIMEOUT_B = 0x005E, 0x0061  # 16 bits
PERIOD = 0x006C  # 32 bits
INTERRUPT_CLEAR = 0x0086
MODE_START = 0x0087
RESULT_AT = 0x0089
OSCILLATOR = 0x00DE  # 16 bits, the low 10 count
SYSTEM_STATUS = 0x00E5
MODEL_ID = 0x010F

NAMES = {b"\xea\xcc": "VL53L1X", b"\xea\xaa": "VL53L3CX", b"\xeb\xaa": "VL53L4CD"}
"""Model and module type -> name."""
CONFIG_AT, CONFIG = (
    0x2D,
    bytes.fromhex(
        "0001000102000208000810010100000000ff000f0000000000200b0000020a2100000500000000c8"
        "000038ff010008000000600f006e0d0168008008b8000000000f8900000000000000010f0d0e0e00"
        "0002c7ff9b000000010000"
    ),
)
"""First register and values of the default configuration (VL51L1X_DEFAULT_CONFIGURATION): long
distance, with I/O at 2.8 V as on modules, and the timeouts of a budget of 33 ms."""
RESULT = struct.Struct(">B12xHH")
"""Range status, range in mm (0x0096) and signal rate."""
BUDGET_US = 33_000
PERIOD_MS = 34
"""Time between the starts of two measurements; ST asks for at least the budget."""
CLOCKS = 1.075
"""Factor from ms and the oscillator's value to PERIOD (VL53L1X_SetInterMeasurementInMs)."""
ANSWER_S = 0.2
"""Longest boot, and longest first measurement."""
BOOTED = 0x03
BOOT_S = 0.002
"""Time after a reset in which the chip acknowledges nothing (DS12385: 1.2 ms)."""
RANGE_MAX_MM = 4000
NEAREST_M = 0.04
"""DS12385, table 4. Nearer targets report Status.NEAR."""
VALID, MERGED = 9, 19
"""Range statuses of a valid measurement; the second is the first one after a start."""
STATUS = {
    VALID: Status.OK,
    MERGED: Status.OK,
    4: Status.SIGNAL,
    6: Status.SIGNAL,
    8: Status.NEAR,
    5: Status.PHASE,
    7: Status.PHASE,
    1: Status.HARDWARE,
    2: Status.HARDWARE,
    3: Status.HARDWARE,
}
"""Range status (VL53L1_GetRangeStatus, before its table) -> result."""
BLOCK = 28
BOOT = Text("tof_boot", "boot")


def _put(register: int, data: bytes) -> Write:
    return Write(register >> 8, bytes((register & 0xFF,)) + data)


def identity(device: I2cDevice) -> bytes:
    """Return model and module type. Raises I2cError."""
    (found,) = device.transfer(_put(MODEL_ID, b""), Receive(2))
    return found


def readdress(device: I2cDevice, address: int) -> None:
    """Change the address until XSHUT or power resets it. Raises I2cError."""
    device.transfer(_put(I2C_ADDRESS, bytes((address,))))


class Vl53l1x(TofChip):
    """Chip of the family, continuously ranging after `start`. Raises I2cError."""

    def __init__(
        self, device: I2cDevice, clock_s: Clock, sleep: Callable[[float], None], reset: bool = True
    ) -> None:
        """Set the chip up, which takes 40 ms; its owner has identified it.

        Without a `reset` by XSHUT or power it may still be ranging for a previous owner.
        """
        super().__init__(device, clock_s, sleep)
        self._ready = device.prepared(_put(INTERRUPT_STATUS, b""), Receive(1))
        self._read_result = device.prepared(_put(RESULT_AT, b""), Receive(RESULT.size))
        if not reset:
            device.transfer(_put(SOFT_RESET, b"\0"))
            sleep(POLL_S)
            device.transfer(_put(SOFT_RESET, b"\1"))
            sleep(BOOT_S)
        self._set_up()

    def start(self) -> None:
        """Start ranging, a measurement every PERIOD_MS."""
        ticks = int.from_bytes(self._get(OSCILLATOR, 2), "big") & 0x3FF
        period = round(ticks * PERIOD_MS * CLOCKS).to_bytes(4, "big")
        self._device.transfer(
            _put(PERIOD, period), _put(INTERRUPT_CLEAR, b"\1"), _put(MODE_START, b"\x40")
        )

    def read(self, after_s: float = 0.0) -> Sample | None:
        """Return the newest sample, `after_s` from now; None while there is no new one."""
        (ready,) = self._ready(after_s)
        if not ready[0] & 1:
            return None
        (result,) = self._read_result(0.0)
        self._device.post(INTERRUPT_CLEAR >> 8, bytes((INTERRUPT_CLEAR & 0xFF, 1)))
        self.result = result
        raw_status, range_mm, _ = RESULT.unpack(result)
        status = STATUS.get(raw_status & 0x1F, Status.NONE)
        return sample_of(status, range_mm, NEAREST_M, RANGE_MAX_MM)

    def _set_up(self) -> None:
        self._wait_for(lambda: self._get(SYSTEM_STATUS, 1)[0] & BOOTED == BOOTED, BOOT, ANSWER_S)
        steps = [
            _put(CONFIG_AT + at, CONFIG[at : at + BLOCK]) for at in range(0, len(CONFIG), BLOCK)
        ]
        self._device.transfer(*steps, _put(MODE_START, b"\x40"))
        # VHV: the diodes' high voltage
        self._wait_for(lambda: self._get(INTERRUPT_STATUS, 1)[0] & 1, CALIBRATION, ANSWER_S)
        self._device.transfer(
            _put(INTERRUPT_CLEAR, b"\1"),
            _put(MODE_START, b"\0"),
            _put(VHV_LOOP_BOUND, b"\x09"),
            _put(VHV_INIT, b"\0"),
        )

    def _get(self, register: int, size: int) -> bytes:
        (data,) = self._device.transfer(_put(register, b""), Receive(size))
        return data
