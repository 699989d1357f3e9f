"""Header of an mp4 with one H.264 track. Pure. Uses no library: PyAV costs 60 MB.

    ftyp moov(mvhd trak(tkhd mdia(mdhd hdlr minf(vmhd dinf stbl)))) mdat(samples)

ISO/IEC 14496-12 (boxes) and 14496-15 (avcC, length-prefixed NAL units). The index precedes the
samples. Players can therefore play and seek the file during the download, and its size is known
before its first byte. All samples must be known in advance: see mp4_export.py.

A chunk is a run of samples with the same parameter sets. Each set has its own sample description.
The sets also remain in the samples, for players that use only the first description.
"""

import itertools
import struct
import sys
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from fpvcar.runtime.units import SECOND_US
from fpvcar.runtime.workers import Rest, no_rest
from fpvcar.video import h264
from fpvcar.video.syntax import is_high, shape_of

EPOCH_S = 2_082_844_800
"""Offset from 1904, the mp4 epoch, to 1970."""
LARGE = 1 << 32
_MATRIX = struct.pack(">9I", 1 << 16, 0, 0, 0, 1 << 16, 0, 0, 0, 1 << 30)
SETS_MAX, SET_BYTES_MAX = 31, 65535
"""Limits of avcC: parameter sets of each kind, and bytes per set."""
SLICE = 4096
"""Table entries per step. array() blocks all other threads: with an hour's pictures it would
block the gate of a Pi Zero W for some 0.2 s."""


class ParameterSets(NamedTuple):
    """Parameter sets of a key frame."""

    sps: tuple[bytes, ...]
    pps: tuple[bytes, ...]


class Chunk(NamedTuple):
    """Consecutive samples; `description` counts from 1."""

    samples: int
    size: int
    description: int


def sets_of(nals: Sequence[bytes]) -> ParameterSets:
    """Return the parameter sets among the NAL units of a key frame."""
    by_kind = {
        kind: tuple(nal for nal in nals if nal[0] & 31 == kind) for kind in (h264.SPS, h264.PPS)
    }
    return ParameterSets(by_kind[h264.SPS], by_kind[h264.PPS])


def check(sets: ParameterSets) -> None:
    """Raise ValueError for parameter sets that mp4 cannot hold."""
    shape_of(sets.sps[0])
    most = max(map(len, (*sets.sps, *sets.pps)))
    if max(map(len, sets)) > SETS_MAX or most > SET_BYTES_MAX:
        raise ValueError(f"{len(sets.sps)} SPS, {len(sets.pps)} PPS, {most} bytes")


def sample_of(nals: Iterable[bytes]) -> bytes:
    """Convert an access unit to a sample: a length before each NAL unit, no delimiter."""
    return b"".join(
        part
        for nal in nals
        if nal[0] & 31 != h264.AUD
        for part in (len(nal).to_bytes(4, "big"), nal)
    )


