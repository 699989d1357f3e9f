"""TFmini-S: range by light, 0.1 to 12 m, by serial line or I2C (Benewake SJ-PM-TFmini-S A01, 5.3
to 5.6). A frame is 9 bytes in both: 59 59, range in cm, strength, temperature, checksum."""

import struct

from fpvcar.devices.i2c import I2cDevice, I2cError, Receive, Write
from fpvcar.runtime.texts import Text

FRAME = struct.Struct("<2sHHHB")
HEAD = b"\x59\x59"
OBTAIN = Write(0x5A, b"\x05\x00\x01\x60")
"""Request of a frame in cm."""
WEAKEST = 100
"""Strength below which the range is unreliable."""
FARTHEST_M = 12.0
NEAREST_M = 0.1
SATURATED, BLINDED = 0xFFFE, 0xFFFC  # -2 and -4
UNKNOWN = {
    SATURATED: Text("tfmini_saturated", "too much light returns: a mirror, or very near"),
    BLINDED: Text("tfmini_blinded", "sunlight blinds it"),
}
"""Range of a frame that says nothing about an obstacle -> state."""
Measured = float | None | Text
"""Range in m, None without a target, or the reason why it is unknown."""
DAMAGED = Text("tfmini_damaged", "damaged frame: is it in I2C mode?")


def decode(frame: bytes) -> Measured:
    """Return the measurement of a frame. Raises ValueError for a damaged one."""
    head, range_cm, strength, _, checksum = FRAME.unpack(frame)
    if head != HEAD or sum(frame[:-1]) & 0xFF != checksum:
        raise ValueError(frame.hex())
    if range_cm in UNKNOWN:
        return UNKNOWN[range_cm]
    range_m: float = range_cm / 100.0
    if strength < WEAKEST or range_m > FARTHEST_M:
        return None
    return max(range_m, NEAREST_M)


class Frames:
    """Frames of a serial stream that may begin and break anywhere."""

    def __init__(self) -> None:
        self._pending = bytearray()

    def add(self, data: bytes) -> list[Measured]:
        """Return the measurements that these bytes complete."""
        self._pending += data
        found: list[Measured] = []
        while (at := self._pending.find(HEAD)) >= 0 and len(self._pending) >= at + FRAME.size:
            try:
                found.append(decode(bytes(self._pending[at : at + FRAME.size])))
                del self._pending[: at + FRAME.size]
            except ValueError:  # two bytes of 0x59 inside a frame
                del self._pending[: at + 1]
        del self._pending[: max(0, len(self._pending) - FRAME.size)]
        return found


def read(device: I2cDevice) -> Measured:
    """Request a measurement over I2C. Raises I2cError."""
    (frame,) = device.transfer(OBTAIN, Receive(FRAME.size))
    try:
        return decode(frame)
    except ValueError:
        raise I2cError(DAMAGED) from None
