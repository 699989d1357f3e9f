"""Streams of foreign programs: each is shown, recorded and exported right, or refused in words that
name the property and the encoder's option."""

import io
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import av
import pytest
from testkit.cameras.video_source import encode
from testkit.hub import until
from testkit.mcaps import BEGAN_NS, McapFile

from fpvcar.recordings import codec, messages
from fpvcar.recordings.export.mp4_export import Mp4Export
from fpvcar.video import camera as video_camera
from fpvcar.video import faults, h264, syntax
from fpvcar.video.access_unit_records import AnnexBSplitter
from fpvcar.video.camera import Camera
from fpvcar.video.h264 import AccessUnit
from fpvcar.video.stream import Stream
from fpvcar.wire.camera import pack_record
from tests.unit.recordings.export.test_mp4_export import made, planned, said, shown
from tests.unit.video.test_camera import running
from tests.unit.video.test_syntax import without_vui

FRAMES = 40
HEVC = b"\0\0\0\1\x40\1\x0c\1\xff\xff"
"""Beginning of an H.265 stream: its VPS."""


def muxed(name: str, codec: str = "libx264") -> bytes:
    """Return a film in a container."""
    there = io.BytesIO()
    with av.open(there, "w", format=name) as container:
        stream = container.add_stream(codec, rate=30)
        assert isinstance(stream, av.VideoStream)
        stream.width, stream.height = 64, 64
        stream.pix_fmt = "yuvj420p" if codec == "mjpeg" else "yuv420p"
        for _ in range(8):
            container.mux(stream.encode(av.VideoFrame(64, 64, stream.pix_fmt)))
        container.mux(stream.encode(None))
    return there.getvalue()


def sets_once(units: Sequence[bytes]) -> list[bytes]:
    """Return the units with SPS and PPS before the first one only."""
    others = [
        [nal for nal in h264.nal_units(unit) if nal[0] & 31 not in (h264.SPS, h264.PPS)]
        for unit in units[1:]
    ]
    return [units[0], *(b"".join(b"\0\0\0\1" + nal for nal in nals) for nals in others)]


def no_vui(units: Sequence[bytes]) -> list[bytes]:
    """Return the units with an SPS that promises nothing about the order of pictures."""
    return [
        b"".join(
            b"\0\0\0\1" + (without_vui(nal) if nal[0] & 31 == h264.SPS else nal)
            for nal in h264.nal_units(unit)
        )
        for unit in units
    ]


REFUSED: dict[str, Callable[[], bytes]] = {
    "MPEG-TS": lambda: muxed("mpegts"),
    "MP4": lambda: muxed("mp4"),
    "Matroska": lambda: muxed("matroska"),
    "FLV": lambda: muxed("flv"),
    "AVI": lambda: muxed("avi"),
    "MJPEG": lambda: muxed("mjpeg", "mjpeg"),
    "IVF": lambda: b"DKIF" + bytes(40),
    "YUV4MPEG": lambda: b"YUV4MPEG2 W64 H64 F30:1\n" + bytes(400),
    "H.265": lambda: HEVC + bytes(300),
    "-bf 0": lambda: b"".join(encode(frames=12, b_frames=2)),
    "-g 30": lambda: b"".join(encode(FRAMES, gop=1000)[1:]),
    "Annex B": lambda: bytes(100_000),
}
"""Words of the refusal, and the stream."""
SHOWN: dict[str, Callable[[], Sequence[bytes]]] = {
    "intra refresh": lambda: encode(FRAMES, gop=10, refresh=True),
    "one IDR picture": lambda: encode(FRAMES, gop=1000),
    "parameter sets once": lambda: sets_once(encode(FRAMES, gop=10)),
    "two slices": lambda: encode(FRAMES, gop=10, slices=2),
    "delimiters": lambda: encode(FRAMES, gop=10, aud=True),
    "changed size": lambda: encode(20, gop=10) + encode(20, gop=10, width=320, height=240),
    "4:2:2": lambda: encode(FRAMES, gop=10, pixels="yuv422p"),
    "10 bits": lambda: encode(FRAMES, gop=10, pixels="yuv420p10le"),
    "interlaced frames": lambda: encode(FRAMES, gop=10, interlaced=True),
    "no VUI": lambda: no_vui(encode(FRAMES, gop=10)),
}
WARNED = {
    "one IDR picture": "ffmpeg: -g 30",
    "4:2:2": "ffmpeg: -pix_fmt yuv420p",
    "10 bits": "ffmpeg: -pix_fmt yuv420p",
    "interlaced frames": "ffmpeg: -vf yadif",
}


