"""TFmini-S of the bench, in I2C mode: it answers a request with a frame."""

import random
from collections.abc import Callable

from fpvbench import soc as chip
from fpvbench.chips.i2c import Make, Nack
from fpvcar.config import Tfmini
from fpvcar.devices.chips.tfmini import FARTHEST_M, FRAME, HEAD, NEAREST_M, OBTAIN, SATURATED

REQUEST = bytes((OBTAIN.register,)) + OBTAIN.data
REACH_M = 7.0
"""Distance at which a grey wall is detected indoors (Benewake: 12 m at 90 %, 7 m at 10 %)."""
NOISE_M = 0.02
STRENGTH = 1500
TEMPERATURE = (25 + 256) * 8


def frame(range_cm: int, strength: int) -> bytes:
    """Return a frame; the range is in cm, or one of the chip's codes."""
    data = FRAME.pack(HEAD, range_cm, strength, TEMPERATURE, 0)[:-1]
    return data + bytes((sum(data) & 0xFF,))


class TfminiS:
    """TFmini-S. `range_m` returns the distance of the target, infinity for none."""

    def __init__(self, range_m: Callable[[], float], address: int = 0x10, seed: int = 1) -> None:
        self.address = address
        self._range_m, self._chance = range_m, random.Random(seed)
        self._asked = False

    def write(self, data: bytes) -> None:
        """Take a request. Raises Nack for any other command."""
        if data != REQUEST:
            raise Nack("a TFmini-S knows one request here")
        self._asked = True

    def read(self, count: int) -> bytes:
        """Return the frame that was asked for, else zeros."""
        asked, self._asked = self._asked, False
        return self.measured()[:count] if asked else bytes(count)

    def measured(self) -> bytes:
        """Return the frame of a measurement now."""
        metres = self._range_m()
        if not metres <= min(REACH_M, FARTHEST_M):
            return frame(0xFFFF, 20)
        if metres < NEAREST_M / 3:
            return frame(SATURATED, 0xFFFF)
        noisy_m = metres + self._chance.gauss(0.0, NOISE_M)
        return frame(max(0, round(100 * noisy_m)), STRENGTH)


def option(sensor: Tfmini) -> tuple[str, ...]:
    """Return the daemon's option for a sensor of a profile: none for one on a serial port."""
    if sensor.device:
        return ()
    index = chip.nearest_range(sensor.bearing_deg)
    return "--i2c", f"{sensor.bus}:{index}:tfmini:{sensor.address:#x}"


def device(index: int, address: str = "0x10") -> Make:
    """Return the maker of BUS:RANGE:tfmini[:ADDRESS]. Raises ValueError."""
    number = int(address, 0)
    if not 0 <= index < chip.RANGES_MAX:
        raise ValueError(index)
    return lambda soc: [TfminiS(lambda: float(soc.world.range_m[index]), number, index)]
