"""Exported films, read back by players, equal the recording for any layout of files."""

import itertools
import math
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import av
import pytest
from testkit import mcaps
from testkit.cameras.video_source import encode
from testkit.mcaps import BEGAN_NS, FRAME_NS, Logged, McapFile

from fpvcar.recordings import codec, messages, reader
from fpvcar.recordings.export import mp4
from fpvcar.recordings.export.mp4_export import Mp4Export, TimeRange
from fpvcar.recordings.export.pictures import LeftOut
from fpvcar.recordings.export.thumbnail import first_picture
from fpvcar.recordings.mcap.parsing import RecordingError
from fpvcar.recordings.reader import EVER_NS, Recording
from fpvcar.runtime.units import SECOND_NS
from fpvcar.video import h264


def opened(*paths: Path) -> Callable[[], Iterator[Recording]]:
    def each() -> Iterator[Recording]:
        for path in paths:
            with reader.read(path) as recording:
                yield recording

    return each


def planned(*paths: Path, start_ns: int = 0, end_ns: int = EVER_NS) -> Mp4Export:
    film = Mp4Export(opened(*paths), TimeRange(start_ns, end_ns))
    for _ in film.plan():
        pass
    return film


def made(film: Mp4Export, path: Path) -> Path:
    path.write_bytes(b"".join(film.pieces()))
    assert path.stat().st_size == film.size, "the size that was promised"
    return path


def shown(path: Path) -> list[tuple[float, int, int]]:
    """Return time, width and height of each decoded picture."""
    with av.open(str(path)) as found:
        return [
            (round(frame.time or 0.0, 4), frame.width, frame.height)
            for frame in found.decode(video=0)
        ]


def said(units: tuple[bytes, ...], start_ns: int = BEGAN_NS) -> list[Logged]:
    """Return a recorded film of these units."""
    times = (start_ns + number * FRAME_NS for number in range(len(units)))
    return [
        Logged(
            at_ns,
            messages.CAMERA,
            codec.encode(messages.Picture(at_ns, unit)),
            h264.is_key(unit),
            at_ns,
        )
        for at_ns, unit in zip(times, units, strict=True)
    ]


def test_file_that_begins_at_a_recovery_point_is_exported_whole(tmp_path: Path) -> None:
    """Only the first file of an intra refresh has an IDR picture."""
    units = encode(frames=50, gop=10, refresh=True)
    path = McapFile(said(units[20:])).to(tmp_path / "a.mcap")
    film = planned(path)
    assert film.pictures == 30 and film.missing == []
    assert len(shown(made(film, tmp_path / "a.mp4"))) >= 20, "whole after ten pictures"


def test_size_change_within_the_film_is_shown(tmp_path: Path) -> None:
    sizes: tuple[dict[str, int], ...] = ({}, {"width": 320, "height": 240}, {})
    paths = [
        McapFile(
            said(encode(30, gop=10, **size), BEGAN_NS + n * SECOND_NS), n + 1, sequence_from=30 * n
        ).to(tmp_path / f"{n}.mcap")
        for n, size in enumerate(sizes)
    ]
    film = planned(*paths)
    found = shown(made(film, tmp_path / "film.mp4"))
    shapes = [shape for shape, _ in itertools.groupby(one[1:] for one in found)]
    assert shapes == [(160, 128), (320, 240), (160, 128)]
    assert len(found) == film.pictures == 90 and film.missing == []


