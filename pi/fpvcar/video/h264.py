"""Annex B bytes -> whole access units. Pure; restartable at any byte.

    bytes in any chunks -> AnnexB.feed() -> access units that a later one has closed
                           AnnexB.flush() -> the open one, when the pipe falls silent

Numbers are those of ITU-T H.264: NAL unit types in table 7-1, the start of an access unit in
7.4.1.2.3, start codes in annex B. No library is used: PyAV would cost `run` 60 MB, and its parser
holds a frame until the next one begins.
"""

from msgspec import Struct

from fpvcar.video import syntax
from fpvcar.wire.video import UNIT_MAX_BYTES

IDR, SEI, SPS, PPS, AUD = 5, 6, 7, 8, 9
SLICES = frozenset({1, 2, IDR})
"""NAL units that begin with first_mb_in_slice (2: data partition A)."""
OPENERS = frozenset({SEI, SPS, PPS, AUD, *range(14, 19)})
"""NAL units that, after a slice, begin the next access unit."""
START_CODE = b"\0\0\1"
SLICE_HEAD = 16
"""Bytes of a slice with the fields that are read."""
SETS_MAX = 64
"""Limit of stored parameter sets; a camera has two."""


class AccessUnit(Struct, frozen=True, gc=False):
    """Encoded picture. `capture_us` is CLOCK_MONOTONIC; `data` is Annex B.

    A key unit has its SPS and PPS in front: a decoder can start there, at an IDR picture or at a
    recovery point.
    """

    key: bool
    capture_us: int
    data: bytes


def nal_units(unit: bytes) -> list[bytes]:
    """Return the NAL units of Annex B bytes, without start codes and trailing zeros."""
    parts = unit.split(START_CODE)[1:]
    return [nal for part in parts if (nal := part.rstrip(b"\0"))]


def nal_types(unit: bytes) -> list[int]:
    """Return the types of the NAL units of an access unit, in order."""
    return [nal[0] & 31 for nal in nal_units(unit)]


def lead_of(unit: bytes) -> list[bytes]:
    """Return the NAL units up to the first slice, that one cut to its header's first bytes."""
    lead: list[bytes] = []
    at = unit.find(START_CODE)
    while 0 <= at < len(unit) - 3:
        at += len(START_CODE)
        if unit[at] & 31 in SLICES:
            return [*lead, unit[at : at + SLICE_HEAD]]
        end = unit.find(START_CODE, at)
        lead.append(unit[at : end if end >= 0 else len(unit)].rstrip(b"\0") or b"\0")
        at = end
    return lead


def is_key(unit: bytes) -> bool:
    """Return whether a decoder can start here: at an IDR picture or a recovery point, with SPS and
    PPS before it."""
    lead = lead_of(unit)
    kinds = {nal[0] & 31 for nal in lead}
    if not {SPS, PPS} <= kinds or kinds.isdisjoint(SLICES):
        return False
    return IDR in kinds or recovery_frames(lead) is not None


def recovery_frames(nals: list[bytes]) -> int | None:
    """Return the number of pictures after this one until all of the picture is correct; None
    unless it is a recovery point."""
    counts = (syntax.recovery_frames(nal) for nal in nals if nal[0] & 31 == SEI)
    return next((count for count in counts if count is not None), None)


def is_gradual(unit: bytes) -> bool:
    """Return whether a decoder that starts at this key unit has a whole picture only later: an
    intra refresh."""
    lead = lead_of(unit)
    return lead != [] and lead[-1][0] & 31 != IDR and bool(recovery_frames(lead))


def _opens(data: bytes | bytearray, at: int) -> bool:
    """Return whether the NAL unit of the start code at `at` begins an access unit after a slice."""
    kind = data[at + 3] & 31
    # first_mb_in_slice is ue(v): 0 is the single bit 1.
    return kind in OPENERS or (kind in SLICES and data[at + 4] >= 0x80)


def begins_unit(data: bytes) -> bool:
    """Return whether these bytes, after a whole access unit, begin the next one."""
    at = data.find(START_CODE, 0, 4)
    return 0 <= at < len(data) - 4 and _opens(data, at)


