"""Levels of GPIO 0-31 over time, as recorded by a logic analyser on the chip's pins.

Sources: the registers in the bench's chip file (written here and, for inputs, by other processes),
the pulse trains of DMA or the PWM hardware, the waves of a transmitter, wires from pin to pin, and
edges played by a test or a part. Recording is off while no pin is monitored.
"""

import ctypes
import heapq
from collections.abc import Callable, Iterable
from operator import itemgetter

from fpvbench import soc as chip
from fpvbench.pigpiod.nets import Nets, pulled
from fpvbench.pigpiod.pwm import PulseTrain, sampled

USER_GPIO = 32
ALL = 0xFFFFFFFF
BUFFER_US = 120_000
"""Time span that DMA records (pigpiod's option -b); a daemon that stalls longer loses edges."""
BOARD_PULL_UPS = frozenset((2, 3))
"""Pins with pull-ups on the board: SDA1 and SCL1 have 1.8 kOhm to 3.3 V. The chip's own 50 kOhm
pulls do not matter there."""
Edge = tuple[int, int, int]
"""(sample time in microseconds, GPIO, level)."""


class Lines:
    """Levels of all pins, and a recorder of the edges of GPIO 0-31."""

    def __init__(self, soc: chip.Soc, wires: Iterable[tuple[int, int]] = ()) -> None:
        self._pins, self._outside = soc.pin, soc.outside
        start, self._size = chip.Soc.pin.offset, ctypes.sizeof(chip.Pin)
        end = start + USER_GPIO * self._size
        self._registers = memoryview(soc).cast("B")[start:end]
        self._snapshot = b""
        self._seen_outside = soc.outside.count
        self._nets = Nets(wires)
        self.trains: dict[int, PulseTrain] = {}
        self._drawn_us: dict[int, int] = {}
        self._driven: dict[int, int] = {}
        self._future: list[tuple[int, int, int, int]] = []
        self._played = 0
        self._edges: list[Edge] = []
        self._word = 0
        self.monitored = 0
        self.feed: Callable[[int], None] | None = None
        """Function that advances the pins' self-acting source to a time, or None."""
        self.listeners: dict[int, Callable[[int, int], None]] = {}
        """Called with (time, level) when the program changes an output."""
        self.reported: set[int] = set()
        """Outputs that another process sets; their edges come by `emit`, with the exact times."""

    def level(self, gpio: int, now_us: int) -> int:
        """Return the pin's level now (of bank 2 too)."""
        self._play_until(now_us)
        if gpio in self._nets.members:
            return self._net_level(gpio, now_us)
        level = self._driver(gpio, now_us)
        return int(self._pull(gpio) == chip.PULL_UP) if level is None else level

    def word(self, now_us: int) -> int:
        """Return the levels of GPIO 0-31 now, a bit each."""
        levels = [self.level(gpio, now_us) << gpio for gpio in range(USER_GPIO)]
        return sum(levels)

    def play(self, gpio: int, edges: Iterable[tuple[int, int]]) -> None:
        """Drive an input from outside with (microseconds, level) edges, also in the future.

        The chip file's `external` overrides these levels unless it is FLOATING.
        """
        for time_us, level in edges:
            self._played += 1
            heapq.heappush(self._future, (time_us, self._played, gpio, level))

    def settle(self, now_us: int) -> None:
        """Advance all sources that drive pins by themselves up to now."""
        if self.feed is not None:
            self.feed(now_us)
        if self._seen_outside != self._outside.count:
            self._record_outside()
        self._play_until(now_us)

    def changed(self, gpio: int, now_us: int) -> None:
        """Record the level after a register or pulse train of the pin has changed."""
        for member in self._nets.members.get(gpio, (gpio,)):
            if member < USER_GPIO:
                self._note(member, now_us, self.level(member, now_us))

    def pulse(self, gpio: int, start_us: int, length_us: int, level: int) -> None:
        """Record a pulse that the program puts on an output."""
        self.emit(gpio, start_us, level)
        self.emit(gpio, start_us + length_us, 1 - level)

    def latch(self, on: int, off: int, at_us: int) -> None:
        """Set and clear level registers for a wave: neither mode nor PWM changes."""
        for bits, level in ((on & ~off, 1), (off, 0)):
            while bits:
                gpio = (bits & -bits).bit_length() - 1
                bits &= bits - 1
                if gpio not in self.trains:
                    pin = self._pins[gpio]
                    pin.out = level
                    if pin.mode == chip.MODE_OUTPUT:
                        self.emit(gpio, at_us, level)

    def watches(self, bits: int) -> bool:
        """Return whether one of these pins is monitored, wired, or has a listener."""
        has_listener = any(bits >> gpio & 1 for gpio in self.listeners)
        return has_listener or bool(bits & (self.monitored | self._nets.all_bits))

    def wired(self, gpio: int, other: int) -> bool:
        """Return whether a wire goes from one pin to the other."""
        return other in self._nets.members.get(gpio, ())

    def set_train(self, gpio: int, train: PulseTrain | None, now_us: int) -> None:
        """Replace or remove the pin's train; record the old one up to now."""
        self._draw(gpio, now_us)
        if train is None:
            self.trains.pop(gpio, None)
        else:
            self.trains[gpio] = train
        self._drawn_us[gpio] = now_us

    def monitor(self, bits: int, now_us: int) -> None:
        """Watch these pins from now on; their present levels are no edges."""
        added = bits & ~self.monitored
        unseen = [gpio for gpio in self.trains if not self._watched(gpio)]
        if not self.monitored and bits:
            added = ALL
            self._snapshot = bytes(self._registers)
            self._seen_outside = self._outside.count
        for gpio in range(USER_GPIO):
            if added >> gpio & 1:
                self._set_bit(gpio, self.level(gpio, now_us))
        self._drawn_us.update(dict.fromkeys(unseen, now_us))
        self.monitored = bits
        if not bits:
            self._edges.clear()

    def show(self, edge_us: int, levels: int) -> int:
        """Add to the word the levels that unwatched trains have at that time."""
        for gpio, train in self.trains.items():
            unwatched = not self.monitored >> gpio & 1
            if unwatched and self._pins[gpio].mode == train.mode:
                level = train.level(max(edge_us, train.start_us))
                levels = levels & ~(1 << gpio) | level << gpio
        return levels

    def next_us(self, now_us: int) -> int | None:
        """Return the earliest time of the next watched edge, or None until a pin is driven."""
        driven = self._seen_outside != self._outside.count or self.feed is not None
        if driven or any(map(self._watched, self.trains)):
            return now_us
        dues = [*(edge[0] for edge in self._edges), *(due[0] for due in self._future[:1])]
        return min(dues, default=None)

    @property
    def recorded(self) -> int:
        """Return the levels after the last recorded edge, a bit each."""
        return self._word

    def take(self, until_us: int) -> list[Edge]:
        """Return the edges up to a time, in order; each edge is returned once."""
        self.settle(until_us)
        for gpio in self.trains:
            self._draw(gpio, until_us)
        snapshot = bytes(self._registers)
        if snapshot != self._snapshot:
            self._compare(snapshot, until_us)
        if not self._edges:
            return []
        edges = sorted(self._edges, key=itemgetter(0))
        self._edges = [edge for edge in edges if edge[0] > until_us]
        return edges[: len(edges) - len(self._edges)]

    def _compare(self, snapshot: bytes, now_us: int) -> None:
        """Record the register changes since the last snapshot."""
        size, former = self._size, self._snapshot
        self._snapshot = snapshot
        for gpio in range(USER_GPIO):
            entry = slice(gpio * size, (gpio + 1) * size)
            train = self.trains.get(gpio)
            if snapshot[entry] != former[entry] and (
                train is None or self._pins[gpio].mode != train.mode
            ):
                self.changed(gpio, now_us)

    def _net_level(self, gpio: int, now_us: int, external: int | None = None) -> int:
        """Return the level of a pin and its wires, assuming that `external` drives the pin."""
        level = self._driver(gpio, now_us, external)
        net = self._nets.members.get(gpio, (gpio,))
        drivers = [self._driver(member, now_us) for member in net if member != gpio]
        levels = [driven for driven in (level, *drivers) if driven is not None]
        if levels:
            return min(levels)  # two that fight: the low one wins
        return pulled([self._pull(member) for member in net])

    def _driver(self, gpio: int, now_us: int, external: int | None = None) -> int | None:
        """Return the level driven onto the pin by the chip or from outside, or None if it
        floats."""
        pin, train = self._pins[gpio], self.trains.get(gpio)
        if train and pin.mode == train.mode:
            return train.level(now_us)
        if pin.mode == chip.MODE_OUTPUT:
            return self._word >> gpio & 1 if gpio in self.reported else int(pin.out)
        if external is None:
            external = pin.external
        return self._driven.get(gpio) if external == chip.FLOATING else int(external)

    def _pull(self, gpio: int) -> int:
        return chip.PULL_UP if gpio in BOARD_PULL_UPS else int(self._pins[gpio].pull)

    def _record_outside(self) -> None:
        """Record the changes of levels driven from outside, at their own times."""
        self._seen_outside, changes = self._outside.since(self._seen_outside)
        if self.monitored:
            for time_us, gpio, external in changes:
                if gpio < USER_GPIO and self._pins[gpio].mode != chip.MODE_OUTPUT:
                    level = self._net_level(gpio, time_us, external)
                    self.emit(gpio, time_us, level)

    def _play_until(self, now_us: int) -> None:
        while self._future and self._future[0][0] <= now_us:
            time_us, _, gpio, level = heapq.heappop(self._future)
            self._driven[gpio] = level
            pin = self._pins[gpio]
            if pin.mode != chip.MODE_OUTPUT and pin.external == chip.FLOATING:
                self.emit(gpio, time_us, level)

    def _watched(self, gpio: int) -> bool:
        return bool(self.monitored & self._nets.bits.get(gpio, 1 << gpio))

    def _draw(self, gpio: int, until_us: int) -> None:
        train = self.trains.get(gpio)
        if train is None or not self._watched(gpio):
            return
        if self._pins[gpio].mode == train.mode:
            after_us = max(self._drawn_us[gpio], until_us - BUFFER_US)
            for time_us, level in train.edges(after_us, until_us):
                self.emit(gpio, time_us, level)
        self._drawn_us[gpio] = until_us

    def emit(self, gpio: int, time_us: int, level: int) -> None:
        """Record the level of a driven pin, and of the pins wired to it."""
        self._note(gpio, time_us, level)
        for member in self._nets.members.get(gpio, ()):
            if member != gpio and self._driver(member, time_us) is None:
                self._note(member, time_us, level)

    def _note(self, gpio: int, time_us: int, level: int) -> None:
        if self._word >> gpio & 1 == level:
            return
        self._set_bit(gpio, level)
        if self.monitored:
            self._edges.append((sampled(time_us * 1000), gpio, level))
        if gpio in self.listeners:
            self.listeners[gpio](time_us, level)

    def _set_bit(self, gpio: int, level: int) -> None:
        self._word = self._word & ~(1 << gpio) | level << gpio
