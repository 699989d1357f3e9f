"""Parsing of a camera program's bytes, and the choice of program; without processes."""

from pathlib import Path

import pytest

from fpvcar import config
from fpvcar.config import profiles
from fpvcar.video import h264
from fpvcar.video.access_unit_records import AnnexBSplitter, RecordSplitter
from fpvcar.video.camera import argv_of
from fpvcar.video.h264 import AccessUnit
from fpvcar.wire.camera import pack_record
from tests.support.cameras.video_source import decode, encode

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
        plain.idle()
        assert plain.idle_s == expected_s


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
