"""Parsing of a camera program's bytes, and the choice of program; without processes."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from testkit.cameras.video_source import decode, encode

from fpvcar import config
from fpvcar.config import profiles
from fpvcar.video import h264
from fpvcar.video.access_unit_records import BLOCK_BYTES, TRUSTED, AnnexBSplitter, RecordSplitter
from fpvcar.video.camera import argv_of
from fpvcar.video.h264 import AccessUnit
from fpvcar.wire.camera import pack_record

BENCH = Path(__file__).parents[3] / "hardware" / "bench.toml"


def test_records_are_parsed_from_any_chunks() -> None:
    units = encode(frames=6)
    data = b"".join(pack_record(h264.is_key(unit), at, unit) for at, unit in enumerate(units))
    for size in (1, 7, 5000, len(data)):
        records, got = RecordSplitter(), []
        for at in range(0, len(data), size):
            got += records.feed(data[at : at + size], 3)
        assert [unit.data for unit in got] == list(units)
        assert [unit.capture_us for unit in got] == [0, 1, 2, 3, 3, 3]
        assert records.idle() == []
    assert decode([unit.data for unit in got]) == len(units)


def test_plain_units_are_stamped_when_they_begin() -> None:
    one, two, three = encode(frames=3)
    plain = AnnexBSplitter()
    assert plain.idle() == []
    assert plain.feed(one[:100], 10) == []
    assert plain.feed(one[100:], 11) == []
    assert plain.feed(two, 20) == [AccessUnit(True, 10, one)]
    assert plain.idle() == [AccessUnit(False, 20, two)]
    assert plain.feed(three, 30) == []
    assert plain.idle() == [AccessUnit(False, 30, three)]


def test_torn_unit_lengthens_the_idle_time() -> None:
    one, two, *_ = encode(frames=3)
    plain = AnnexBSplitter()
    for expected_s in (0.004, 0.008, 0.016, 0.016):
        plain.feed(one[:-50], 0)
        plain.idle()
        plain.feed(one[-50:], 0)
        plain.feed(two, 0)
        assert plain.idle_s == expected_s
        plain.idle()
        assert plain.idle_s is None, "nothing to wait for"


def written(unit: bytes, block: int) -> list[bytes]:
    """Return the writes of a program with a buffer of `block` bytes, 0 for none."""
    step = block or len(unit)
    return [unit[at : at + step] for at in range(0, len(unit), step)]


def fed(splitter: AnnexBSplitter, reads: list[bytes]) -> list[list[bytes]]:
    """Return the units that each read has completed."""
    return [[unit.data for unit in splitter.feed(data, 0)] for data in reads]


def film(count: int, slices: int = 1, aud: bool = False) -> list[bytes]:
    """Return units of 6 to 10 kB."""
    units = encode(frames=12, slices=slices, aud=aud, noise=40)
    return list(units * (count // 12 + 1))[:count]


def trusting(units: list[bytes]) -> AnnexBSplitter:
    """Return a splitter that has learned that a program writes whole units."""
    splitter = AnnexBSplitter()
    for unit in units[:TRUSTED]:
        assert splitter.feed(unit, 0) == []
        assert [late.data for late in splitter.idle()] == [unit]
    return splitter


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([0, BLOCK_BYTES, 2 * BLOCK_BYTES]),
    st.sampled_from([(1, False), (4, False), (1, True)]),
    st.lists(st.integers(1, 9), min_size=1, max_size=40),
)
def test_unit_ends_with_its_last_write_once_proven(
    block: int, kind: tuple[int, bool], merged: list[int]
) -> None:
    """Reads may merge any writes. No unit is late, and none is cut."""
    units = film(90, *kind)
    splitter, total = trusting(units), sum(map(len, units[:TRUSTED]))
    units = units[TRUSTED:]
    writes = [(data, at) for at, unit in enumerate(units) for data in written(unit, block)]
    done: list[bytes] = []
    for count in merged:
        taken, writes = writes[:count], writes[count:]
        if not taken:
            break
        data, last = b"".join(piece for piece, _ in taken), taken[-1][1]
        total += len(data)
        done += fed(splitter, [data])[0]
        if writes and writes[0][1] == last:
            assert done == units[:last], "the last unit is still to be written"
        elif len(units[last]) % BLOCK_BYTES and len(data) % BLOCK_BYTES and total % BLOCK_BYTES:
            assert done == units[: last + 1]
        else:
            done += [unit.data for unit in splitter.idle()]
            assert done == units[: last + 1]


def test_unit_of_a_multiple_of_the_block_waits_for_silence() -> None:
    units = film(60)
    splitter = trusting(units)
    aligned = units[TRUSTED]
    aligned += b"\x55" * (-len(aligned) % BLOCK_BYTES)
    assert fed(splitter, [aligned]) == [[]]
    assert splitter.idle_s is not None
    assert [unit.data for unit in splitter.idle()] == [aligned]


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 9000), min_size=1, max_size=40))
def test_any_chunks_give_the_same_units_after_a_piece_of_one(sizes: list[int]) -> None:
    units = film(80, slices=4)
    splitter = AnnexBSplitter()
    reads = [units[0], units[1][:1000], units[1][1000:]]
    data, at = b"".join(units[2:]), 0
    for size in [*sizes * 5, len(data)]:
        reads.append(data[at : at + size])
        at += size
    got = [unit for done in fed(splitter, reads) for unit in done]
    assert got + [unit.data for unit in splitter.idle()] == units


@pytest.mark.parametrize("block", [BLOCK_BYTES, 8 * BLOCK_BYTES])
def test_full_buffer_of_a_program_ends_no_unit(block: int) -> None:
    """The silence lasts until the next picture fills the buffer: `ffmpeg -flush_packets 0`, and
    every program that prints by stdio without a flush."""
    units = film(60)
    splitter, got = AnnexBSplitter(), []
    for data in written(b"".join(units), block):
        got += [*splitter.feed(data, 0), *splitter.idle()]
    assert [unit.data for unit in got] == units
    assert splitter.idle_s is None, "the rest of the last one came by itself"


def test_program_that_begins_to_write_pieces_loses_one_unit() -> None:
    units = film(60)
    splitter = trusting(units)
    one, two, three, *_ = units[TRUSTED:]
    assert fed(splitter, [one]) == [[one]]
    assert fed(splitter, [two[:1000], two[1000:]]) == [[two[:1000]], []], "torn"
    assert fed(splitter, [three[:1000], three[1000:], one]) == [[], [], [three]]


def test_profile_chooses_the_program() -> None:
    profile = profiles.load(BENCH)
    words, framed = argv_of(profile, Path("/run/soc"))
    assert words[1:6] == ["-m", "fpvcar", "camera", "bench", "--soc=/run/soc"] and framed
    with pytest.raises(config.ConfigError, match="needs a bench"):
        argv_of(profile, None)
    for source, shown in (("bench", "world"), ("strip", "strip"), ("stamped",) * 2):
        profile = profiles.load(BENCH, [f'camera.source = "{source}"'])
        words, _ = argv_of(profile, Path("/run/soc"))
        assert f"--source={shown}" in words
        assert not any(word.startswith("--led") for word in words)
    profile = profiles.load(BENCH, ["rig.led = 11", 'camera.source = "strip"'])
    assert "--led=11" in argv_of(profile, Path("/run/soc"))[0]
    profile = profiles.load(BENCH, ['camera.command = ["rpicam-vid", "-o", "-"]'])
    assert argv_of(profile, None) == (["rpicam-vid", "-o", "-"], False)
    profile = profiles.load(BENCH, ['camera.source = "v4l2"', "camera.fps = 25"])
    words, framed = argv_of(profile, None)
    assert words[1:] == ["-m", "fpvcar.video.programs.webcam", "--fps=25.0"] and framed
    profile = profiles.load(BENCH, ['camera.source = "none"', 'gate.blind = "ignore"'])
    assert argv_of(profile, None) == ([], False)
