"""VL53L0X of the bench: its register banks, and measurements that take their time.

It follows ST's API (STSW-IMG005), the only source for most registers. It has the parts that matter
to a driver: identity, the pages behind 0xFF, the stop variable, the strobe of the factory memory,
two reference calibrations, ranging with its result block, and the address that XSHUT resets.
"""

import math
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable

from fpvbench import soc as chip
from fpvbench.chips.i2c import Device, Make, Nack
from fpvcar.config import Tof

DEFAULT_ADDRESS = 0x29
BOOT_S = 0.0012
"""Time from XSHUT high to the first answer."""
CALIBRATION_S = 0.004
NVM_READS = 3
"""Number of reads of the strobe until the factory memory has answered."""
SPAD_INFO = 0x80 | 5  # aperture, five of them
GOOD_SPADS = bytes.fromhex("fffeffdfffff")
STOP_VARIABLE = 0x3C
REACH_M = 1.2
"""Distance at which a grey wall is detected indoors (DS11555, table 12); beyond, too
little light returns."""
NEAREST_M = 0.03
NO_TARGET = ((4, 8190), (6, 8191))
"""Device range status, with the value of the range register."""
NOISE = 0.012
"""Standard deviation of a range, as a share of it, and at least 2 mm."""
PAGE, ADDRESS = 0xFF, 0x8A
RESET_VALUES = {
    0xC0: 0xEE,
    0xC1: 0xAA,
    0xC2: 0x10,
    0x01: 0xFF,
    0x46: 0x25,
    0x50: 0x06,
    0x52: 0x96,
    0x70: 0x04,
    0x71: 0x01,
    0x72: 0xFE,
    0x84: 0x11,
    0x8A: DEFAULT_ADDRESS,
}


class TofChip(ABC):
    """Chip of either family. `range_m` returns the distance of the target, infinity for none;
    `power` is the level of its XSHUT; the caller supplies the time."""

    def __init__(
        self,
        range_m: Callable[[], float],
        clock_s: Callable[[], float],
        power: Callable[[], bool] = lambda: True,
        seed: int = 1,
        boot_s: float = BOOT_S,
        off_m: float = 0.0,
    ) -> None:
        self.off_m = off_m
        """Fault: each range is off by up to this distance."""
        self._range_m, self._clock_s, self._power = range_m, clock_s, power
        self._chance, self._boot_s = random.Random(seed), boot_s
        self._was_on, self._on_s = False, -math.inf
        self._due_s: float | None = None
        self._began_m = math.inf
        self._reset()

    @abstractmethod
    def _reset(self) -> None:
        """Set the registers to their values at power-up, and stop ranging."""

    def _feel_power(self) -> None:
        on = self._power()
        if on and not self._was_on:
            self._reset()
            self._on_s = self._clock_s()
        self._was_on = on

    def _awake(self) -> None:
        self._feel_power()
        if not self._was_on or self._clock_s() < self._on_s + self._boot_s:
            raise Nack(f"a {type(self).__name__.upper()} without power, or still booting")

    def _wait(self, takes_s: float) -> None:
        """Start a measurement. It reports the distance at its start; a real chip
        reports the mean over the measurement, so it is never later than this one."""
        self._due_s, self._began_m = self._clock_s() + takes_s, self._range_m()

    def _measured_m(self) -> float:
        """Return the distance at the start of the measurement, with the fault's offset."""
        return abs(self._began_m + self._chance.uniform(-self.off_m, self.off_m))


