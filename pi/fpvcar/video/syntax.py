"""Parser of H.264 fields: SPS, SEI messages and slice headers. Pure; trusts no length.

ITU-T H.264: SPS in section 7.3.2.1.1, its VUI in E.1.1, SEI messages in 7.3.2.3.1, the recovery
point in D.1.8, slice headers in 7.3.3; web/video/h264.js is the page's counterpart.
"""

import re
from typing import NamedTuple

SIDE_MAX = 16888
"""Largest side at level 6.2, table A-1."""
LENGTH_MAX = 1024
"""Bytes of an SPS with every scaling list; further bytes are ignored."""
RECOVERY_POINT = 6
"""Type of the SEI payload that says where a decoder can start."""
SEI_MOST = 4096
"""Bytes of an SEI unit that are searched; user data may be longer, and follows."""
B_SLICES = frozenset({1, 6})
"""Values of slice_type, table 7-6, whose pictures refer to later ones."""
EXTENDED_SAR = 255
"""aspect_ratio_idc of a sample whose sides follow, table E-1."""
NO_VUI = "1" + 8 * "0"
"""VUI parameters without content, up to bitstream_restriction_flag."""
RESTRICTION = "1" + "1" + "011" + "010" + 2 * "000010001" + "1"
"""bitstream_restriction_flag, the values that E.2.1 infers, and max_num_reorder_frames 0."""
_HIGH = frozenset({100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135})
"""Profiles whose SPS has chroma and scaling lists."""


class Shape(NamedTuple):
    """Cropped size of the picture; `chroma` is chroma_format_idc, `..._more` the bits of a
    sample above eight; `number_bits` the length of frame_num, 0 if no picture is a field."""

    width: int
    height: int
    chroma: int = 1
    luma_more: int = 0
    chroma_more: int = 0
    number_bits: int = 0


class Bits:
    """Reader of bits and Exp-Golomb codes, section 9.1. Raises ValueError past the end."""

    def __init__(self, data: bytes) -> None:
        self._bits = int.from_bytes(data, "big")
        self._left = self._count = 8 * len(data)

    @property
    def taken(self) -> str:
        """Bits read so far, as digits."""
        return f"{self._bits:0{self._count}b}"[: self._count - self._left]

    def u(self, count: int) -> int:
        self._left -= count
        if self._left < 0:
            raise ValueError("an SPS that ends too early")
        return self._bits >> self._left & (1 << count) - 1

    def ue(self) -> int:
        zeros = 0
        while not self.u(1):
            zeros += 1
        return (1 << zeros) - 1 + self.u(zeros)

    def se(self) -> int:
        code = self.ue()
        return (code + 1) // 2 if code % 2 else -(code // 2)


def is_high(sps: bytes) -> bool:
    """Return whether this SPS has fields for chroma and bit depth."""
    return sps[1:2] != b"" and sps[1] in _HIGH


def shape_of(sps: bytes) -> Shape:
    """Parse a whole NAL unit. Raises ValueError."""
    return _take_shape(_bits_of(sps), sps)[0]


