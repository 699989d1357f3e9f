"""/ws/intercom, both ways: binary frames of 40 ms of sound.

    0                 8                      648
    +-----------------+----------------------+
    | car's clock, us | 640 samples, mu-law  |
    |             u64 | 16 kHz, mono         |
    +-----------------+----------------------+

The clock is CLOCK_MONOTONIC of the car at the end of the sound, little-endian; a page computes it
from its pings. Mu-law (G.711) needs half the bitrate of 16-bit samples, 128 kbit/s, and ALSA's
programs convert it, so that the car's own program only moves bytes.

The page sends the hello of /ws/drive first. It may then send frames of its microphone, and the text
"listen", which orders frames of the car's microphone for 2 s.
"""

import struct
from typing import NamedTuple

from fpvcar.wire.errors import WireError

CLOCK = struct.Struct("<Q")
SOUND_BYTES = 640
SOUND_S = 0.04
FRAME_BYTES = CLOCK.size + SOUND_BYTES
LISTEN = "listen"


class Sound(NamedTuple):
    """Sound of one frame, and its time."""

    clock_us: int
    samples: bytes


def pack_sound(sound: Sound) -> bytes:
    """Pack a frame of either direction."""
    return CLOCK.pack(sound.clock_us) + sound.samples


def parse_sound(frame: bytes) -> Sound:
    """Return the content of one frame. Raises WireError."""
    if len(frame) != FRAME_BYTES:
        raise WireError("sound frame length", len(frame), f"{FRAME_BYTES} bytes")
    return Sound(CLOCK.unpack_from(frame)[0], frame[CLOCK.size :])
