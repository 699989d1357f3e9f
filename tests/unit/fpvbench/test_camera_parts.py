"""Clock strip of the bench camera, and its encoder."""

from pathlib import Path

import numpy as np
import pytest
from testkit.cameras.camera import decode, decoder, nal_types

from fpvbench import soc as chip
from fpvbench.camera import strip
from fpvbench.camera.picture import Strip, WithLed
from fpvcar.hil import led_detector
from fpvcar.video.programs.encoder import Encoder

# --- the strip ---------------------------------------------------------------------


@pytest.mark.parametrize("clock", [0, 1, 123_456_789, 2**32 - 1, 2**32 + 5])
@pytest.mark.parametrize("width", [320, 640, 1280])
def test_strip_is_read_back(clock: int, width: int) -> None:
    picture = np.full((240, width), 90, dtype=np.uint8)
    strip.paint(picture, clock, 16, 235)
    assert strip.read(picture) == clock % 2**32


def test_picture_without_valid_strip_reads_none() -> None:
    picture = np.full((240, 640), 90, dtype=np.uint8)
    assert strip.read(picture) is None
    strip.paint(picture, 77, 16, 235)
    picture[:16, 20 * 16 : 21 * 16] ^= 0xFF
    assert strip.read(picture) is None


@pytest.mark.parametrize("size", [(640, 480), (328, 240)])  # lines with padding
def test_chip_led_shines_in_the_picture(tmp_path: Path, size: tuple[int, int]) -> None:
    chip.create(tmp_path / "soc")
    soc = chip.attach(tmp_path / "soc")
    source = WithLed(Strip(*size), soc, 9, size)

    def shown() -> led_detector.Cells:
        plane = source.take()[1].planes[0]
        luma = np.frombuffer(memoryview(plane), dtype=np.uint8)
        rows = luma.reshape(plane.height, plane.line_size)[:, : plane.width]
        assert strip.read(rows) is not None, "the clock stays"
        return led_detector.of_luma(rows)

    soc.pin[9].mode = chip.MODE_OUTPUT
    dark = [shown() for _ in range(5)]
    soc.pin[9].out = 1
    found = led_detector.find(dark, [shown() for _ in range(5)])
    assert found.lit(shown())
    soc.pin[9].mode = chip.MODE_INPUT
    assert not found.lit(shown()), "an LED at an input is dark"


# --- the encoder -------------------------------------------------------------------


def test_encoder_gives_each_picture_at_once_and_no_b_frames() -> None:
    encoder, source, codec = Encoder(320, 240, 30, 500_000), Strip(320, 240), None
    for index in range(70):
        unit, key = encoder.encode(source.take()[1], key=index == 40)
        assert key == (index in (0, 40))
        if key:
            assert nal_types(unit)[:2] == [7, 8]
            assert 5 in nal_types(unit)
            codec = codec or decoder()
        assert codec
        picture = decode(codec, unit)
        assert (picture.width, picture.height) == (320, 240)
        assert picture.pict_type in (1, 2)
        assert codec.reorder_depth == 0 and not codec.has_b_frames
    sps, _ = encoder.encode(source.take()[1], key=True)
    at = sps.index(b"\0\0\1") + 4
    assert sps[at] == 66 and sps[at + 1] & 0x40  # constrained baseline


def test_key_frames_stay_within_the_vbv() -> None:
    encoder, source = Encoder(640, 480, 30, 800_000), Strip(640, 480)
    units = [encoder.encode(source.take()[1], key=i % 20 == 0) for i in range(100)]
    assert max(len(unit) for unit, _ in units) < 1.3 * 800_000 / 8 * 0.2


def test_still_picture_stays_far_below_the_bitrate() -> None:
    encoder, (_, picture) = (Encoder(320, 240, 30, 2_000_000), Strip(320, 240).take())
    sizes = [len(encoder.encode(picture, key=False)[0]) for _ in range(29)]
    assert sum(sizes[5:]) < 24 * 500