@pytest.mark.parametrize("words", REFUSED)
async def test_unusable_stream_is_refused_with_the_option(words: str, tmp_path: Path) -> None:
    film = tmp_path / "film"
    film.write_bytes(REFUSED[words]())
    units: list[AccessUnit] = []
    command = ["sh", "-c", 'cat "$0"; sleep 60', str(film)]
    async with running(Camera(command, False, silence_s=0.5), units.append) as camera:
        await until(lambda: camera.status.startswith("lost") and words in camera.status)
        assert "ffmpeg" in str(camera.state) or "H.264" in str(camera.state)
    assert words == "-bf 0" or not units


def split(stream: bytes, chunk: int) -> list[AccessUnit]:
    """Return the units of a plain program that writes chunks of this size."""
    splitter, units = AnnexBSplitter(), list[AccessUnit]()
    for at in range(0, len(stream), chunk):
        units += splitter.feed(stream[at : at + chunk], at)
    return units + splitter.idle()


@pytest.mark.parametrize("name", SHOWN)
def test_unusual_stream_is_recorded_and_exported_whole(name: str, tmp_path: Path) -> None:
    units = split(b"".join(SHOWN[name]()), 4093)
    assert len(units) == FRAMES and units[0].key
    coding = faults.CodingCheck()
    for number, unit in enumerate(units):
        coding.note(unit, number * 0.12)
    assert coding.refusal is None
    assert WARNED.get(name, "") in str(coding.warning) and bool(coding.warning) == (name in WARNED)
    assert not faults.foreign_format(units[0].data)
    recording = McapFile(said(tuple(unit.data for unit in units))).to(tmp_path / "a.mcap")
    film: Mp4Export = planned(recording)
    assert film.pictures == FRAMES and film.missing == []
    found = shown(made(film, tmp_path / "a.mp4"))
    times = [time for time, _, _ in found]
    assert len(found) == FRAMES and times == sorted(set(times))
    sizes = {(width, height) for _, width, height in found}
    assert sizes == ({(160, 128), (320, 240)} if name == "changed size" else {(160, 128)})


def held(units: Sequence[bytes]) -> int:
    """Return the number of pictures held by a decoder that obeys the SPS, as hardware does."""
    decoder = av.CodecContext.create("h264", "r")
    assert isinstance(decoder, av.VideoCodecContext)
    decoder.thread_count, decoder.options = 1, {"strict": "strict"}
    return next(count for count, unit in enumerate(units) if decoder.decode(av.Packet(unit)))


def test_decoder_holds_no_picture_of_a_stream_without_vui() -> None:
    units = no_vui(encode(FRAMES, gop=10))
    assert held(units) > 2
    assert held([unit.data for unit in split(b"".join(units), 4093)]) == 0


STALLED = encode(FRAMES, gop=FRAMES, noise=4)
BURST = 8
SECOND_US = 1_000_000
CLOCKS = {
    "stands still": FRAMES * [-SECOND_US],
    "jumps back": [*range(20), *range(-SECOND_US, 20 - SECOND_US)],
    "jumps ahead": [*range(-SECOND_US, 20 - SECOND_US), *range(2**50, 2**50 + 20)],
}
"""Stamps of a program's pictures, us from now."""


def pieces_of(name: str) -> list[bytes]:
    """Return the writes of a program whose pictures or clock stall."""
    now_us = time.monotonic_ns() // 1000
    stamps_us = [now_us + stamp_us for stamp_us in CLOCKS.get(name, FRAMES * [0])]
    records = list(map(pack_record, map(h264.is_key, STALLED), stamps_us, STALLED))
    writes = records if name in CLOCKS else STALLED
    return [b"".join(writes[at : at + BURST]) for at in range(0, FRAMES, BURST)]


