"""Picture size in an SPS written by x264; a truncated one is refused. Order of pictures."""

import re
import subprocess

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpvcar.video import h264, syntax
from fpvcar.video.syntax import Shape, in_order, shape_of


def nals_of(width: int, height: int, profile: str, pixels: str, **options: str) -> list[bytes]:
    """Return the NAL units of a picture made by x264."""
    codec = av.CodecContext.create("libx264", "w")
    assert isinstance(codec, av.VideoCodecContext)
    codec.width, codec.height, codec.pix_fmt = width, height, pixels
    codec.options = {"tune": "zerolatency", "profile": profile, **options}
    grey = np.full((height, width, 3), 99, np.uint8)
    units = codec.encode(av.VideoFrame.from_ndarray(grey, format="rgb24"))
    return h264.nal_units(b"".join(map(bytes, [*units, *codec.encode(None)])))


def sps_of(width: int, height: int, profile: str, pixels: str, **options: str) -> bytes:
    """Return the SPS of a stream made by x264."""
    nals = nals_of(width, height, profile, pixels, **options)
    return next(nal for nal in nals if nal[0] & 31 == h264.SPS)


def without_vui(sps: bytes) -> bytes:
    """Return an SPS without VUI parameters, as some encoders write it."""
    bits = syntax._bits_of(sps)
    syntax._take_shape(bits, sps)
    digits = f"{bits.taken}01"
    size = -(-len(digits) // 8)
    data = int(digits.ljust(8 * size, "0"), 2).to_bytes(size, "big")
    return sps[:4] + re.sub(rb"\0\0(?=[\0-\3])", b"\0\0\3", data)


def fields_of(nals: list[bytes]) -> dict[str, str]:
    """Return the fields of the SPS, read by ffmpeg."""
    trace = "ffmpeg -v info -f h264 -i - -c copy -bsf:v trace_headers -f null -".split()
    stream = b"".join(b"\0\0\0\1" + nal for nal in nals)
    done = subprocess.run(trace, input=stream, capture_output=True, timeout=60, check=True)
    text = done.stderr.decode()
    _, _, sps = text.rpartition("Sequence Parameter Set")
    sps, _, _ = sps.partition("Picture Parameter Set")
    return dict(re.findall(r"\d+ +(\w\S*) +[01]+ = (-?\d+)", sps))


FULL_VUI = (
    "bframes=2:sar=40/33:overscan=show:videoformat=pal:fullrange=on:colorprim=bt709:chromaloc=2"
    ":transfer=bt709:colormatrix=bt709:nal-hrd=cbr:vbv-maxrate=500:vbv-bufsize=500:bitrate=500"
)


@pytest.mark.parametrize("vui", ["bframes=2", FULL_VUI, ""])
def test_sps_is_made_to_promise_pictures_in_order(vui: str) -> None:
    options = {"x264-params": vui} if vui else {}
    nals = nals_of(640, 480, "high", "yuv420p", **options)
    if not vui:
        nals = [without_vui(nal) if nal[0] & 31 == h264.SPS else nal for nal in nals]
    before = fields_of(nals)
    assert before.get("max_num_reorder_frames") != "0"
    after = fields_of([in_order(nal) if nal[0] & 31 == h264.SPS else nal for nal in nals])
    assert after["max_num_reorder_frames"] == "0"
    assert after["max_dec_frame_buffering"] == before["max_num_ref_frames"]
    limits = {name: value for name, value in before.items() if not name.startswith(RESTRICTS)}
    assert limits.items() - {("vui_parameters_present_flag", "0")} <= after.items()


RESTRICTS = ("bitstream_restriction", "motion_vectors", "max_", "log2_max_mv")


CODES = ["0", "1", "1", "010", "00101", 8 * "0", "0000100001"]


@given(
    st.sampled_from([66, 77, 100, 244]), st.lists(st.sampled_from(CODES), min_size=20, max_size=90)
)
def test_any_sps_keeps_its_shape(profile: int, codes: list[str]) -> None:
    bits = "".join(["1", *codes])
    body = int(bits, 2).to_bytes(1 + len(bits) // 8, "big")
    sps = bytes([0x67, profile, 0, 30]) + re.sub(rb"\0\0(?=[\0-\3])", b"\0\0\3", body)
    made = in_order(sps)
    if made != sps:
        assert shape_of(made) == shape_of(sps)
        assert in_order(made) is made
        assert not re.search(rb"\0\0[\0-\2]", made[4:])


@pytest.mark.parametrize("profile", ["baseline", "high"])
def test_sps_with_the_promise_and_damaged_sps_are_left_alone(profile: str) -> None:
    sps = sps_of(640, 480, profile, "yuv420p")
    assert in_order(sps) is sps
    cut = without_vui(sps)[:7]
    assert in_order(cut) is cut


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
