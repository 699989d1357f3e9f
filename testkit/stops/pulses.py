"""Judge of an ESC's pulses around a stop, independent of the model in fpvbench/world/esc.py."""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

NEUTRAL_US = 15.0
"""Largest distance from neutral at which an ESC stands still."""
HOLD_S = 0.06
"""Least time of neutral pulses before silence."""


class Pulses(NamedTuple):
    """Pulses of one width, 0 for none, with the times of the first and the last sight."""

    us: float
    first_ns: int
    last_ns: int


class PulseTrace:
    """Widths over time, noted at each change, or by polling if `polled`."""

    def __init__(
        self, polled: bool = False, clock_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self.all: list[Pulses] = []
        self._polled, self._clock_ns = polled, clock_ns

    def note(self, us: float) -> None:
        """Add the present width to the trace."""
        now_ns, us = self._clock_ns(), round(us, 1)
        same = bool(self.all) and self.all[-1].us == us
        if self.all and (same or not self._polled):
            self.all[-1] = self.all[-1]._replace(last_ns=now_ns)
        if not same:
            self.all.append(Pulses(us, now_ns, now_ns))

    @property
    def widths(self) -> list[float]:
        """Widths in the order of their first sight."""
        return [pulses.us for pulses in self.all]


def stop_faults(trace: Sequence[Pulses], neutral_us: float) -> list[str]:
    """Return the faults of a stop from forward.

    A busy machine polls late. The hold counts from the last sight of throttle: an upper bound.
    """
    faults = []
    for number, pulses in enumerate(trace):
        if 0.0 < pulses.us < neutral_us - NEUTRAL_US:
            faults.append(f"a reverse pulse of {pulses.us} us")
        if pulses.us or not number:
            continue
        before = [other for other in trace[:number] if _drives(other, neutral_us)]
        since_ns = before[-1].last_ns if before else trace[0].first_ns
        held_s = (pulses.first_ns - since_ns) / 1e9
        if before and held_s < HOLD_S:
            faults.append(f"neutral for {held_s:.3f} s before silence: expected {HOLD_S} s")
        if _drives(trace[number - 1], neutral_us):
            faults.append("silence in place of neutral")
    return faults


def _drives(pulses: Pulses, neutral_us: float) -> bool:
    return bool(pulses.us) and abs(pulses.us - neutral_us) > NEUTRAL_US
