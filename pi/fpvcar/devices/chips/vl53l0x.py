"""VL53L0X: time-of-flight range sensor. ST DS11555; registers as in ST's API
(STSW-IMG005, vl53l0x_device.h), because the data sheet names few.

    init   identify, SPADs, tuning, timing budget, two reference calibrations
    start  continuous ranging
    read   the newest sample, or None while there is no new one

The caller's `sleep` does the waiting, so that a test can use its own clock.
"""

import enum
import struct
from collections.abc import Callable

from msgspec import Struct

from fpvcar.devices.chips.vl53l0x_timing import (
    BUDGET_START_US,
    Steps,
    decode_timeout,
    encode_timeout,
    to_mclks,
)
from fpvcar.devices.i2c import I2cDevice, I2cError, Read, Write
from fpvcar.runtime.clock import Clock
from fpvcar.runtime.texts import Phrase, Text

TOF_IDENTITY = Phrase("tof_identity", "neither a VL53L0X nor a VL53L1X: identity {found}")
TOF_NOT_READY = Phrase("tof_not_ready", "{step} not ready after {seconds} s")


class Register(enum.IntEnum):
    """Registers of 8 bits unless noted; the high byte comes first."""

    SYSRANGE_START = 0x00
    SEQUENCE_CONFIG = 0x01
    INTERRUPT_CONFIG_GPIO = 0x0A
    INTERRUPT_CLEAR = 0x0B
    RESULT_INTERRUPT_STATUS = 0x13  # and RESULT behind it
    FINAL_RANGE_MIN_COUNT_RATE = 0x44  # 16 bits, MCPS in 9.7
    MSRC_CONFIG_TIMEOUT = 0x46
    DYNAMIC_SPAD_NUM_REQUESTED = 0x4E
    DYNAMIC_SPAD_START_OFFSET = 0x4F
    PRE_RANGE_VCSEL_PERIOD = 0x50
    PRE_RANGE_TIMEOUT = 0x51  # 16 bits
    MSRC_CONFIG_CONTROL = 0x60
    FINAL_RANGE_VCSEL_PERIOD = 0x70
    FINAL_RANGE_TIMEOUT = 0x71  # 16 bits
    POWER_MANAGEMENT = 0x80
    NVM_SELECT = 0x81
    NVM_STROBE = 0x83
    GPIO_HV_MUX_ACTIVE_HIGH = 0x84
    I2C_MODE = 0x88
    PAD_SCL_SDA_EXTSUP_HV = 0x89
    I2C_SLAVE_DEVICE_ADDRESS = 0x8A
    STOP_VARIABLE = 0x91  # on page 1
    NVM_SPAD_INFO = 0x92  # on page 7
    NVM_ADDRESS = 0x94
    GLOBAL_SPAD_ENABLES_REF = 0xB0  # 6 bytes
    GLOBAL_REF_EN_START_SELECT = 0xB6
    MODEL_ID = 0xC0  # and two more
    PAGE = 0xFF


R = Register
RESULT = struct.Struct(">BB9xH")
"""Interrupt status, range status (0x14) and range (0x1E, mm), read in one transfer."""
DEFAULT_ADDRESS = 0x29
NAME, IDENTITY = "VL53L0X", bytes((0xEE, 0xAA, 0x10))
BUDGET_US = 29_000
"""Duration of one measurement; ST's minimum is 20 ms. This gives 30 samples per
second even if reads are some ms late."""
SIGNAL_LIMIT_MCPS = 0.25
ANSWER_S = 0.1
"""A calibration takes 4 ms, reading the factory memory less; other sensors wait
during that time."""
STOP_S = 0.05
"""Longest measurement that may be under way."""
POLL_S = 0.001
FIRST_APERTURE_SPAD = 12
SPADS = 48
RANGE_MAX_MM = 2000
"""Readings beyond are noise (DS11555, table 12); 8190 and 8191 mean "no target"."""
NEAREST_M = 0.03
"""Nearer targets report Status.NEAR: a target at this distance or less."""
VALID = 11
"""Device range status of a valid measurement; see STATUS."""