def in_order(sps: bytes) -> bytes:
    """Return the SPS with max_num_reorder_frames 0, for a stream without B-frames.

    A decoder may hold a whole buffer of pictures if the SPS does not promise that; the hardware
    decoders of Chromium do. A damaged SPS is returned unchanged.
    """
    bits = _bits_of(sps)
    try:
        references = _take_shape(bits, sps)[1]
        head = bits.taken + NO_VUI
        if bits.u(1):
            _skip_vui(bits)
            head = bits.taken
            if bits.u(1) and _reordered(bits) == 0:
                return sps
    except ValueError:
        return sps
    code = f"{references + 1:b}"  # max_dec_frame_buffering, an Exp-Golomb code
    digits = f"{head}{RESTRICTION}{'0' * (len(code) - 1)}{code}1"
    size = -(-len(digits) // 8)
    data = int(digits.ljust(8 * size, "0"), 2).to_bytes(size, "big")
    return sps[:4] + re.sub(rb"\0\0(?=[\0-\3])", b"\0\0\3", data)


def _bits_of(sps: bytes) -> Bits:
    """Return a reader behind the header, profile, constraints and level; 00 00 03 escapes 00 00."""
    return Bits(sps[4:LENGTH_MAX].replace(b"\0\0\3", b"\0\0"))


def _take_shape(bits: Bits, sps: bytes) -> tuple[Shape, int]:
    """Read up to the VUI; return also max_num_ref_frames. Raises ValueError."""
    bits.ue()  # seq_parameter_set_id
    samples = _take_high(bits) if is_high(sps) else (1, 0, 0)
    number_bits = bits.ue() + 4
    _skip_order_count(bits)
    references = bits.ue()
    bits.u(1)  # gaps_in_frame_num_value_allowed_flag
    columns, rows, frames_only = bits.ue() + 1, bits.ue() + 1, bits.u(1)
    fields = 2 - frames_only
    bits.u(1 + (not frames_only))  # direct_8x8_inference, mb_adaptive_frame_field
    width, height = 16 * columns, 16 * rows * fields
    chroma = samples[0]
    if bits.u(1):  # cropping, in chroma samples: table 6-1
        width -= (2 if chroma in (1, 2) else 1) * (bits.ue() + bits.ue())
        height -= (2 if chroma == 1 else 1) * fields * (bits.ue() + bits.ue())
    if not (0 < width <= SIDE_MAX and 0 < height <= SIDE_MAX):
        raise ValueError(f"an SPS of {width}x{height} (expected at most {SIDE_MAX})")
    return Shape(width, height, *samples, 0 if frames_only else number_bits), references


def _take_high(bits: Bits) -> tuple[int, int, int]:
    """Read chroma_format_idc, and both bit depths less eight."""
    chroma = bits.ue()
    if chroma == 3:
        bits.u(1)  # separate_colour_plane_flag
    samples = chroma, bits.ue(), bits.ue()
    bits.u(1)  # qpprime_y_zero_transform_bypass_flag
    if bits.u(1):
        for number in range(12 if chroma == 3 else 8):
            if bits.u(1):
                _skip_scaling_list(bits, 16 if number < 6 else 64)
    return samples


def _skip_scaling_list(bits: Bits, size: int) -> None:
    last = following = 8
    for _ in range(size):
        if following:
            following = (last + bits.se()) % 256
        last = following or last


def _skip_order_count(bits: Bits) -> None:
    kind = bits.ue()
    if kind == 0:
        bits.ue()  # log2_max_pic_order_cnt_lsb_minus4
    elif kind == 1:
        bits.u(1)  # delta_pic_order_always_zero_flag
        bits.se()  # offset_for_non_ref_pic
        bits.se()  # offset_for_top_to_bottom_field
        for _ in range(bits.ue()):
            bits.se()


def _skip_vui(bits: Bits) -> None:
    """Skip VUI parameters up to bitstream_restriction_flag, section E.1.1."""
    if bits.u(1) and bits.u(8) == EXTENDED_SAR:
        bits.u(32)  # sar_width, sar_height
    if bits.u(1):
        bits.u(1)  # overscan_appropriate_flag
    if bits.u(1):
        bits.u(4)  # video_format, video_full_range_flag
        if bits.u(1):
            bits.u(24)  # colours
    if bits.u(1):
        bits.ue()  # chroma_sample_loc_type_top_field
        bits.ue()  # chroma_sample_loc_type_bottom_field
    if bits.u(1):
        bits.u(65)  # num_units_in_tick, time_scale, fixed_frame_rate_flag
    buffered = False
    for _ in range(2):  # nal_hrd, vcl_hrd
        if bits.u(1):
            _skip_hrd(bits)
            buffered = True
    bits.u(1 + buffered)  # low_delay_hrd_flag, pic_struct_present_flag


def _skip_hrd(bits: Bits) -> None:
    count = bits.ue() + 1
    bits.u(8)  # bit_rate_scale, cpb_size_scale
    for _ in range(count):
        bits.ue()  # bit_rate_value_minus1
        bits.ue()  # cpb_size_value_minus1
        bits.u(1)  # cbr_flag
    bits.u(20)  # lengths of delays and of time_offset


def _reordered(bits: Bits) -> int:
    """Return max_num_reorder_frames, behind bitstream_restriction_flag."""
    bits.u(1)  # motion_vectors_over_pic_boundaries_flag
    for _ in range(4):  # max_bytes_per_pic_denom to log2_max_mv_length_vertical
        bits.ue()
    return bits.ue()


def recovery_frames(nal: bytes) -> int | None:
    """Return recovery_frame_cnt of an SEI unit: the number of pictures until all of the picture is
    correct. None without a recovery point."""
    data, at = nal[1:SEI_MOST].replace(b"\0\0\3", b"\0\0"), 0
    while at + 2 < len(data):  # the trailing bits are a byte
        kind, at = _number(data, at)
        size, at = _number(data, at)
        if kind == RECOVERY_POINT:
            try:
                return Bits(data[at : at + size]).ue()
            except ValueError:
                return None
        at += size
    return None


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Read a type or size: bytes of 255, and a last one. Return it, and the position behind it."""
    value = 0
    while at < len(data) and data[at] == 255:
        value, at = value + 255, at + 1
    return value + (data[at] if at < len(data) else 0), at + 1


def is_field(nal: bytes, shape: Shape) -> bool:
    """Return whether this slice belongs to a field, half the lines of a picture."""
    bits = Bits(nal[1:16].replace(b"\0\0\3", b"\0\0"))
    try:
        for _ in range(3):  # first_mb_in_slice, slice_type, pic_parameter_set_id
            bits.ue()
        bits.u(shape.number_bits)
        return shape.number_bits > 0 and bits.u(1) == 1
    except ValueError:
        return False


def is_b_slice(nal: bytes) -> bool:
    """Return whether this slice, of a NAL unit of type 1, 2 or 5, refers to later pictures."""
    bits = Bits(nal[1:16].replace(b"\0\0\3", b"\0\0"))
    try:
        bits.ue()  # first_mb_in_slice
        return bits.ue() in B_SLICES
    except ValueError:
        return False
