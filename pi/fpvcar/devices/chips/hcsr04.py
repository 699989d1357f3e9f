"""HC-SR04: ultrasonic range sensor (ElecFreaks data sheet).

A pulse of 10 us on the trigger sends eight cycles of 40 kHz; the echo pin is then high
for the travel time of the sound, there and back.
"""

import enum
import math
from collections import deque
from typing import NamedTuple

from fpvcar.config.sensors import LONGEST_US, SHORTEST_US, TURN_S
from fpvcar.devices.outlier_filter import NOISY as NOISY_STATE
from fpvcar.devices.outlier_filter import NoiseFilter
from fpvcar.devices.pins import Edges, IoPins
from fpvcar.runtime.clock import Clock
from fpvcar.runtime.texts import Text

TRIGGER_US = 10
STUCK_S, AGAIN_S = 0.25, 1.0
"""Clones hold the echo for up to 200 ms without a target, some until the next
trigger; a stuck echo gets a trigger at this interval."""
MEDIAN_OF = 3
TICKS = 1 << 32


class Status(enum.Enum):
    """Result of one range measurement."""

    OK = "ok"
    FAR = "out of range"
    ABSENT = Text("echo_absent", "does not answer")
    WAITING = "its echo has not ended"
    STUCK = Text("echo_stuck", "its echo does not fall")
    NOISE = Text("echo_noise", "an echo too short to be real")
    NOISY = NOISY_STATE


class Sample(NamedTuple):
    """Range sample. `range_m` is None without a target; `status` gives the reason. A noisy sensor
    reports the nearest of its last samples; WAITING means no measurement."""

    range_m: float | None
    status: Status


def sound_m_per_s(celsius: float) -> float:
    """Return the speed of sound in dry air, to 0.1 % from -20 to 50 degrees."""
    return 331.3 + 0.606 * celsius


def from_width(width_us: int, celsius: float) -> Sample:
    """Convert the length of an echo."""
    if width_us < SHORTEST_US:
        return Sample(None, Status.NOISE)
    if width_us > LONGEST_US:
        return Sample(None, Status.FAR)
    return Sample(width_us * 0.5e-6 * sound_m_per_s(celsius), Status.OK)


class Median:
    """Median of the last three samples, which hides a single wrong echo; of two
    samples the nearer. Pure."""

    def __init__(self) -> None:
        self._last: deque[Sample] = deque(maxlen=MEDIAN_OF)

    def add(self, sample: Sample) -> Sample:
        """Return the median, with "no target" as the farthest. A fault passes
        through at once and restarts the filter, as does a pause."""
        if sample.status not in (Status.OK, Status.FAR):
            self._last.clear()
            return sample
        self._last.append(sample)
        far = float("inf")
        ranges = [far if entry.range_m is None else entry.range_m for entry in self._last]
        middle = sorted(ranges)[(len(ranges) - 1) // 2]
        return Sample(None, Status.FAR) if middle == far else Sample(middle, Status.OK)


class HcSr04:
    """HC-SR04 on the pins `trigger` and `echo`; `noise` sees every echo before the median does."""

    def __init__(
        self,
        pins: IoPins,
        edges: Edges,
        trigger: int,
        echo: int,
        noise: NoiseFilter,
        clock_s: Clock,
    ) -> None:
        self._pins, self._edges, self._clock_s = pins, edges, clock_s
        self._trigger, self._echo = trigger, echo
        self._median, self._noise = Median(), noise
        self._rose_s: float | None = None
        self._again_s = -math.inf
        self._heard = False

    def measure(self, celsius: float = 20.0, after_s: float = 0.0) -> Sample:
        """Trigger `after_s` from now, and wait for the echo. Raises PinsFault.

        Waits at most TURN_S for its start, 0.45 ms after the trigger, and for its end: longer than
        either takes, for a busy daemon. With `after_s` every earlier echo must have ended.
        """
        if not after_s:
            # drop edges of other sensors and of the previous echo
            self._edges.read(0.0)
        sample = self._once(celsius, after_s)
        if sample.status is Status.WAITING:
            return self._median.add(sample)
        if self._noise.add(sample.range_m):
            sample = Sample(self._noise.nearest, Status.NOISY)
        return self._median.add(sample)

    def _once(self, celsius: float, after_s: float) -> Sample:
        stuck = bool(self._edges.level(self._echo))
        if stuck:
            stuck_status = self._held(self._clock_s())
            if stuck_status is not None:
                return Sample(None, stuck_status)
        else:
            self._rose_s = None
        end_s = self._clock_s() + after_s + TURN_S
        self._pins.trigger(self._trigger, TRIGGER_US, after_s)
        rose_us: int | None = None
        silence = Status.STUCK if stuck else Status.ABSENT
        while (left_s := end_s - self._clock_s()) > 0:
            # Start and end in one wake-up; only the end once the start is known.
            for edge in self._edges.read(left_s, 2 if rose_us is None else 1):
                if edge.gpio != self._echo:
                    continue
                if edge.level:
                    rose_us, self._rose_s = edge.tick_us, self._clock_s()
                    if self._rose_s < end_s:
                        end_s = self._rose_s + TURN_S
                elif rose_us is not None:
                    sample = from_width((edge.tick_us - rose_us) % TICKS, celsius)
                    if sample.status is not Status.NOISE:
                        self._heard = sample.status is Status.OK
                        return sample
                    # A motor's spark, a few us long: the echo may still come.
                    rose_us, silence = None, Status.NOISE
        # a stuck sensor recovers only with an echo that ends
        if rose_us is None or stuck:
            return Sample(None, silence)
        # No target, or the start of being stuck, possible right after an echo.
        heard, self._heard = self._heard, False
        return Sample(None, Status.WAITING if heard else Status.FAR)

    def _held(self, now_s: float) -> Status | None:
        """Return the status while the last echo has not ended; None when a trigger is due."""
        if self._rose_s is None:
            self._rose_s = now_s
        if now_s - self._rose_s <= STUCK_S:
            return Status.WAITING
        if now_s < self._again_s:
            return Status.STUCK
        self._again_s = now_s + AGAIN_S
        return None
