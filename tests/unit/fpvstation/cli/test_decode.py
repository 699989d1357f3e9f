"""Decoded pictures of a session: selection, times, and the effect of damage."""

import io
from pathlib import Path

import av
import pytest
from testkit import mcaps
from testkit.cameras.video_source import encode
from testkit.mcaps import McapFile
from testkit.recordings import NAME

from fpvcar.recordings.export import export
from fpvcar.recordings.export.pictures import Frame
from fpvcar.runtime.units import SECOND_NS
from fpvstation.cli import decode
from fpvstation.cli.decode import PAUSE_MOST_NS, Picture


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Write two files of a session, one second each."""
    made = []
    for number in (1, 2):
        begins_ns = mcaps.BEGAN_NS + number * SECOND_NS
        path = tmp_path / NAME.replace("0001", f"{number:04d}")
        made.append(McapFile([*mcaps.pictures(1.0, begins_ns)]).to(path))
    return made


def of_the_film(files: list[Path], out: Path) -> bytes:
    """Return the same pictures from the exported film, read by PyAV."""
    assert export.run("mp4", out, files, False) == 0
    with av.open(str(out)) as film:
        return b"".join(
            one.reformat(format=decode.FORM).to_ndarray().tobytes() for one in film.decode(video=0)
        )


def test_raw_pictures_equal_those_of_the_film(files: list[Path], tmp_path: Path) -> None:
    out, said = io.BytesIO(), list[str]()
    report = export.Report(said.append)
    count = decode.write(out, files, report, False)
    assert report.status(partial=False) == 0
    assert count == 2 * mcaps.FPS
    assert out.getvalue() == of_the_film(files, tmp_path / "film.mp4")
    assert said == [f"-f rawvideo -pixel_format {decode.FORM} -video_size 160x128"]


def test_raw_pictures_continue_in_a_file_without_key_frame(tmp_path: Path) -> None:
    pictures = list(mcaps.pictures(2.0, gop=1000))
    files = [
        McapFile(pictures[:30]).to(tmp_path / "a.mcap"),
        McapFile(pictures[30:], segment=2, sequence_from=30).to(tmp_path / "b.mcap"),
    ]
    report = export.Report(lambda words: None)
    assert decode.write(io.BytesIO(), files, report, False) == len(pictures)


def test_raw_of_a_damaged_file_exits_3_unless_partial(files: list[Path], tmp_path: Path) -> None:
    made = McapFile([*mcaps.pictures(3.0, gop=15)])
    bad = mcaps.flipped(tmp_path / "bad.mcap", made.chunks(), 2)
    report = export.Report(lambda words: None)
    assert decode.write(io.BytesIO(), [*files, bad], report, False)
    assert (report.status(partial=False), report.status(partial=True)) == (3, 0)


def test_undecodable_unit_is_left_out() -> None:
    units = encode(10)
    whole = [Frame(n * SECOND_NS, n == 0, one) for n, one in enumerate(units)]
    bad = [*whole[:5], Frame(5 * SECOND_NS, False, b"\0\0\0\1\x41\xff"), *whole[5:]]
    lost = list[str]()
    assert len(list(decode.decoded(bad, lost.append))) == 10
    assert lost == ["1 unit could not be decoded"]
    assert len(list(decode.decoded(whole))) == 10
    assert list(decode.decoded([])) == []


def test_pictures_have_the_size_of_the_first() -> None:
    """A grown-up changed the size in between; raw video cannot signal a change."""
    units = [*encode(3), *encode(3, width=320, height=192), *encode(3)]
    frames = [Frame(n * SECOND_NS, n % 3 == 0, one) for n, one in enumerate(units)]
    shown = list(decode.decoded(frames))
    assert {one[1:3] for one in shown} == {(160, 128)} and len(shown) == 9
    assert {len(one.data) for one in shown} == {160 * 128 * 3 // 2}


def test_long_pause_is_cut_and_backward_clock_jump_is_no_pause() -> None:
    unit = encode(1)[0]
    at_s = (100, 101, 5000, 3, 5001)
    shown = decode.decoded(Frame(one * SECOND_NS, True, unit) for one in at_s)
    second, most = SECOND_NS, PAUSE_MOST_NS
    assert [one.at_ns for one in shown] == [
        0,
        second,
        second + most,
        second + most,
        2 * second + most,
    ]


def test_pictures_are_paced_and_late_ones_shown_at_once() -> None:
    now_ns, slept = [7 * SECOND_NS], list[float]()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now_ns[0] += round(seconds * SECOND_NS)

    shown = [Picture(at * SECOND_NS // 2, 0, 0, b"") for at in range(5)]
    for number, _ in enumerate(decode.paced(shown, lambda: now_ns[0], sleep)):
        if number == 1:  # its reader stands still
            now_ns[0] += SECOND_NS
    assert slept == [0.5, 0.5]