class Vl53l0x(TofChip):
    """VL53L0X."""

    @property
    def address(self) -> int:
        self._feel_power()
        return self._bank[0][ADDRESS] & 0x7F

    def write(self, data: bytes) -> None:
        """Write an index, then bytes to consecutive registers. Raises Nack."""
        self._awake()
        if data:
            self._index = data[0]
        for value in data[1:]:
            self._set(self._index, value)
            self._index = (self._index + 1) & 0xFF

    def read(self, count: int) -> bytes:
        """Read consecutive registers. Raises Nack."""
        self._awake()
        data = bytearray()
        for _ in range(count):
            data.append(self._get(self._index))
            self._index = (self._index + 1) & 0xFF
        return bytes(data)

    def _reset(self) -> None:
        self._bank = {page: bytearray(256) for page in (0, 1, 6, 7)}
        for register, value in RESET_VALUES.items():
            self._bank[0][register] = value
        self._bank[0][0xB0:0xB6] = GOOD_SPADS
        self._bank[1][0x91] = STOP_VARIABLE
        self._bank[7][0x92] = SPAD_INFO
        self._page = self._index = self._nvm_reads = self._calibrated = 0
        self._due_s, self._began_m = None, math.inf
        self._again = False

    def _set(self, register: int, value: int) -> None:
        if register == PAGE:
            self._page = value
            self._bank.setdefault(value, bytearray(256))
            return
        self._bank[self._page][register] = value
        if self._page == 0 and register == 0x00:
            self._begin(value)
        elif self._page == 0 and register == 0x0B:
            self._bank[0][0x13] = 0
        elif self._page == 7 and register == 0x83 and value == 0:
            self._nvm_reads = 0

    def _get(self, register: int) -> int:
        if register == PAGE:
            return self._page
        if self._page == 7 and register == 0x83:
            self._nvm_reads += 1
            return int(self._nvm_reads >= NVM_READS)
        if self._page == 0:
            self._measure()
        return self._bank[self._page][register]

    def _begin(self, mode: int) -> None:
        """Process SYSRANGE_START: 1 once, 2 back to back; 0 or 1 end back-to-back ranging."""
        calibrates = self._bank[0][0x01] in (0x01, 0x02)
        if calibrates:
            bit = self._bank[0][0x01]
            self._calibrated = self._calibrated & ~bit | (0 if self._again else bit)
            if self._again:
                return  # while ranging, the calibration is lost
        self._again = mode == 0x02
        ready = self._calibrated == 3 and self._bank[1][0x91] == STOP_VARIABLE
        if self._again and not ready:
            self._due_s = None  # it does not range
        elif mode & 3:
            self._bank[0][0x00] &= ~1  # clears itself
            takes_s = CALIBRATION_S if calibrates else self.budget_s
            self._wait(takes_s)

    @property
    def budget_s(self) -> float:
        """Return the duration of one measurement, by the timeout registers."""
        bank = self._bank[0]
        period_s = 2304 * ((bank[0x70] + 1) << 1) * 1.655e-9
        final = (bank[0x72] << bank[0x71]) + 1
        pre_range = (bank[0x52] << bank[0x51]) + 1
        pre_s = pre_range * 2304 * ((bank[0x50] + 1) << 1) * 1.655e-9
        return 0.0095 + pre_s + max(final - pre_range, 0) * period_s

    def _measure(self) -> None:
        if self._due_s is None or self._clock_s() < self._due_s:
            return
        status, range_mm = self._sample()
        result = self._bank[0]
        result[0x14] = status << 3 | 1
        result[0x1E:0x20] = range_mm.to_bytes(2, "big")
        result[0x13] = 0x04  # new sample
        self._due_s = None
        if self._again:
            self._wait(self.budget_s)

    def _sample(self) -> tuple[int, int]:
        metres = self._measured_m()
        if not metres <= REACH_M:
            return self._chance.choice(NO_TARGET)
        if metres < NEAREST_M:
            return 8, round(1000 * NEAREST_M)
        noise_m = self._chance.gauss(0.0, max(0.002, NOISE * metres))
        return 11, max(1, round(1000 * (metres + noise_m)))


def option(sensor: Tof) -> tuple[str, str]:
    """Return the daemon's option for a sensor of a profile."""
    power = "" if sensor.power is None else f":{sensor.power}"
    index = chip.nearest_range(sensor.bearing_deg)
    if sensor.chip != "VL53L0X":
        return "--i2c", f"{sensor.bus}:{index}:vl53l1x{power or ':'}:0:{sensor.chip}"
    return "--i2c", f"{sensor.bus}:{index}:vl53l0x{power}"


def device(
    index: int, xshut: str = "", off_m: str = "0", model: Callable[..., Device] = Vl53l0x
) -> Make:
    """Return the maker of BUS:RANGE:vl53l0x[:XSHUT_GPIO[:OFF_M]], or of another `model` of
    its parameters. Raises ValueError."""
    power, error_m = int(xshut, 0) if xshut else None, float(off_m)
    if not (0 <= index < chip.RANGES_MAX and 0 <= (power or 0) < 32):
        raise ValueError
    return lambda soc: [range_sensor(soc, index, power, error_m, model)]


def range_sensor(
    soc: chip.Soc,
    index: int,
    power: int | None,
    off_m: float = 0.0,
    model: Callable[..., Device] = Vl53l0x,
) -> Device:
    """Return a sensor of the world's range `index`; `power` is the GPIO at its XSHUT.

    A module pulls XSHUT up: an undriven pin leaves it on.
    """

    def on() -> bool:
        if power is None or soc.pin[power].mode != chip.MODE_OUTPUT:
            return True
        return bool(soc.pin[power].out)

    # a single field is stored atomically, so its guard is not needed
    world = soc.world
    # It is evaluated only when accessed: a caller that waited has waited by then.
    return model(
        lambda: float(world.range_m[index]), time.monotonic, on, index, boot_s=0.0, off_m=off_m
    )