# ST's default tuning settings (vl53l0x_tuning.h of the API); undocumented.
TUNING = bytes.fromhex(
    "ff01 0000 ff00 0900 1000 1100 2401 25ff 7500 ff01 4e2c 4800 3020 ff00 3009 5400"
    "3104 3203 4083 4625 6000 2700 5006 5100 5296 5608 5730 6100 6200 6400 6500 66a0"
    "ff01 2232 4714 49ff 4a00 ff00 7a0a 7b00 7821 ff01 2334 4200 44ff 4526 4605 4040"
    "0e06 201a 4340 ff00 3403 3544 ff01 3104 4b09 4c05 4d04 ff00 4400 4520 4708 4828"
    "6700 7004 7101 72fe 7600 7700 ff01 0d01 ff00 8001 01f8 ff01 8e01 0001 ff00 8000"
)


class Status(enum.Enum):
    """Result of a measurement (ST API, VL53L0X_get_pal_range_status)."""

    OK = "ok"
    SIGNAL = "the returned signal is too weak"
    NEAR = "nearer than it can measure"
    PHASE = "out of range"
    HARDWARE = Text("tof_hardware", "the laser or its supply failed")
    NONE = Text("tof_none", "no measurement")


CALIBRATION = Text("tof_calibration", "reference calibration")
MEMORY = Text("tof_memory", "its own memory")
STATUS = {
    VALID: Status.OK,
    4: Status.SIGNAL,
    8: Status.NEAR,
    10: Status.NEAR,
    6: Status.PHASE,
    9: Status.PHASE,
    1: Status.HARDWARE,
    2: Status.HARDWARE,
    3: Status.HARDWARE,
}


SILENT = (Status.HARDWARE, Status.NONE)
"""Statuses that give no information about the range, not even "no target"."""


class Sample(Struct, frozen=True):
    """Range sample. `range_m` is None without a target; `status` gives the reason."""

    range_m: float | None
    status: Status


def sample_of(status: Status, range_mm: int, nearest_m: float, most_mm: int) -> Sample:
    """Return a sample; a range out of the chip's bounds is none."""
    if status is Status.OK and range_mm > most_mm:
        status = Status.PHASE
    elif status is Status.OK and range_mm < 1000 * nearest_m:
        status = Status.NEAR
    return Sample(range_mm / 1000 if status is Status.OK else None, status)


class TofChip:
    """Chip on a bus, of either family. `result`: raw bytes of the last sample, including the
    signal rate."""

    result = b""

    def __init__(self, device: I2cDevice, clock_s: Clock, sleep: Callable[[float], None]) -> None:
        self._device, self._clock_s, self._sleep = device, clock_s, sleep

    def _wait_for(self, ready: Callable[[], object], step: Text, most_s: float) -> None:
        """Poll until `ready` returns true. Raises I2cError, also after `most_s`."""
        end_s = self._clock_s() + most_s
        while not ready():
            if self._clock_s() > end_s:
                raise I2cError(TOF_NOT_READY(step=step, seconds=most_s))
            self._sleep(POLL_S)


def identify(device: I2cDevice) -> None:
    """Raise I2cError unless the chip identifies itself as a VL53L0X."""
    if (found := device.read(R.MODEL_ID, 3)) != IDENTITY:
        raise I2cError(TOF_IDENTITY(found=found.hex()))


def readdress(device: I2cDevice, address: int) -> None:
    """Change the address until XSHUT or power resets it.

    Raises I2cError, and ValueError for a reserved address.
    """
    if not 0x08 <= address <= 0x77:
        raise ValueError(f"I2C address {address:#04x}: expected 0x08 to 0x77")
    identify(device)
    device.write(R.I2C_SLAVE_DEVICE_ADDRESS, bytes((address,)))


