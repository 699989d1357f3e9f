"""Frames of /ws/intercom."""

import pytest

from fpvcar.wire.errors import WireError
from fpvcar.wire.intercom import FRAME_BYTES, SOUND_BYTES, Sound, pack_sound, parse_sound


@pytest.mark.parametrize("clock_us", [0, 90_000_000_000, 2**64 - 1])
def test_frame_has_the_clock_and_its_samples(clock_us: int) -> None:
    sound = Sound(clock_us, bytes(range(128)) * 5)
    assert len(sound.samples) == SOUND_BYTES
    assert parse_sound(pack_sound(sound)) == sound


@pytest.mark.parametrize("size", [0, 7, 8, FRAME_BYTES - 1, FRAME_BYTES + 1, 10 * FRAME_BYTES])
def test_frame_of_another_length_is_refused(size: int) -> None:
    with pytest.raises(WireError, match=f"{size}.*{FRAME_BYTES} bytes"):
        parse_sound(bytes(size))