def writing(pieces: Sequence[bytes], folder: Path) -> list[str]:
    """Return a program that writes these pieces, 0.1 s apart."""
    for number, piece in enumerate(pieces):
        (folder / f"piece-{number}").write_bytes(piece)
    script = 'for piece in "$0"/piece-*; do cat "$piece"; sleep 0.1; done; sleep 60'
    return ["sh", "-c", script, str(folder)]


@pytest.mark.parametrize("name", ["bursts", *CLOCKS])
async def test_stalled_pictures_are_recorded_and_exported_whole(name: str, tmp_path: Path) -> None:
    """No picture waits for a clock, and no time comes twice."""
    units: list[AccessUnit] = []
    command = writing(pieces_of(name), tmp_path)
    async with running(Camera(command, name in CLOCKS), units.append) as camera:
        await until(lambda: len(units) == FRAMES)
        assert camera.state == "ok"
    stamps_us = [unit.capture_us for unit in units]
    assert stamps_us == sorted(set(stamps_us)), "each time once"
    assert stamps_us[-1] <= time.monotonic_ns() // 1000
    pictures = [
        one._replace(
            data=codec.encode(messages.Picture(BEGAN_NS + 1000 * unit.capture_us, unit.data))
        )
        for one, unit in zip(said(tuple(unit.data for unit in units)), units, strict=True)
    ]
    film = planned(McapFile(pictures).to(tmp_path / "a.mcap"))
    assert film.pictures == FRAMES and film.missing == []


@pytest.mark.parametrize("waits", [False, True])
async def test_program_without_later_key_frames_is_restarted_for_a_viewer_that_waits(
    waits: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(video_camera, "KEYLESS_S", 0.2)
    camera = Camera(writing(pieces_of("bursts"), tmp_path), False)
    stream, units = Stream(camera), list[AccessUnit]()

    def take(unit: AccessUnit) -> None:
        units.append(unit)
        stream.publish(unit)

    async with running(camera, take):
        await until(lambda: len(units) > BURST)
        if waits:
            viewer = stream.add_viewer(lambda: False)
            await until(lambda: viewer.waiting)
        await until(lambda: len(units) >= FRAMES)
    assert sum(unit.key for unit in units) == 1 + waits
    assert ("ffmpeg: -g 30" in caplog.text) == waits


def test_recorded_pictures_of_one_time_are_exported_whole(tmp_path: Path) -> None:
    """Earlier versions recorded the pictures of a burst with one time."""
    units = encode(FRAMES, gop=FRAMES)
    picture = [codec.encode(messages.Picture(BEGAN_NS, unit)) for unit in units]
    recorded = [one._replace(data=data) for one, data in zip(said(units), picture, strict=True)]
    film = planned(McapFile(recorded).to(tmp_path / "a.mcap"))
    assert film.pictures == FRAMES and film.missing == []
    times = [time for time, _, _ in shown(made(film, tmp_path / "a.mp4"))]
    assert len(times) == FRAMES


@pytest.mark.parametrize(("field", "refused"), [(0, False), (1, True)])
def test_fields_are_refused(field: int, refused: bool) -> None:
    """x264 makes no fields: a slice header by hand, behind an SPS of interlaced frames."""
    first = encode(2, interlaced=True)[0]
    sps = next(nal for nal in h264.nal_units(first) if nal[0] & 31 == h264.SPS)
    number_bits = syntax.shape_of(sps).number_bits
    assert number_bits >= 4
    bits = f"1{'00110'}1{'0' * number_bits}{field}".ljust(40, "1")
    slice_ = b"\x65" + int(bits, 2).to_bytes(5, "big")
    coding = faults.CodingCheck()
    coding.note(
        AccessUnit(True, 0, b"\0\0\0\1" + sps + b"\0\0\1\x68\xce" + b"\0\0\1" + slice_), 0.0
    )
    assert ("-vf yadif" in str(coding.refusal)) == refused
