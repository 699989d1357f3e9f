"""Annex B splitter: any chunking, real x264 streams, torn units, garbage."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from testkit.cameras.video_source import decode, encode

from fpvcar.video import h264
from fpvcar.video.h264 import AnnexB, ParameterSets, begins_unit

C4 = b"\0\0\0\1"
C3 = b"\0\0\1"
SPS = C4 + b"\x67\x42\x00\x1e\x8c"
PPS = C4 + b"\x68\xce\x38"
AUD = C4 + b"\x09\x10"
SEI = C4 + b"\x06\x05\x01\x02\x80"
IDR = C4 + b"\x65\x88\x84"
P = C4 + b"\x41\x9a\x02"
P_SECOND = C3 + b"\x41\x1a\x02"
KEY = SPS + PPS + IDR


def split(data: bytes, sizes: list[int]) -> list[bytes]:
    """Return the units of `data`, fed in chunks of the given sizes and then the rest."""
    splitter, units, at = AnnexB(), [], 0
    for size in [*sizes, len(data)]:
        units += splitter.feed(data[at : at + size])
        at += size
    last = splitter.flush()
    return units + ([last] if last else [])


def variants() -> list[tuple[bytes, ...]]:
    return [encode(slices=slices, aud=aud) for slices in (1, 4) for aud in (False, True)]


def test_real_streams_byte_by_byte() -> None:
    for units in variants():
        data = b"".join(units)
        assert split(data, [1] * len(data)) == list(units)
        assert decode(units) == len(units)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 3), st.lists(st.integers(1, 3000), max_size=40))
def test_real_streams_in_any_chunks(which: int, sizes: list[int]) -> None:
    units = variants()[which]
    assert split(b"".join(units), sizes) == list(units)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 3), st.integers(0, 8000))
def test_splitter_starts_anywhere_in_a_stream(which: int, skipped: int) -> None:
    units = variants()[which]
    got = split(b"".join(units)[skipped:], [])
    want = list(units)[len(units) - len(got) :]
    assert len(got) >= 1
    assert got[1:] == want[1:]
    assert want[0].endswith(got[0])  # its head may be in the skipped part


def test_flush_returns_the_whole_unit() -> None:
    for units in variants():
        splitter = AnnexB()
        for unit in units:
            assert splitter.feed(unit) == []
            assert splitter.pending and splitter.begun
            assert splitter.flush() == unit
            assert not splitter.pending and not splitter.begun
        assert splitter.torn == 0


def test_flush_without_a_unit_returns_none() -> None:
    splitter = AnnexB()
    assert splitter.flush() is None
    splitter.feed(b"\0\0")
    assert splitter.flush() is None


def test_parameter_sets_alone_wait_for_their_idr() -> None:
    splitter = AnnexB()
    splitter.feed(SPS + PPS)
    assert splitter.flush() is None
    assert splitter.begun and not splitter.pending
    splitter.feed(IDR)
    assert splitter.flush() == KEY


def test_last_parameter_sets_go_in_front_of_every_key_frame() -> None:
    newer = C4 + b"\x67\x42\x00\x1f\x8c"
    sent = [KEY, IDR, AUD + SEI + IDR, newer + IDR, PPS + IDR]
    want = [KEY, KEY, AUD + SPS + PPS + SEI + IDR, newer + PPS + IDR]
    want.append(newer + PPS + IDR)
    splitter, got = AnnexB(), []
    for unit in sent:
        splitter.feed(unit)
        got.append(splitter.flush())
    assert got == want
    assert all(h264.is_key(unit) for unit in want)


def test_global_headers_are_repeated() -> None:
    sets, units = ParameterSets(), encode(repeat_headers=True)
    sets.ahead_of(units[0])
    bare = b"".join(C4 + nal for nal in h264.nal_units(units[5]) if nal[0] & 31 == 5)
    assert not h264.is_key(bare)
    assert h264.is_key(sets.ahead_of(bare))
    assert decode([sets.ahead_of(bare), units[6]]) == 2


def test_remembered_sets_are_bounded() -> None:
    sets = ParameterSets()
    for number in range(1, 250):
        sets.ahead_of(C4 + b"\x68" + (number << 16).to_bytes(4, "big"))
    kept = sets.ahead_of(IDR)
    assert h264.nal_types(kept).count(h264.PPS) <= h264.SETS_MAX
    assert ParameterSets().ahead_of(IDR) == IDR
    assert not h264.is_key(IDR)
    assert ParameterSets().ahead_of(C4 + b"\x67\x42") == C4 + b"\x67\x42"


def test_nal_type_decides_if_a_new_unit_begins() -> None:
    for opener in (AUD, SEI, SPS, PPS, C4 + b"\x0e\x01", C4 + b"\x12\x01", P):
        splitter = AnnexB()
        assert splitter.feed(KEY + opener + b"\x55") == [KEY]
    for follower in (P_SECOND, C4 + b"\x0a\x01", C4 + b"\x0c\xff", C4 + b"\x13\x88"):
        splitter = AnnexB()
        assert splitter.feed(KEY + follower + b"\x55") == []
        assert splitter.flush() == KEY + follower + b"\x55"


def test_zeros_between_units_are_dropped() -> None:
    assert split(KEY + b"\0\0\0\0" + P + b"\0" + P_SECOND, []) == [KEY, P + b"\0" + P_SECOND]


def test_flush_inside_a_unit_loses_its_tail_and_counts_it() -> None:
    splitter = AnnexB()
    splitter.feed(KEY + b"\x11")
    assert splitter.flush() == KEY + b"\x11"
    assert splitter.feed(b"\x22\x33" + P_SECOND + C3 + b"\x41\x9a") == []
    assert splitter.torn == 1
    assert splitter.flush() == b"\0\0\1\x41\x9a"


def test_flush_between_slices_loses_the_later_slices() -> None:
    splitter = AnnexB()
    splitter.feed(KEY)
    splitter.flush()
    assert splitter.feed(P_SECOND + b"\x77" * 9 + P) == []
    assert (splitter.torn, splitter.flush()) == (1, P)


def test_flush_inside_a_start_code_keeps_the_start_code() -> None:
    for cut in range(1, len(P) - 1):
        splitter = AnnexB()
        splitter.feed(KEY + P[:cut])
        assert splitter.flush() == KEY, cut
        splitter.feed(P[cut:])
        assert (splitter.flush(), splitter.torn) == (P, 0)


def test_unit_that_is_too_long_is_dropped() -> None:
    splitter = AnnexB(most=100)
    assert splitter.feed(KEY + b"\x11" * 100) == []
    assert splitter.dropped == 1
    for _ in range(50):
        splitter.feed(b"\x11" * 100)
        assert len(splitter._buffer) < 210
    assert splitter.feed(P + KEY) == [P]
    assert splitter.flush() == KEY
    assert splitter.feed(P + b"\x11" * 100 + P) == []
    assert (splitter.dropped, splitter.torn) == (2, 0)
    assert splitter.flush() == P


def test_nal_types_and_key_frames_are_recognised() -> None:
    assert h264.nal_types(AUD + KEY + P_SECOND) == [9, 7, 8, 5, 1]
    assert h264.nal_types(b"") == []
    assert h264.is_key(KEY) and h264.is_key(AUD + KEY)
    for other in (P, SPS + IDR, SPS + PPS, SPS + PPS + P + IDR, b"", SPS + C3):
        assert not h264.is_key(other)


def test_recovery_point_starts_a_picture() -> None:
    """After its first picture an intra refresh has no IDR."""
    units = split(b"".join(encode(frames=40, gop=10, refresh=True, repeat_headers=False)), [])
    keys = [number for number, unit in enumerate(units) if h264.is_key(unit)]
    assert keys == [] and not h264.is_gradual(b""), "its parameter sets are not in the stream"
    units = split(b"".join(encode(frames=40, gop=10, refresh=True)), [])
    keys = [number for number, unit in enumerate(units) if h264.is_key(unit)]
    assert keys == [0, 10, 20, 30]
    assert [h264.is_gradual(units[number]) for number in keys] == [False, True, True, True]
    assert decode(units[20:]) >= 10, "from the tenth on whole"
    only_once = [units[0], *(without_sets(unit) for unit in units[1:])]
    again = split(b"".join(only_once), [])
    assert [h264.nal_units(unit) for unit in again] == [h264.nal_units(unit) for unit in units]


def without_sets(unit: bytes) -> bytes:
    nals = [nal for nal in h264.nal_units(unit) if nal[0] & 31 not in (h264.SPS, h264.PPS)]
    return b"".join(C4 + nal for nal in nals)


@pytest.mark.parametrize(
    ("sei", "frames"),
    [
        ("060601", None),
        ("0606018080", 0),
        ("06060209c480", 18),
        ("0601020102060209c480", 18),
        ("06ff010201", None),
        ("06060100000080", None),
        ("06", None),
        ("0605ff", None),
    ],
)
def test_recovery_point_is_found_among_sei_messages(sei: str, frames: int | None) -> None:
    assert h264.recovery_frames([bytes.fromhex(sei)]) == frames


pieces = st.sampled_from([SPS, PPS, AUD, SEI, IDR, P, P_SECOND, C3, C4, b"\0", b"\1"])


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(pieces, st.binary(max_size=30), st.none()), max_size=60))
def test_arbitrary_bytes_and_flushes_give_valid_units(feeds: list[bytes | None]) -> None:
    splitter, units = AnnexB(most=64), []
    for feed in feeds:
        if feed is None:
            unit = splitter.flush()
            units += [unit] if unit else []
        else:
            units += splitter.feed(feed)
        assert len(splitter._buffer) <= 64 + 4
    for unit in units:
        assert unit.startswith((C3, C4))
        assert unit[-1] != 0
        assert {1, 2, 5} & set(h264.nal_types(unit))
        h264.is_key(unit)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_garbage_before_a_stream_does_not_matter_for_long(garbage: bytes) -> None:
    units = variants()[0]
    got = split(garbage + b"".join(units), [7] * 20)
    assert got[-(len(units) - 1) :] == list(units)[1:]


@pytest.mark.parametrize(
    ("start", "begins"),
    [
        ("0000000109f0", True),
        ("000000016580", True),
        ("000000016540", False),
        ("00000165", False),
        ("0123456789", False),
    ],
    ids=["delimiter", "first slice", "second slice", "too short", "no start code"],
)
def test_start_of_an_access_unit_is_known_by_its_first_bytes(start: str, begins: bool) -> None:
    assert begins_unit(bytes.fromhex(start)) is begins
