"""Picture size in an SPS written by x264; a truncated one is refused."""

import av
import numpy as np
import pytest

from fpvcar.video import h264
from fpvcar.video.syntax import Shape, shape_of


def sps_of(width: int, height: int, profile: str, pixels: str, **options: str) -> bytes:
    """Return the SPS of a stream made by x264."""
    codec = av.CodecContext.create("libx264", "w")
    assert isinstance(codec, av.VideoCodecContext)
    codec.width, codec.height, codec.pix_fmt = width, height, pixels
    codec.options = {"tune": "zerolatency", "profile": profile, **options}
    grey = np.full((height, width, 3), 99, np.uint8)
    units = codec.encode(av.VideoFrame.from_ndarray(grey, format="rgb24"))
    nals = h264.nal_units(b"".join(map(bytes, [*units, *codec.encode(None)])))
    return next(nal for nal in nals if nal[0] & 31 == h264.SPS)


@pytest.mark.parametrize(
    ("profile", "pixels", "more"),
    [
        ("baseline", "yuv420p", (1, 0, 0)),
        ("high", "yuv420p", (1, 0, 0)),
        ("high422", "yuv422p", (2, 0, 0)),
        ("high444", "yuv444p", (3, 0, 0)),
        ("high10", "yuv420p10le", (1, 2, 2)),
    ],
)
@pytest.mark.parametrize("size", [(640, 480), (1920, 1080), (66, 34), (320, 240)])
def test_size_and_samples_are_those_of_the_stream(
    size: tuple[int, int], profile: str, pixels: str, more: tuple[int, int, int]
) -> None:
    sps = sps_of(*size, profile, pixels)
    assert shape_of(sps) == Shape(*size, *more)


@pytest.mark.parametrize("matrices", ["jvt", "flat"])
def test_scaling_lists_and_fields_are_passed_by(matrices: str) -> None:
    sps = sps_of(640, 480, "high", "yuv420p", **{"x264-params": f"cqm={matrices}:interlaced=1"})
    assert shape_of(sps)[:2] == (640, 480)


@pytest.mark.parametrize("profile", ["baseline", "high"])
def test_truncated_sps_is_refused(profile: str) -> None:
    sps = sps_of(640, 480, profile, "yuv420p")
    whole = shape_of(sps)
    refused = 0
    for end in range(len(sps)):
        try:
            assert shape_of(sps[:end]) == whole  # only later fields are cut
        except ValueError:
            refused += 1
    assert refused >= 8


def test_impossible_size_is_refused() -> None:
    bits = "1" * 3 + "010" + "1" * 2 + "0" + 2 * ("0" * 14 + "1" * 15) + "1" * 8
    data = int(bits.ljust(96, "1"), 2).to_bytes(12, "big")
    with pytest.raises(ValueError, match="expected at most 16888"):
        shape_of(b"\x67\x42\xc0\x1e" + data)
