"""Video of one episode: copied, encoded again, or as JPEG pictures, on a grid of ticks.

av and numpy are of the extra `datasets`, and imported only when an episode is written.
"""

import importlib
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

from fpvcar.datasets.grid import Size, Ticks
from fpvcar.recordings.export.mp4 import ParameterSets, SampleIndex, check, sample_of, sets_of
from fpvcar.recordings.export.pictures import Frame
from fpvcar.recordings.mcap.parsing import RecordingError
from fpvcar.runtime.units import MIB, SECOND_NS, SECOND_US
from fpvcar.video import h264
from fpvcar.video.syntax import shape_of

NumberedFrames = Iterable[tuple[int, Frame]]
SAMPLES_MOST = 100
"""Most pictures of an episode that its statistics look at."""
SAMPLE_WIDTH = 160
GOP, CRF = 2, 23
"""Group of pictures and quality of encoded video. Random access needs a small group."""


def copy(frames: NumberedFrames, path: Path, size: Size, fps: int, began_ns: int) -> bool:
    """Write the frames unchanged as an mp4 of a constant rate.

    Returns False if one has another size; the file is then of no use. Raises OSError.
    """
    index, raw = SampleIndex(began_s=began_ns // SECOND_NS), path.with_suffix(".raw")
    try:
        with raw.open("wb") as file:
            for _, frame in frames:
                nals = h264.nal_units(frame.unit)
                sets = sets_of(nals) if frame.key else None
                if sets and not _fits(sets, size):
                    return False
                index.add(file.write(sample_of(nals)), sets)
        edges = (number * SECOND_US // fps for number in range(len(index.sizes) + 1))
        index.lengths_us.extend(after - before for before, after in pairwise(edges))
        with path.open("wb") as file, raw.open("rb") as samples:
            file.write(index.head())
            shutil.copyfileobj(samples, file, MIB)
        return True
    finally:
        raw.unlink()


def _fits(sets: ParameterSets, size: Size) -> bool:
    try:
        check(sets)
    except ValueError:
        return False
    return shape_of(sets.sps[0])[:2] == size


def decoded(frames: NumberedFrames) -> Iterator[tuple[int, Any]]:
    """Yield decoded frames (av.VideoFrame) with their numbers. A frame that cannot be decoded is
    missing."""
    av: Any = importlib.import_module("av")
    decoder = av.CodecContext.create("h264", "r")
    # Threads per slice only: those per frame hold many frames back.
    decoder.thread_type = "SLICE"
    for number, frame in frames:
        packet = av.Packet(frame.unit)
        packet.pts = packet.dts = number
        try:
            pictures = decoder.decode(packet)
        except av.error.InvalidDataError:
            continue
        yield from ((picture.pts, picture) for picture in pictures)
    yield from ((picture.pts, picture) for picture in decoder.decode(None))


def on_ticks(pictures: Iterable[tuple[int, Any]], ticks: Ticks) -> Iterator[Any]:
    """Yield the picture of each tick; instead of one that could not be decoded, the one before.

    Raises RecordingError if not even the first one can be decoded.
    """
    last, at = None, 0
    for number, picture in chain(pictures, [(ticks.frames[-1] + 1, None)]):
        while at < len(ticks.frames) and ticks.frames[at] < number:
            if last is None:
                raise RecordingError(f"frame {ticks.frames[at]} cannot be decoded")
            yield last
            at += 1
        last = picture


def encode(pictures: Iterable[Any], path: Path, size: Size, fps: int) -> None:
    """Write an H.264 mp4 with one picture per tick. Raises OSError."""
    av: Any = importlib.import_module("av")
    with av.open(str(path), "w", format="mp4") as file:
        stream = file.add_stream("libx264", rate=fps)
        stream.width, stream.height, stream.pix_fmt = size.width, size.height, "yuv420p"
        stream.codec_context.gop_size = GOP
        stream.options = {"crf": str(CRF), "preset": "veryfast", "bf": "0"}
        for number, picture in enumerate(pictures):
            scaled = picture.reformat(*size, format="yuv420p")
            frame = scaled if scaled is not picture else _copied(av, picture)
            frame.pts, frame.time_base = number, Fraction(1, fps)
            frame.pict_type = 0  # the encoder chooses
            file.mux(stream.encode(frame))
        file.mux(stream.encode(None))


def _copied(av: Any, picture: Any) -> Any:
    """Return a copy, as a tick that repeats a frame needs a time of its own."""
    return av.VideoFrame.from_ndarray(picture.to_ndarray(), format=picture.format.name)


def jpegs(pictures: Iterable[Any], size: Size) -> Iterator[bytes]:
    """Yield one JPEG per picture."""
    av: Any = importlib.import_module("av")
    codec = av.CodecContext.create("mjpeg", "w")
    codec.width, codec.height, codec.pix_fmt = *size, "yuvj420p"
    codec.time_base, codec.options = Fraction(1, 30), {"qmin": "2", "qmax": "4"}
    for number, picture in enumerate(pictures):
        frame = picture.reformat(*size, format="yuvj420p")
        if frame is picture:
            frame = _copied(av, picture)
        frame.pts = number
        yield from map(bytes, codec.encode(frame))


def sampled(path: Path, keys_only: bool) -> Iterator[Any]:
    """Yield some pictures of an mp4 as arrays of bytes [h, w, 3], evenly spread and scaled down.

    `keys_only` decodes key frames only, which is much faster.
    """
    av: Any = importlib.import_module("av")
    with av.open(str(path)) as file:
        stream = file.streams.video[0]
        spread = _spread(float(stream.duration * stream.time_base) / SAMPLES_MOST)
        if keys_only:  # of a hundred, not of all
            keys = (packet for packet in file.demux(stream) if packet.is_keyframe)
            packets = [packet for packet in keys if spread(float(packet.pts * packet.time_base))]
            pictures: Iterator[Any] = chain.from_iterable(map(stream.decode, [*packets, None]))
        else:
            pictures = (picture for picture in file.decode(stream) if spread(picture.time))
        for picture in pictures:
            width = min(SAMPLE_WIDTH, picture.width)
            height = max(1, picture.height * width // picture.width)
            yield picture.reformat(width, height, format="rgb24").to_ndarray()


def _spread(apart_s: float) -> Callable[[float], bool]:
    """Return a filter of times that passes one in each `apart_s`."""
    next_s = 0.0

    def takes(time_s: float) -> bool:
        nonlocal next_s
        if time_s < next_s:
            return False
        next_s = time_s + apart_s
        return True

    return takes


def statistics(rows: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Return LeRobot's statistics of a feature; `rows` are [rows, values]."""
    np: Any = importlib.import_module("numpy")
    array = np.asarray(rows)
    if array.dtype.kind == "f":
        array = array.astype(np.float32)  # as they are stored
    return _figures(np, array.astype(np.float64), len(rows))


def picture_statistics(pictures: Iterable[Any]) -> dict[str, Any]:
    """Return the statistics of pictures for each colour, in shares of full brightness."""
    np: Any = importlib.import_module("numpy")
    flat = [picture.reshape(-1, 3)[:: max(1, picture.size // 3000)] for picture in pictures]
    figures = _figures(np, np.concatenate(flat).astype(np.float64) / 255.0, len(flat))
    return {
        name: values if name == "count" else [[[value]] for value in values]
        for name, values in figures.items()
    }


def _figures(np: Any, rows: Any, count: int) -> dict[str, Any]:
    quantiles = {
        f"q{share:02d}": np.quantile(rows, share / 100, 0) for share in (1, 10, 50, 90, 99)
    }
    figures = {
        **{"min": rows.min(0), "max": rows.max(0), "mean": rows.mean(0), "std": rows.std(0)},
        **quantiles,
    }
    return {**{name: value.tolist() for name, value in figures.items()}, "count": [count]}


def merged(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the statistics of all episodes from those of each; quantiles are weighted means."""
    np: Any = importlib.import_module("numpy")
    counts = np.array([part["count"][0] for part in parts], np.float64)
    weights = counts / counts.sum()

    def values(name: str) -> Any:
        return np.array([part[name] for part in parts], np.float64)

    def mean(array: Any) -> Any:
        return np.tensordot(weights, array, 1)

    middle = mean(values("mean"))
    variance = mean(values("std") ** 2 + (values("mean") - middle) ** 2)
    figures = {"min": values("min").min(0), "max": values("max").max(0), "mean": middle}
    quantiles = {name: mean(values(name)) for name in parts[0] if name.startswith("q")}
    figures |= {"std": np.sqrt(variance), **quantiles}
    return {**{name: v.tolist() for name, v in figures.items()}, "count": [int(counts.sum())]}