class ParameterSets:
    """Store of the last SPS and PPS of each id; inserts them before key frames.

    Each SPS promises pictures in order: see `syntax.in_order`.
    """

    def __init__(self) -> None:
        self._sets: dict[tuple[int, int], bytes] = {}

    def ahead_of(self, unit: bytes) -> bytes:
        """Return the access unit; if a decoder could start at it, with SPS and PPS in front.

        The unit's own sets are stored and take precedence. Unknown sets cannot be added: then
        `is_key` stays false.
        """
        found = nal_units(unit)
        nals = [syntax.in_order(nal) if nal[0] & 31 == SPS else nal for nal in found]
        new_sets = {_set_id(nal): nal for nal in nals if nal[0] & 31 in (SPS, PPS)}
        self._sets.update(new_sets)
        while len(self._sets) > SETS_MAX:
            del self._sets[next(iter(self._sets))]
        starts = any(nal[0] & 31 == IDR for nal in nals) or recovery_frames(nals) is not None
        missing = sorted(self._sets.keys() - new_sets.keys()) if starts else []
        if not missing and nals == found:
            return unit
        lead = [nal for nal in nals[:1] if nal[0] & 31 == AUD]
        tail = nals[len(lead) :]
        # An SPS goes before every PPS that may refer to it.
        sets = [nal for nal in tail if nal[0] & 31 in (SPS, PPS)]
        slices = [nal for nal in tail if nal[0] & 31 not in (SPS, PPS)]
        sets = sorted([*sets, *(self._sets[key] for key in missing)], key=_set_id)
        return b"".join(b"\0" + START_CODE + nal for nal in [*lead, *sets, *slices])


def _set_id(nal: bytes) -> tuple[int, int]:
    """Return (type, id) of an SPS or PPS: ue(v) after 3 bytes of profile, or at once."""
    kind = nal[0] & 31
    start = 4 if kind == SPS else 1
    bits = int.from_bytes(nal[start : start + 4].ljust(4, b"\0"), "big")
    zeros = 32 - bits.bit_length()
    return kind, (bits >> max(0, 31 - 2 * zeros)) - 1


class AnnexB:
    """Splits a byte stream into access units.

    A unit ends at the start of the next one, or when the caller, who has the clock, calls `flush`
    after a silence. Memory is bounded by `most` bytes and one chunk. Counters: `dropped` units were
    longer than `most`; `torn` units were flushed too early, and their tail was discarded.
    """

    def __init__(self, most: int = UNIT_MAX_BYTES) -> None:
        self.dropped = 0
        self.torn = 0
        self._most = most
        self._buffer = bytearray()
        self._scanned = 0
        self._open = False
        self._has_slice = False
        self._has_sets = False
        self._flushed = False
        self._sets = ParameterSets()

    @property
    def pending(self) -> int:
        """Bytes of the open unit, if it has a slice and can be flushed; otherwise 0."""
        return len(self._buffer) if self._has_slice else 0

    @property
    def begun(self) -> bool:
        """Whether a unit has begun, at least with its parameter sets."""
        return self._open

    def feed(self, data: bytes) -> list[bytes]:
        """Process any bytes; return the access units now known to be whole."""
        self._buffer += data
        units: list[bytes] = []
        while True:
            at = self._buffer.find(START_CODE, self._scanned)
            if at < 0:
                self._scanned = max(self._scanned, len(self._buffer) - 2)
                break
            if at + 5 > len(self._buffer):  # its type and first byte are still missing
                self._scanned = at
                break
            self._begin_nal(at, units)
        if self._open and len(self._buffer) > self._most:
            self.dropped += 1
            self._close()
        if not self._open:
            self._discard(self._scanned - 1)
        return units

    def flush(self) -> bytes | None:
        """Return the open unit, if it has a slice; SPS and PPS alone wait for their IDR."""
        if not self._has_slice:
            return None
        tail = self._buffer.find(START_CODE, self._scanned)
        unit = self._cut(tail if tail >= 0 else len(self._buffer))
        self._close()
        self._flushed = True
        return unit

    def _begin_nal(self, at: int, units: list[bytes]) -> None:
        """Process a start code at `at`; the two bytes behind it are known."""
        kind = self._buffer[at + 3] & 31
        is_slice, opens = kind in SLICES, _opens(self._buffer, at)
        self._scanned = at + 3
        if self._open and self._has_slice and opens:
            unit = self._cut(at)
            if len(unit) <= self._most:
                units.append(unit)
            else:
                self.dropped += 1
            self._close()
        if not self._open:
            at = self._scanned - len(START_CODE)
            zero_byte = at > 0 and self._buffer[at - 1] == 0
            self._discard(at - zero_byte)
            self._open = opens
            self._flushed = self._flushed and not opens
        if self._open:
            self._has_slice = self._has_slice or is_slice
            self._has_sets = self._has_sets or kind in (SPS, PPS, IDR, SEI)

    def _close(self) -> None:
        self._open = self._has_slice = self._has_sets = self._flushed = False

    def _discard(self, count: int) -> None:
        """Discard bytes outside of any unit. After a flush they are its tail."""
        count = max(0, count)
        if self._flushed and self._buffer[:count].strip(b"\0"):
            self.torn += 1
            self._flushed = False
        del self._buffer[:count]
        self._scanned = max(0, self._scanned - count)

    def _cut(self, end: int) -> bytes:
        """Return the unit before `end`; zeros there belong to the next start code."""
        unit = bytes(self._buffer[:end]).rstrip(b"\0")
        del self._buffer[: len(unit)]
        self._scanned = max(0, self._scanned - len(unit))
        return self._sets.ahead_of(unit) if self._has_sets else unit