def test_head_precedes_data_and_has_creation_time(tmp_path: Path) -> None:
    path = McapFile(list(mcaps.pictures(2.0))).to(tmp_path / "a.mcap")
    out = made(planned(path), tmp_path / "film.mp4")
    kinds, data, at = list[bytes](), out.read_bytes(), 0
    while at < len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        kinds.append(kind)
        at += size
    assert kinds == [b"ftyp", b"moov", b"mdat"]
    asked = ("-show_entries", "format_tags=creation_time", "-of", "csv=p=0")
    done = subprocess.run(
        ["ffprobe", "-v", "error", *asked, out], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.startswith("2025-11-21T20:00:00") and not done.stderr


@pytest.mark.parametrize(("from_s", "to_s"), [(1.0, 3.0), (1.25, 2.9), (0.0, 0.5)])
def test_stretch_begins_with_the_key_frame_before_it(
    tmp_path: Path, from_s: float, to_s: float
) -> None:
    """Key frames come every third of a second; files every two seconds."""
    pictures = list(mcaps.pictures(4.0))
    paths = mcaps.two_files(tmp_path, pictures)
    start_ns = BEGAN_NS + round(from_s * SECOND_NS)
    end_ns = BEGAN_NS + round(to_s * SECOND_NS)
    film = planned(*paths, start_ns=start_ns, end_ns=end_ns)
    times = [
        number * FRAME_NS
        for number in range(120)
        if number // 10 * 10 >= (start_ns - BEGAN_NS) // FRAME_NS // 10 * 10
        and number * FRAME_NS + 15_000_000 <= end_ns - BEGAN_NS
    ]
    found = [at_s for at_s, *_ in shown(made(film, tmp_path / "film.mp4"))]
    assert found == [round((at - times[0]) / SECOND_NS, 4) for at in times]
    assert [str(text) for text in film.missing] == []


@pytest.mark.parametrize(
    ("sequence_from", "start_s", "count"),
    [(60, 0.0, 120), (61, 0.0, 60), (30, 0.0, 60), (60, 2.0, 120), (60, 2.5, 0)],
)
def test_file_without_key_frame_continues_the_file_before_it(
    tmp_path: Path, sequence_from: int, start_s: float, count: int
) -> None:
    """A camera with rare key frames makes such files; a lost picture between them ends the film."""
    pictures = list(mcaps.pictures(4.0, gop=120))
    paths = mcaps.two_files(tmp_path, pictures, sequence_from)
    film = planned(*paths, start_ns=BEGAN_NS + round(start_s * SECOND_NS))
    assert film.pictures == count
    assert film.left_out.count == {120: 0, 60: 60, 0: 45}[count]
    assert [one.frame.key for one in film._shown(LeftOut())].count(True) == bool(count)


def test_left_out_pictures_are_counted_before_first_byte(tmp_path: Path) -> None:
    mcap_file = McapFile(list(mcaps.pictures(4.0, gop=45)))
    path = mcaps.flipped(tmp_path / "bad.mcap", mcap_file.chunks(), 2)
    film = planned(path, path)
    assert [str(text) for text in film.missing] == [
        "60 pictures are left out: no key frame leads up to them",
        "60 pictures are left out: their time is in it already",
    ]
    assert len(shown(made(film, tmp_path / "film.mp4"))) == film.pictures == 60


@pytest.mark.parametrize("overlap", [1, 4, 9, 10, 15])
def test_overlapping_files_continue_with_a_key_frame(tmp_path: Path, overlap: int) -> None:
    """The second file's first key frame is of a time that is in the film already; its dependent
    pictures would be shown broken."""
    first, second = encode(30, gop=10), encode(30, gop=10, noise=100)
    late_ns = BEGAN_NS + (30 - overlap) * FRAME_NS
    one = McapFile(said(first)).to(tmp_path / "a.mcap")
    two = McapFile(said(second, late_ns), segment=2, sequence_from=30)
    film = planned(one, two.to(tmp_path / "b.mcap"))
    waits = -overlap % 10
    assert (film.left_out.doubled, film.left_out.count) == (overlap, waits)
    assert film.pictures == 60 - overlap - waits
    taken = [one.frame.unit for one in film._shown(LeftOut())]
    assert taken == [*first, *second[overlap + waits :]]
    assert h264.is_key(taken[30])
    assert len(shown(made(film, tmp_path / "film.mp4"))) == film.pictures


def test_key_frame_with_cut_sps_is_left_out_with_its_group(tmp_path: Path) -> None:
    units = list(encode(30, gop=10))
    sps = h264.nal_units(units[10])[0]
    assert sps[0] & 31 == h264.SPS
    units[10] = units[10].replace(sps, sps[:5])
    path = McapFile(said(tuple(units))).to(tmp_path / "a.mcap")
    film = planned(path)
    assert film.left_out.count == 10
    assert len(shown(made(film, tmp_path / "film.mp4"))) == 20


def test_file_changed_after_the_plan_ends_the_film(tmp_path: Path) -> None:
    path = McapFile(list(mcaps.pictures(3.0))).to(tmp_path / "a.mcap")
    film = planned(path)
    McapFile(list(mcaps.pictures(2.0))).to(path)
    with pytest.raises(RecordingError, match="deleted meanwhile"):
        list(film.pieces())
    McapFile(said(encode(90, gop=10, noise=100))).to(path)
    with pytest.raises(RecordingError, match="changed meanwhile"):
        list(film.pieces())


def test_growing_file_gives_the_promised_length(tmp_path: Path) -> None:
    pictures = list(mcaps.pictures(3.0))
    path = McapFile(pictures[:60], closed=False).to(tmp_path / "a.mcap.part")
    film = planned(path)
    McapFile(pictures).to(path)
    assert len(shown(made(film, tmp_path / "film.mp4"))) == film.pictures == 60


def test_film_above_4_gib_has_64_bit_offsets() -> None:
    sets = mp4.sets_of(h264.nal_units(encode(1)[0]))
    index, small = mp4.SampleIndex(), mp4.SampleIndex()
    for number in range(5):
        index.add(1 << 30, sets)
        small.add(1 << 10, sets)
        index.lengths_us.append(40_000)
        small.lengths_us.append(40_000 + number)
    head = index.head()
    assert b"stco" not in head and b"co64" not in small.head()
    assert head.endswith(struct.pack(">I4sQ", 1, b"mdat", (5 << 30) + 16))
    at = head.index(b"co64") + 12
    assert struct.unpack_from(">5Q", head, at) == tuple(
        len(head) + (number << 30) for number in range(5)
    )
    at = small.head().index(b"stco") + 12
    assert struct.unpack_from(">2I", small.head(), at) == (
        len(small.head()),
        len(small.head()) + 1024,
    )


def test_index_of_an_hour_is_built_once_in_slices(tmp_path: Path) -> None:
    """Building a table in one call would keep the interpreter from the gate."""
    sets = mp4.sets_of(h264.nal_units(encode(1)[0]))
    index, rests = mp4.SampleIndex(), list[int]()
    for number in range(108_000):
        index.add(5000 + number % 7, None if number % 30 else sets)
        index.lengths_us.append(33_333 + number % 2)
    head = index.head(lambda: rests.append(1))
    entries = {b"stts": 2 * 108_000, b"stsz": 108_000, b"stss": 3600, b"stco": 3600, b"stsc": 3}
    assert len(rests) == sum(math.ceil(one / mp4.SLICE) for one in entries.values())
    assert len(rests) > 70
    for kind, many in entries.items():
        at = head.index(kind) + (12 if kind == b"stsz" else 8)
        per = {b"stts": 2, b"stsc": 3}.get(kind, 1)
        assert struct.unpack_from(">I", head, at) == (many // per,)
    at = head.index(b"stts") + 12
    assert struct.unpack_from(">216000I", head, at)[1::2] == tuple(index.lengths_us)
    at = head.index(b"stsz") + 16
    assert struct.unpack_from(">108000I", head, at) == tuple(index.sizes)
    at = head.index(b"stco") + 12
    assert struct.unpack_from(">I", head, at) == (len(head),)


def test_plan_rests_while_it_writes_the_index(tmp_path: Path) -> None:
    path = McapFile(list(mcaps.pictures(1.0))).to(tmp_path / "a.mcap")
    rests = list[int]()
    film = Mp4Export(opened(path), rest=lambda: rests.append(film.size))
    for _ in film.plan():
        assert not rests
    assert rests == [0] * 5, "for each table, before the head is there"


def test_film_without_pictures_is_empty(tmp_path: Path) -> None:
    film = planned(McapFile(list(mcaps.measured(1.0))).to(tmp_path / "blind.mcap"))
    assert (film.size, film.pictures, film.seconds) == (0, 0, 0.0)


# --- the first picture of a file, or of a drive in the middle of it ---


def test_late_camera_start_still_gives_a_thumbnail(tmp_path: Path) -> None:
    """The camera starts half a minute after the recorder, for example on a slow board."""
    film = mcaps.pictures(1.0, BEGAN_NS + 30 * SECOND_NS)
    path = McapFile([*mcaps.measured(31.0), *film]).to(tmp_path / "late.mcap")
    found = first_picture(path)
    assert found and found.capture_ns == BEGAN_NS + 30 * SECOND_NS


@pytest.mark.parametrize(
    ("from_s", "number"), [(0.0, 0), (0.1, 10), (0.9, 30), (2.5, 80), (4.0, None)]
)
def test_first_key_frame_from_a_moment_on(
    tmp_path: Path, from_s: float, number: int | None
) -> None:
    """Key frames come every ten pictures; the file begins with the first."""
    path = McapFile(list(mcaps.pictures(4.0))).to(tmp_path / "a.mcap")
    found = first_picture(path, from_s)
    wanted = None if number is None else BEGAN_NS + number * FRAME_NS
    assert (found.capture_ns if found else None) == wanted
