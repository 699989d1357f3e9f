"""VL53L0X of the bench on a bus that fails on request."""

from collections.abc import Callable
from dataclasses import dataclass, field

from fpvbench.chips import vl53l0x as model
from fpvbench.chips.i2c import Nack
from fpvcar.devices.chips.vl53l0x import Vl53l0x
from fpvcar.devices.i2c import I2cDevice, I2cError
from fpvcar.runtime.texts import Text

NOBODY = Text("nobody", "nobody answers")


@dataclass
class Rig(I2cDevice):
    """Chip before one wall, a clock, and a bus that fails on request."""

    range_m: float = 0.5
    power: bool = True
    now_s: float = 10.0
    transfers: int = 0
    trace: list[str] = field(default_factory=list)
    fails_at: int = -1
    spoils: Callable[[int, bytes], bytes] = lambda _, data: data
    absent: bool = False
    fault: Exception | None = None
    tries: int = 0
    closed: int = 0
    chip: model.Vl53l0x = field(init=False)

    def __post_init__(self) -> None:
        self.chip = model.Vl53l0x(lambda: self.range_m, lambda: self.now_s, lambda: self.power)
        self.chip.address  # noqa: B018 - switches it on before the first transfer
        self.sleep(model.BOOT_S)

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def clock_s(self) -> float:
        return self.now_s

    def open(self, bus: int, address: int) -> I2cDevice:
        assert (bus, address) == (1, model.DEFAULT_ADDRESS)
        self.tries += 1
        if self.absent:
            raise I2cError(NOBODY)
        return self

    def close(self) -> None:
        self.closed += 1

    def sensor(self) -> Vl53l0x:
        return Vl53l0x(self, self.clock_s, self.sleep)

    def read(self, register: int, size: int) -> bytes:
        self.trace.append(f"{register:02x} ? {size}")
        self._transfer(bytes((register,)))
        return self.spoils(register, self.chip.read(size))

    def write(self, register: int, data: bytes) -> None:
        self.trace.append(f"{register:02x} {data.hex()}")
        self._transfer(bytes((register,)) + data)

    def _transfer(self, data: bytes) -> None:
        self.transfers += 1
        if self.fault is not None:
            raise self.fault
        if self.transfers == self.fails_at:
            raise I2cError("nobody acknowledged")
        try:
            self.chip.write(data)
        except Nack as fault:
            raise I2cError(str(fault)) from None
