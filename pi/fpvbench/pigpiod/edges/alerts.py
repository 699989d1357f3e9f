"""Alert thread of pigpiod: turns recorded edges into reports, once per batch.

filters -> samples of changed levels -> watchdogs, reports, waiting scripts
"""

from collections.abc import Callable
from operator import itemgetter

from fpvbench.pigpiod.buses.bitbang_serial import SerialReads
from fpvbench.pigpiod.edges.filters import ACTIVE_MAX_US, STEADY_MAX_US, Glitch, Noise
from fpvbench.pigpiod.edges.notify import EVENTS, Batch, Notifier, Sample, State
from fpvbench.pigpiod.edges.watchdogs import Watchdogs
from fpvbench.pigpiod.gpio_commands import Handler
from fpvbench.pigpiod.lines import USER_GPIO, Edge, Lines
from fpvbench.pigpiod.protocol import Cmd, Err, Request
from fpvbench.pigpiod.pwm import SAMPLE_US

BATCH_US = 1000
LOOK_US = 5000
"""Interval at which a batch checks the chip's file for changes by other processes, if no earlier
event is due. Checking every millisecond would cost half of this process's CPU time."""


class Alerts:
    """Watching, filtering and timing of pins; scripts wait for the pins in `waited_bits()`."""

    def __init__(
        self,
        lines: Lines,
        notifier: Notifier,
        serial: SerialReads,
        watchdogs: Watchdogs,
        waited_bits: Callable[[], int],
    ) -> None:
        self._lines, self._notifier, self._waited_bits = lines, notifier, waited_bits
        self._serial, self._watchdogs = serial, watchdogs
        self._glitch: dict[int, Glitch] = {}
        self._noise: dict[int, Noise] = {}
        self._noisy: set[int] = set()
        """Pins whose noise filter is on."""
        self._unfiltered: set[int] = set()
        """Pins whose filter was removed since the last batch."""
        self._events = 0
        self._raw = 0
        """Unfiltered levels at the end of the last batch."""
        self._shown = 0
        self._end_us = 0

    def table(self) -> dict[int, Handler]:
        """Return the handler of each command number."""
        return {
            Cmd.WDOG: self._watchdogs.wdog,
            Cmd.FG: self._fg,
            Cmd.FN: self._fn,
            Cmd.NB: self._nb,
            Cmd.NP: self._np,
            Cmd.EVM: self._evm,
            Cmd.EVT: self._evt,
        }

    def refresh(self, now_us: int) -> None:
        """Update the set of watched pins, after handles or scripts have changed."""
        bits = self._notifier.monitored | self._waited_bits() | self._serial.bits
        if bits == self._lines.monitored:
            return
        if self._lines.monitored:
            added = bits & ~self._lines.monitored
        else:
            added, self._end_us = 0xFFFFFFFF, now_us
        self._lines.monitor(bits, now_us)
        self._raw = self._raw & ~added | self._lines.recorded & added
        self._shown = self._shown & ~added | self._lines.recorded & added

    def next_us(self, now_us: int) -> int | None:
        """Return the due time of the next batch in microseconds.

        Without a watched pin or a pending event, return the due time of the next keep-alive, or
        None.
        """
        if not self._lines.monitored and not self._events:
            return self._notifier.next_alive_us()
        dues = [
            self._end_us + LOOK_US,
            now_us if self._events or self._unfiltered else None,
            self._lines.next_us(now_us),
            self._watchdogs.next_us(),
            *(glitch.awaits_us() for glitch in self._glitch.values()),
            *(self._noise[gpio].awaits_us() for gpio in self._noisy),
        ]
        awaited_us = min(due for due in dues if due is not None)
        batches = max(1, -(-(awaited_us - self._end_us) // BATCH_US))
        return self._end_us + batches * BATCH_US

    def batch(self, now_us: int) -> tuple[int, int]:
        """Report all changes up to now; return the bits of the changed GPIO, and of the events."""
        end_us = now_us // SAMPLE_US * SAMPLE_US
        start_levels = last_levels = self._shown
        samples = self._samples(end_us)
        changed = 0
        for _, levels in samples:
            changed |= (levels ^ last_levels) & self._lines.monitored
            last_levels = levels
        events, self._events = self._events, 0
        if self._lines.monitored:
            last_levels = self._lines.show(end_us, last_levels)
        else:
            last_levels = self._lines.word(now_us)
        visible = [(t, self._lines.show(t, levels)) for t, levels in samples]
        if samples:
            self._watchdogs.restart(start_levels, samples, self._lines.monitored)
            self._serial.process(start_levels, samples, end_us)
        timeouts = self._watchdogs.fired(end_us)
        if timeouts:
            self._serial.time_out(timeouts, end_us)
        self._notifier.emit(Batch(end_us, start_levels, visible, last_levels, timeouts, events))
        self._end_us = end_us
        return changed, events

    def _samples(self, end_us: int) -> list[Sample]:
        if not self._lines.monitored:
            return []
        samples: list[Sample] = []
        levels = self._shown
        for time_us, gpio, level in self._filtered(self._lines.take(end_us), end_us):
            levels = levels & ~(1 << gpio) | level << gpio
            if samples and samples[-1][0] == time_us:
                samples[-1] = (time_us, levels)
            else:
                samples.append((time_us, levels))
        self._shown = levels
        return samples

    def _filtered(self, edges: list[Edge], end_us: int) -> list[Edge]:
        """Apply the filters to the edges of a batch; store the filtered levels."""
        raw = self._raw
        for _, gpio, level in edges:
            self._raw = self._raw & ~(1 << gpio) | level << gpio
        if not (self._glitch or self._noisy or self._unfiltered):
            return edges
        filtered = self._glitch.keys() | self._noisy | self._unfiltered
        self._unfiltered.clear()
        out = [edge for edge in edges if edge[1] not in filtered]
        for gpio in filtered:
            if self._lines.monitored >> gpio & 1:
                pin_edges = [(t, level) for t, g, level in edges if g == gpio]
                for time_us, level in self._filter(gpio, raw >> gpio & 1, pin_edges, end_us):
                    out.append((time_us, gpio, level))
        return sorted(out, key=itemgetter(0))

    def _filter(
        self, gpio: int, start_level: int, edges: list[tuple[int, int]], end_us: int
    ) -> list[tuple[int, int]]:
        first_us = min(self._end_us // SAMPLE_US * SAMPLE_US + SAMPLE_US, end_us)
        if not edges or edges[0][0] > first_us:
            edges.insert(0, (first_us, start_level))
        if gpio in self._glitch:
            edges = self._glitch[gpio].run(edges, end_us)
        if gpio in self._noisy:
            edges = self._noise[gpio].run(edges, end_us)
        unchanged = edges[0][1] == self._shown >> gpio & 1
        return edges[1:] if unchanged else edges

    def _fg(self, request: Request, now_us: int) -> int:
        gpio, steady_us = request.p1, request.p2
        if gpio >= USER_GPIO:
            return Err.BAD_USER_GPIO
        if steady_us > STEADY_MAX_US:
            return Err.BAD_FILTER
        if self._glitch.pop(gpio, None):
            self._unfiltered.add(gpio)
        if steady_us:
            self._glitch[gpio] = Glitch(steady_us)
        return 0

    def _fn(self, request: Request, now_us: int) -> int:
        gpio, steady_us, active_us = request.p1, request.p2, request.word()
        if gpio >= USER_GPIO:
            return Err.BAD_USER_GPIO
        if steady_us > STEADY_MAX_US or active_us > ACTIVE_MAX_US:
            return Err.BAD_FILTER
        noise = self._noise.setdefault(gpio, Noise())
        if gpio in self._noisy:
            self._unfiltered.add(gpio)
        noise.set(steady_us, active_us, now_us)
        (self._noisy.add if steady_us else self._noisy.discard)(gpio)
        return 0

    def _nb(self, request: Request, now_us: int) -> int:
        handle = self._notifier.get(request.p1)
        if handle is None:
            return Err.BAD_HANDLE
        self._notifier.watch(handle, request.p2, State.RUNNING)
        self.refresh(now_us)
        return 0

    def _np(self, request: Request, now_us: int) -> int:
        handle = self._notifier.get(request.p1)
        if handle is None:
            return Err.BAD_HANDLE
        self._notifier.watch(handle, 0, State.PAUSED)
        self.refresh(now_us)
        return 0

    def _evm(self, request: Request, now_us: int) -> int:
        handle = self._notifier.get(request.p1)
        if handle is None:
            return Err.BAD_HANDLE
        handle.event_bits = request.p2
        return 0

    def _evt(self, request: Request, now_us: int) -> int:
        if request.p1 >= EVENTS:
            return Err.BAD_EVENT_ID
        self._events |= 1 << request.p1
        return 0
