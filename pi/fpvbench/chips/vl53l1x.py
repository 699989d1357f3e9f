"""VL53L1X family of the bench: its 16-bit index, boot, and measurements that take their time.

It follows ST's Ultra Lite Driver (STSW-IMG009), and has the parts that matter to a driver:
identity, boot state, soft reset, the configuration without which nothing is measured, ranging with
its result block, and the address that XSHUT resets.
"""

import math
from collections.abc import Callable
from functools import partial

from fpvbench.chips import vl53l0x
from fpvbench.chips.i2c import Make
from fpvcar.devices.chips.vl53l1x import NAMES

BOOT_S = 0.0012
FIRST_S = 0.033
REACH_M = 2.5
"""Distance at which a grey wall is detected indoors, with a budget of 33 ms (DS12385, 5.2.2: 20 ms
or more, dark)."""
NEAREST_M = 0.04
NOISE = 0.01
"""Standard deviation of a range, as a share of it, and at least 3 mm."""
OSCILLATOR = 0x0140
ADDRESS, STATUS, CLEAR, START, RESULT, BOOTED = 0x01, 0x31, 0x86, 0x87, 0x89, 0xE5
PERIOD, MODEL = 0x6C, 0x010F
CONFIGURED = {0x30: 0x01, 0x46: 0x20, 0x81: 0x9B}
"""Registers without whose values it does not range."""
CLOCKS = 1.075
RELEASE = b"\0\0\1"
"""Write that ends a soft reset."""


class Vl53l1x(vl53l0x.TofChip):
    """Chip named like the data sheet."""

    def __init__(
        self,
        range_m: Callable[[], float],
        clock_s: Callable[[], float],
        power: Callable[[], bool] = lambda: True,
        seed: int = 1,
        boot_s: float = BOOT_S,
        off_m: float = 0.0,
        name: str = "VL53L1X",
    ) -> None:
        self._model = next(model for model, chip in NAMES.items() if chip == name)
        super().__init__(range_m, clock_s, power, seed, boot_s, off_m)

    @property
    def address(self) -> int:
        self._feel_power()
        return self._registers[ADDRESS] & 0x7F

    def write(self, data: bytes) -> None:
        """Write an index of two bytes, then bytes to consecutive registers. Raises Nack."""
        if data != RELEASE:
            self._awake()
        if len(data) < 2:
            return  # half an index
        self._index = int.from_bytes(data[:2], "big")
        for value in data[2:]:
            self._set(self._index, value)
            self._index += 1

    def read(self, count: int) -> bytes:
        """Read consecutive registers. Raises Nack."""
        self._awake()
        self._measure()
        at, self._index = self._index, self._index + count
        self._registers[STATUS] = 0x02 | self._ready
        return bytes(self._registers.get(number, 0) for number in range(at, at + count))

    def _reset(self) -> None:
        self._registers = {ADDRESS: vl53l0x.DEFAULT_ADDRESS, BOOTED: 0x03}
        self._registers |= dict(zip((MODEL, MODEL + 1), self._model, strict=True))
        self._registers |= {0xDE: OSCILLATOR >> 8, 0xDF: OSCILLATOR & 0xFF}
        self._index, self._ready = 0, False
        self._due_s, self._began_m = None, math.inf

    def _set(self, register: int, value: int) -> None:
        self._registers[register] = value
        if register == 0:
            self._reset()
            self._on_s = self._clock_s() if value else math.inf  # held in reset until a 1
        elif register == CLEAR and value & 1:
            self._ready = False
        elif register == START:
            ready = all(self._registers.get(at) == one for at, one in CONFIGURED.items())
            self._due_s = None
            if value == 0x40 and ready:
                self._wait(FIRST_S)

    @property
    def period_s(self) -> float:
        """Time between the starts of two measurements, by the register."""
        data = bytes(self._registers.get(PERIOD + at, 0) for at in range(4))
        return max(FIRST_S, int.from_bytes(data, "big") / CLOCKS / OSCILLATOR / 1000)

    def _measure(self) -> None:
        if self._due_s is None or self._clock_s() < self._due_s or self._ready:
            return
        status, range_mm = self._sample()
        signal = self._chance.randrange(200, 2000)
        block = (
            status.to_bytes(1, "big")
            + bytes(12)
            + b"".join(number.to_bytes(2, "big") for number in (range_mm, signal))
        )
        self._registers |= dict(enumerate(block, RESULT))
        self._ready = True
        self._wait(self.period_s)

    def _sample(self) -> tuple[int, int]:
        metres = self._measured_m()
        if not metres <= REACH_M:
            return self._chance.choice(((4, 0), (7, 120)))  # no target, or one wrapped round
        if metres < NEAREST_M:
            return 8, 0
        noise_m = self._chance.gauss(0.0, max(0.003, NOISE * metres))
        return 9, max(1, round(1000 * (metres + noise_m)))


def device(index: int, xshut: str = "", off_m: str = "0", name: str = "VL53L1X") -> Make:
    """Return the maker of BUS:RANGE:vl53l1x[:XSHUT_GPIO[:OFF_M[:NAME]]]. Raises ValueError."""
    if name not in NAMES.values():
        raise ValueError(name)
    return vl53l0x.device(index, xshut, off_m, partial(Vl53l1x, name=name))
