"""Chains of waves: the bytes of WVCHA, as DMA would run them.

id              play a wave
255 0           begin a loop
255 1 x y       end the loop: repeat it x + 256 y times
255 2 x y       wait x + 256 y microseconds
255 3           end an endless loop, and the chain
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from fpvbench.pigpiod.protocol import CommandError, Err
from fpvbench.pigpiod.waves.waves import CHAIN_PAGES, Node, Wave

BLOCKS_MAX = 60 * CHAIN_PAGES
LOOPS_MAX, COUNTERS_MAX = 10, 2 * CHAIN_PAGES
COMMAND = 255
BEGIN, END, DELAY, FOREVER = range(4)
Pass = tuple[Wave | None, int]


@dataclass
class Loop:
    """Waves, waits and loops that are repeated `times` times, or for ever if that is None."""

    times: int | None = 1
    steps: "list[Wave | int | Loop]" = field(default_factory=list)


@dataclass(eq=False)
class Chain(Node):
    """Chain of waves that has passed the checks."""

    loop: Loop = field(default_factory=Loop)

    def passes(self) -> Iterator[Pass]:
        return self._run(self.loop)

    def _run(self, loop: Loop) -> Iterator[Pass]:
        if loop.times == 0:
            # DMA runs the block's first control block and skips the rest of the block.
            yield None, _first_wait_us(loop)
            return
        done = 0
        while loop.times is None or done < loop.times:
            done += 1
            for step in loop.steps:
                if isinstance(step, Loop):
                    yield from self._run(step)
                elif isinstance(step, Wave):
                    yield step, step.length_us
                else:
                    yield None, step
            if loop.times is None and self.next is not None:
                return


def _first_wait_us(loop: Loop) -> int:
    step: Wave | int | Loop = loop
    while isinstance(step, Loop):
        step = step.steps[0]
    return step if isinstance(step, int) else 0


class _Parser:
    def __init__(self, data: bytes, wave: Callable[[int], Wave | None]) -> None:
        self._data, self._wave = data, wave
        self._at, self._counters = 0, 0
        self._blocks = 1
        """Control blocks so far; the first waits 20 us."""
        self._open = [(Loop(), 0)]
        """Loops that have begun, and the number of blocks before each."""

    def parse(self) -> Chain:
        while self._at < len(self._data):
            code = self._data[self._at]
            if code == COMMAND:
                self._command()
                continue
            wave = self._wave(code)
            if wave is None:
                raise CommandError(Err.BAD_WAVE_ID)
            self._take_block(spare=1)
            self._open[-1][0].steps.append(wave)
            self._at += 1
        self._take_block()
        # An unterminated loop is played once.
        while len(self._open) > 1:
            loop, _ = self._open.pop()
            self._open[-1][0].steps.append(loop)
        return Chain(self._open[0][0])

    def _command(self) -> None:
        command = self._data[self._at + 1 : self._at + 2]
        if not command:
            raise CommandError(Err.BAD_CHAIN_CMD)
        if command[0] == BEGIN:
            if len(self._open) > LOOPS_MAX:
                raise CommandError(Err.CHAIN_NESTING)
            self._open.append((Loop(), self._blocks))
            self._at += 2
        elif command[0] == END:
            self._end()
        elif command[0] == DELAY:
            wait_us = self._number()
            if wait_us:
                self._take_block()
                self._open[-1][0].steps.append(wait_us)
        elif command[0] == FOREVER:
            self._forever()
        else:
            raise CommandError(Err.BAD_CHAIN_CMD)

    def _end(self) -> None:
        if self._counters >= COUNTERS_MAX:
            raise CommandError(Err.CHAIN_COUNTER)
        if self._at + 4 > len(self._data):
            raise CommandError(Err.BAD_CHAIN_CMD)
        loop = self._close()
        loop.times = self._number()
        if loop.times > 1:
            self._take_block(spare=1)
            self._counters += 1

    def _forever(self) -> None:
        self._at += 2
        loop = self._close()
        self._take_block()
        if self._at < len(self._data):
            raise CommandError(Err.BAD_FOREVER)
        loop.times = None

    def _close(self) -> Loop:
        if len(self._open) == 1:
            raise CommandError(Err.BAD_CHAIN_LOOP)
        loop, blocks = self._open.pop()
        if blocks == self._blocks:
            raise CommandError(Err.BAD_CHAIN_LOOP)
        self._open[-1][0].steps.append(loop)
        return loop

    def _number(self) -> int:
        if self._at + 4 > len(self._data):
            raise CommandError(Err.BAD_CHAIN_CMD)
        number = int.from_bytes(self._data[self._at + 2 : self._at + 4], "little")
        self._at += 4
        return number

    def _take_block(self, spare: int = 0) -> None:
        self._blocks += 1
        if self._blocks + spare > BLOCKS_MAX:
            raise CommandError(Err.CHAIN_TOO_BIG)


def parse(data: bytes, wave: Callable[[int], Wave | None]) -> Chain:
    """Parse a chain; `wave(number)` finds a stored wave. Raises CommandError."""
    return _Parser(data, wave).parse()
