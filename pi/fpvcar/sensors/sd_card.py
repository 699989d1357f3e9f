"""State of the card in the car: worn, read-only, or well. Pure.

eMMC counts its own wear; most SD cards do not, so their wear is unknown. The kernel mounts a file
system read-only after errors, even during a drive.
"""

from collections.abc import Iterator
from typing import NamedTuple

from fpvcar.devices.computer import ComputerReadings
from fpvcar.runtime.texts import Phrase, Text
from fpvcar.wire.telemetry import Card

CARD_READ_ONLY = Text(
    "card_read_only",
    "the card is read-only, nothing is saved: dmesg has the reason; fetch the recordings, "
    "then sudo fsck it or replace it",
)
CARD_VOLATILE = Text(
    "card_volatile",
    "recordings are not kept after power-off: they are in memory (tmpfs or overlay); see "
    'docs/install.md, "A root that is never written"',
)
CARD_WORN = Phrase(
    "card_worn", "the card is worn, {used} of its life: fetch the recordings and replace it"
)

WORN = 0.9
"""Wear from which the card should be replaced: 90 % of the life time in JESD84-B51."""
STEP = 0.1
OVER = 11
"""life_time 0x0b: past its end. 0x00: not defined."""
SPARE_80 = 2
"""pre_eol_info: 80 % of its spare blocks are used; 3 is "urgent"."""
ESCAPES = (("\\040", " "), ("\\011", "\t"), ("\\134", "\\"))
"""Escapes of proc(5), in paths."""


def card_of(readings: ComputerReadings) -> Card:
    """Return the worst wear that the cards report, and whether the disk is read-only."""
    lives = [used for text in readings.life_times for used in _lives(text)]
    ends = [end for text in readings.ends for end in _hex(text)]
    used = max(lives, default=None)
    if max(ends, default=0) >= SPARE_80:
        used = max(used or 0.0, WORN)
    where = readings.mounts, readings.disk
    return Card(used, read_only(*where), volatile(*where) if readings.board else None)


def _lives(text: str) -> Iterator[float]:
    """Yield wear of type A and B, in steps of a tenth of the life, each counted as used up."""
    for value in _hex(text):
        if 1 <= value <= OVER:
            yield round(value * STEP, 1)


def _hex(text: str) -> Iterator[int]:
    for field in text.split():
        try:
            yield int(field, 16)
        except ValueError:
            continue


def read_only(mounts: str | None, path: str) -> bool | None:
    """Return whether the file system of `path` is mounted read-only."""
    mount = mount_of(mounts, path)
    return None if mount is None else "ro" in mount.options


def volatile(mounts: str | None, path: str) -> bool | None:
    """Return whether files at `path` are lost at power-off: in memory, or in an overlay over a
    root that is never written."""
    mount = mount_of(mounts, path)
    return None if mount is None else mount.kind in ("tmpfs", "overlay")


class Mount(NamedTuple):
    """Kind and options of a mounted file system."""

    kind: str
    options: list[str]


def mount_of(mounts: str | None, path: str) -> Mount | None:
    """Return the file system of `path`, by /proc/self/mounts; of two mounts at one place the
    later one counts."""
    best, found = -1, None
    for line in (mounts or "").splitlines():
        fields = line.split()
        if len(fields) < 4:
            continue
        place = fields[1]
        for escaped, plain in ESCAPES:
            place = place.replace(escaped, plain)
        within = path == place or path.startswith(place.rstrip("/") + "/")
        if within and len(place) >= best:
            best, found = len(place), Mount(fields[2], fields[3].split(","))
    return found


def faults(card: Card) -> Iterator[Text]:
    """Yield the faults of the card, with the next step."""
    if card.read_only:
        yield CARD_READ_ONLY
    if card.volatile:
        yield CARD_VOLATILE
    if card.used is not None and card.used >= WORN:
        yield CARD_WORN(used=f"{min(card.used, 1.0):.0%}")