class Vl53l0x(TofChip):
    """VL53L0X, continuously ranging after `start`. Raises I2cError."""

    def __init__(
        self, device: I2cDevice, clock_s: Clock, sleep: Callable[[float], None], reset: bool = True
    ) -> None:
        """Set the chip up, which takes 40 ms. Rejects other chips.

        Without a `reset` by XSHUT or power it may still be ranging for a previous owner.
        """
        super().__init__(device, clock_s, sleep)
        self._read_result = device.prepared(Read(R.RESULT_INTERRUPT_STATUS, RESULT.size))
        identify(device)
        self._set_up(reset)

    def start(self) -> None:
        """Start back-to-back ranging, as fast as the budget allows."""
        self._put((R.POWER_MANAGEMENT, 1), (R.PAGE, 1), (0x00, 0))
        self._put((R.STOP_VARIABLE, self._stop), (0x00, 1), (R.PAGE, 0))
        self._put((R.POWER_MANAGEMENT, 0), (R.SYSRANGE_START, 0x02))

    def read(self, after_s: float = 0.0) -> Sample | None:
        """Return the newest sample, `after_s` from now; None while there is no new one.

        A chip reset by a supply dip never has a new one: its age shows that, and its
        owner sets it up again.
        """
        (result,) = self._read_result(after_s)
        ready, device_status, range_mm = RESULT.unpack(result)
        if not ready & 7:
            return None
        self._device.post(R.INTERRUPT_CLEAR, b"\1")
        self.result = result[1:]
        status = STATUS.get((device_status & 0x78) >> 3, Status.NONE)
        return sample_of(status, range_mm, NEAREST_M, RANGE_MAX_MM)

    def _set_up(self, reset: bool) -> None:
        high = self._get(R.PAD_SCL_SDA_EXTSUP_HV)
        self._put((R.PAD_SCL_SDA_EXTSUP_HV, high | 1), (R.I2C_MODE, 0))
        self._put((R.POWER_MANAGEMENT, 1), (R.PAGE, 1), (0x00, 0))
        self._stop = self._get(R.STOP_VARIABLE)
        self._put((0x00, 1), (R.PAGE, 0), (R.POWER_MANAGEMENT, 0))
        if not reset:
            self._end_ranging()
        control = self._get(R.MSRC_CONFIG_CONTROL)
        self._put((R.MSRC_CONFIG_CONTROL, control | 0x12))
        self._put16(R.FINAL_RANGE_MIN_COUNT_RATE, round(SIGNAL_LIMIT_MCPS * 128))
        self._put((R.SEQUENCE_CONFIG, 0xFF))
        self._choose_spads(*self._spad_info())
        self._put(*zip(TUNING[::2], TUNING[1::2], strict=True))
        high_mux = self._get(R.GPIO_HV_MUX_ACTIVE_HIGH)
        self._put(
            (R.INTERRUPT_CONFIG_GPIO, 0x04),  # a new sample
            (R.GPIO_HV_MUX_ACTIVE_HIGH, high_mux & ~0x10),
            (R.INTERRUPT_CLEAR, 1),
            (R.SEQUENCE_CONFIG, 0xE8),
        )
        self._set_budget(BUDGET_US)
        for sequence, start in ((0x01, 0x41), (0x02, 0x01)):  # VHV, phase
            self._put((R.SEQUENCE_CONFIG, sequence), (R.SYSRANGE_START, start))
            self._wait_for(lambda: self._get(R.RESULT_INTERRUPT_STATUS) & 7, CALIBRATION, ANSWER_S)
            self._put((R.INTERRUPT_CLEAR, 1), (R.SYSRANGE_START, 0))
        self._put((R.SEQUENCE_CONFIG, 0xE8))

    def _end_ranging(self) -> None:
        """Stop ranging, as calibration fails while it runs (VL53L0X_StopMeasurement
        of the API); then restore the stop variable."""
        self._put((R.SYSRANGE_START, 0x01), (R.PAGE, 1), (0x00, 0))
        self._put((R.STOP_VARIABLE, 0), (0x00, 1), (R.PAGE, 0))
        self._sleep(STOP_S)
        self._put((R.PAGE, 1), (R.STOP_VARIABLE, self._stop), (R.PAGE, 0))
        self._put((R.INTERRUPT_CLEAR, 1))

    def _spad_info(self) -> tuple[int, bool]:
        """Return number and kind of the reference SPADs from the factory's calibration."""
        self._put((R.POWER_MANAGEMENT, 1), (R.PAGE, 1), (0x00, 0), (R.PAGE, 6))
        self._put((R.NVM_STROBE, self._get(R.NVM_STROBE) | 4), (R.PAGE, 7))
        self._put((R.NVM_SELECT, 1), (R.POWER_MANAGEMENT, 1), (R.NVM_ADDRESS, 0x6B))
        self._put((R.NVM_STROBE, 0))
        self._wait_for(lambda: self._get(R.NVM_STROBE), MEMORY, ANSWER_S)
        self._put((R.NVM_STROBE, 1))
        info = self._get(R.NVM_SPAD_INFO)
        self._put((R.NVM_SELECT, 0), (R.PAGE, 6))
        self._put((R.NVM_STROBE, self._get(R.NVM_STROBE) & ~4), (R.PAGE, 1))
        self._put((0x00, 1), (R.PAGE, 0), (R.POWER_MANAGEMENT, 0))
        return info & 0x7F, bool(info & 0x80)

    def _choose_spads(self, count: int, aperture: bool) -> None:
        good = int.from_bytes(self._device.read(R.GLOBAL_SPAD_ENABLES_REF, 6), "little")
        self._put((R.PAGE, 1), (R.DYNAMIC_SPAD_START_OFFSET, 0))
        self._put((R.DYNAMIC_SPAD_NUM_REQUESTED, 0x2C), (R.PAGE, 0))
        self._put((R.GLOBAL_REF_EN_START_SELECT, 0xB4))
        first = FIRST_APERTURE_SPAD if aperture else 0
        usable = [spad for spad in range(first, SPADS) if good >> spad & 1]
        chosen = sum(1 << spad for spad in usable[:count])
        self._device.write(R.GLOBAL_SPAD_ENABLES_REF, chosen.to_bytes(6, "little"))

    def _steps(self) -> Steps:
        return Steps(
            self._get(R.SEQUENCE_CONFIG),
            self._get(R.MSRC_CONFIG_TIMEOUT) + 1,
            decode_timeout(self._get16(R.PRE_RANGE_TIMEOUT)),
            decode_timeout(self._get16(R.FINAL_RANGE_TIMEOUT)),
            (self._get(R.PRE_RANGE_VCSEL_PERIOD) + 1) << 1,
            (self._get(R.FINAL_RANGE_VCSEL_PERIOD) + 1) << 1,
        )

    def _set_budget(self, budget_us: int) -> None:
        steps = self._steps()
        mclks = to_mclks(budget_us - steps.before_final_us(BUDGET_START_US), steps.final_pclks)
        try:
            encoded = encode_timeout(mclks + (steps.pre_mclks if steps.on(6) else 0))
        except ValueError as fault:  # impossible register values: the chip lost power
            raise I2cError(f"VL53L0X: {fault}") from None
        self._put16(R.FINAL_RANGE_TIMEOUT, encoded)

    def _get(self, register: int) -> int:
        return self._device.read(register, 1)[0]

    def _get16(self, register: int) -> int:
        return int.from_bytes(self._device.read(register, 2), "big")

    def _put(self, *pairs: tuple[int, int]) -> None:
        self._device.transfer(*(Write(register, bytes((value,))) for register, value in pairs))

    def _put16(self, register: int, value: int) -> None:
        self._device.write(register, value.to_bytes(2, "big"))