@dataclass
class SampleIndex:
    """Index of the samples: size, duration and key frames.

    Uses some 12 bytes a sample: 1.3 MB an hour at 30 samples a second.
    """

    began_s: int = 0
    """UTC of the first picture."""
    sizes: "array[int]" = field(default_factory=lambda: array("I"))
    lengths_us: "array[int]" = field(default_factory=lambda: array("I"))
    """Durations of all samples; the last one is appended when it is known."""
    keys: "array[int]" = field(default_factory=lambda: array("I"))
    """Numbers of the key frames, from 1."""
    sets: dict[ParameterSets, int] = field(default_factory=dict)
    chunks: list[Chunk] = field(default_factory=list)
    media_bytes: int = 0

    def add(self, size: int, key: ParameterSets | None) -> None:
        """Add a sample. Pass `key` only for a key frame: its parameter sets, accepted by
        `check`."""
        self.sizes.append(size)
        self.media_bytes += size
        if key is None:
            last = self.chunks[-1]
            self.chunks[-1] = Chunk(last.samples + 1, last.size + size, *last[2:])
            return
        if key not in self.sets:
            self.sets[key] = len(self.sets) + 1
        self.keys.append(len(self.sizes))
        self.chunks.append(Chunk(1, size, self.sets[key]))

    @property
    def length_us(self) -> int:
        """Return the duration of all samples."""
        lengths = self.lengths_us
        return sum(sum(lengths[at : at + SLICE]) for at in range(0, len(lengths), SLICE))

    def head(self, rest: Rest = no_rest) -> bytes:
        """Encode all bytes before the first sample. Calls `rest` after every SLICE table
        entries."""
        large = self.media_bytes + 16 >= LARGE
        mdat = struct.pack(">I4s", 1, b"mdat") + (self.media_bytes + 16).to_bytes(8)
        if not large:
            mdat = struct.pack(">I4s", self.media_bytes + 8, b"mdat")
        brand = box(b"ftyp", b"isom", bytes([0, 0, 2, 0]), b"isomiso2avc1mp41")
        tables, count = self._tables(rest), len(self.chunks)
        at = len(brand) + len(self._moov(*tables, full(b"stco", 0, 0, _u32(count))))
        at += len(mdat) + 4 * count
        if large or at + self.media_bytes >= LARGE:
            large, at = True, at + 4 * count
        places = itertools.accumulate((chunk.size for chunk in self.chunks), initial=at)
        table = _table(itertools.islice(places, count), rest, "Q" if large else "I")
        offsets = full(b"co64" if large else b"stco", 0, 0, _u32(count), table)
        return brand + self._moov(*tables, offsets) + mdat

    def _moov(self, *tables: bytes) -> bytes:
        length = self.length_us
        width, height, *_ = shape_of(next(iter(self.sets)).sps[0])
        times = struct.pack(">2Q", *2 * [self.began_s + EPOCH_S])
        mvhd = full(
            b"mvhd",
            1,
            0,
            times,
            struct.pack(">IQ", SECOND_US, length),
            struct.pack(">IH10x", 1 << 16, 1 << 8),
            _MATRIX,
            bytes(24),
            struct.pack(">I", 2),
        )
        tkhd = full(
            b"tkhd",
            1,
            3,
            times,
            struct.pack(">I4xQ16x", 1, length),
            _MATRIX,
            struct.pack(">2I", width << 16, height << 16),
        )
        language = 0x55C4  # "und": undetermined
        mdhd = full(b"mdhd", 1, 0, times, struct.pack(">IQH2x", SECOND_US, length, language))
        hdlr = full(b"hdlr", 0, 0, bytes(4), b"vide", bytes(12), b"car\0")
        dref = full(b"dref", 0, 0, _u32(1), full(b"url ", 0, 1))
        minf = box(
            b"minf", full(b"vmhd", 0, 1, bytes(8)), box(b"dinf", dref), box(b"stbl", *tables)
        )
        trak = box(b"trak", tkhd, box(b"mdia", mdhd, hdlr, minf))
        return box(b"moov", mvhd, trak)

    def _tables(self, rest: Rest) -> list[bytes]:
        """Encode stbl without the chunk offsets, which depend on the size of the other tables."""
        described = [_avc1(sets) for sets in self.sets]
        runs = (
            (sum(1 for _ in same), length) for length, same in itertools.groupby(self.lengths_us)
        )
        layout = (
            (number, chunk.samples, chunk.description)
            for number, (before, chunk) in enumerate(
                zip([None, *self.chunks], self.chunks, strict=False), 1
            )
            if before is None or before[::2] != chunk[::2]
        )
        times = _table(itertools.chain.from_iterable(runs), rest)
        chunks = _table(itertools.chain.from_iterable(layout), rest)
        return [
            full(b"stsd", 0, 0, _u32(len(described)), *described),
            full(b"stts", 0, 0, _u32(len(times) // 8), times),
            full(b"stss", 0, 0, _u32(len(self.keys)), _table(self.keys, rest)),
            full(b"stsc", 0, 0, _u32(len(chunks) // 12), chunks),
            full(b"stsz", 0, 0, bytes(4), _u32(len(self.sizes)), _table(self.sizes, rest)),
        ]


def box(kind: bytes, *parts: bytes) -> bytes:
    """Encode a box of type `kind`."""
    return b"".join((_u32(8 + sum(map(len, parts))), kind, *parts))


def full(kind: bytes, version: int, flags: int, *parts: bytes) -> bytes:
    """Encode a box with version and flags."""
    return box(kind, _u32(version << 24 | flags), *parts)


def _avc1(sets: ParameterSets) -> bytes:
    sps, pps = sets
    width, height, chroma, *more = shape_of(sps[0])
    high = bytes([0xFC | chroma, *(0xF8 | bits for bits in more), 0])
    avcc = box(
        b"avcC",
        b"\1",
        sps[0][1:4],
        b"\xff",
        _counted(0xE0, sps),
        _counted(0, pps),
        high if is_high(sps[0]) else b"",
    )
    return box(
        b"avc1",
        bytes(6),
        struct.pack(">H16x", 1),
        struct.pack(">2H", width, height),
        struct.pack(">3IH32x2H", 72 << 16, 72 << 16, 0, 1, 24, 0xFFFF),
        avcc,
    )


def _counted(flags: int, nals: Sequence[bytes]) -> bytes:
    return bytes([flags | len(nals)]) + b"".join(len(nal).to_bytes(2, "big") + nal for nal in nals)


def _u32(value: int) -> bytes:
    return value.to_bytes(4, "big")


def _table(values: Iterable[int], rest: Rest, kind: str = "I") -> bytes:
    table, remaining = array(kind), iter(values)
    while part := array(kind, itertools.islice(remaining, SLICE)):
        table += part
        rest()
    if sys.byteorder == "little":
        table.byteswap()
    return table.tobytes()
