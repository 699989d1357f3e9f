"""Stored waves, and the pending one: the state behind WVNEW, WVAG, WVAS, WVCRE, WVCAP and WVDEL,
within the memory that DMA has for them."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from fpvbench.pigpiod.protocol import Err
from fpvbench.pigpiod.waves.pulses import Pulse, Pulses

PULSES_MAX = 12_000
MICROS_MAX = 1_800_000_000
IDS = 250
BLOCKS, WORDS = 4 * 53 * 118, 4 * 53 * 79
"""Control blocks and words in the pages for waves."""
CHAIN_PAGES = 10
BLOCKS_FIRST, WORDS_FIRST = CHAIN_PAGES * 118, CHAIN_PAGES * 79
"""First block and word for waves; the earlier ones are for chains."""


class Size(NamedTuple):
    """Memory that a wave takes: control blocks, words that DMA writes, words that it reads into.

    WVCAP can reserve words to read into; no client can use them.
    """

    blocks: int
    words: int
    read_words: int = 0


@dataclass(eq=False)
class Node(ABC):
    """Item that can be sent; DMA continues with `next` at its end, if there is one."""

    next: "Node | None" = field(default=None, kw_only=True)

    @abstractmethod
    def passes(self) -> Iterator["tuple[Wave | None, int]"]:
        """Yield the items to play in turn: a wave or a pause, and its length in microseconds."""


def after(pulses: Iterable[Pulse], on: int = 0, off: int = 0) -> tuple[int, int]:
    """Return the bits on and off after some pulses; `on` and `off` are the bits before."""
    for _, sets, clears in pulses:
        on, off = (on | sets) & ~clears, off & ~sets | clears
    return on, off


@dataclass(eq=False)
class Wave(Node):
    """Stored wave; `pulses` holds only the pulses that switch a pin."""

    pulses: list[Pulse]
    length_us: int
    first_block: int
    first_word: int
    size: Size
    deleted: bool = False

    def __post_init__(self) -> None:
        on, off = after(self.pulses)
        self.pins = on | off

    def passes(self) -> Iterator["tuple[Wave | None, int]"]:
        yield self, self.length_us


@dataclass
class Statistic:
    """Figure for WVSM, WVSP or WVSC: present value, highest value, limit."""

    most: int
    now: int = 0
    high: int = 0

    def set(self, value: int) -> None:
        """Set a new value, and update the highest one."""
        self.now, self.high = value, max(self.high, value)


class Waves:
    """Store of waves by their number; `pending` is under construction."""

    def __init__(self) -> None:
        self.pending = Pulses()
        self._waves: list[Wave] = []
        self._count = 0
        """Number of valid entries of `_waves`; the others were cleared."""
        self._block, self._word, self._top = BLOCKS_FIRST, WORDS_FIRST, WORDS
        self.micros = Statistic(MICROS_MAX)
        self.pulses = Statistic(PULSES_MAX)
        self.blocks = Statistic(BLOCKS)

    def new(self) -> None:
        """Discard the pending pulses, and zero their figures."""
        self.pending = Pulses()
        for figure in (self.micros, self.pulses, self.blocks):
            figure.now = 0

    def clear(self) -> None:
        """Discard the pending pulses and all stored waves. DMA continues with the item it is
        playing."""
        self.new()
        self._count = 0
        self._block, self._word, self._top = BLOCKS_FIRST, WORDS_FIRST, WORDS

    def add(self, pulses: Pulses) -> int:
        """Add pulses; return the new number of pending pulses, or an error."""
        total = pulses.merged(self.pending)
        if len(total.pulses) >= PULSES_MAX:
            return Err.TOO_MANY_PULSES
        self.pending = total
        self.micros.set(total.length_us)
        self.pulses.set(len(total.pulses))
        self.blocks.set(total.blocks())
        return len(total.pulses)

    def create(self, percent: tuple[int, int, int] | None = None) -> int:
        """Store the pending wave; return its number, or an error.

        `percent` of the memory is reserved for it: control blocks, words to write, words to read.
        """
        if percent is not None and any(part > 100 for part in percent):
            return Err.BAD_PARAM
        if not self.pending.pulses:
            return Err.EMPTY_WAVEFORM
        size = Size(1 + self.pending.blocks(), self.pending.words())
        if percent is not None:
            room = (BLOCKS - BLOCKS_FIRST, *[WORDS - WORDS_FIRST] * 2)
            reserved = [total * part // 100 for total, part in zip(room, percent, strict=True)]
            if size.blocks > reserved[0]:
                return Err.TOO_MANY_CBS
            if size.words > reserved[1]:
                return Err.TOO_MANY_OOL
            size = Size(*reserved)
        number = self._place(size)
        if number >= 0:
            self.pending = Pulses()
        return number

    def _place(self, size: Size) -> int:
        """Reuse the place of a deleted wave of the same size, or take the place behind the last
        wave."""
        for number, former in enumerate(self._waves[: self._count]):
            if former.deleted and size == former.size:
                self._waves[number] = self._made(former.first_block, former.first_word, size)
                return number
        if self._block + size.blocks > BLOCKS:
            return Err.TOO_MANY_CBS
        if self._word + size.words > self._top - size.read_words:
            return Err.TOO_MANY_OOL
        if self._count >= IDS:
            return Err.NO_WAVEFORM_ID
        wave = self._made(self._block, self._word, size)
        self._waves[self._count : self._count + 1] = [wave]
        self._count += 1
        self._block += size.blocks
        self._word += size.words
        self._top -= size.read_words
        return self._count - 1

    def _made(self, first_block: int, first_word: int, size: Size) -> Wave:
        switching = [pulse for pulse in self.pending.pulses if pulse.on or pulse.off]
        return Wave(switching, self.pending.length_us, first_block, first_word, size)

    def get(self, number: int) -> Wave | None:
        """Return a stored wave, or None if the number has no wave."""
        if number >= self._count or self._waves[number].deleted:
            return None
        return self._waves[number]

    def delete(self, number: int) -> int:
        """Delete a wave; the last one frees its memory, and that of deleted ones directly before
        it."""
        wave = self.get(number)
        if wave is None:
            return Err.BAD_WAVE_ID
        wave.deleted = True
        while self._count and self._waves[self._count - 1].deleted:
            self._count -= 1
            freed = self._waves[self._count]
            self._block, self._word = freed.first_block, freed.first_word
            self._top += freed.size.read_words
        return 0

    def number(self, wave: Wave | None) -> int | None:
        """Return the number of a wave, or None; a cleared wave keeps its number until it is
        overwritten."""
        for number, stored in enumerate(self._waves):
            if stored is wave and not stored.deleted:
                return number
        return None
