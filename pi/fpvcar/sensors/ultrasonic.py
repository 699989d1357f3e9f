"""The HC-SR04 of a car in one thread, in turn: they would hear each other."""

import contextlib
import math
from collections.abc import Iterator
from functools import partial

from fpvcar import config
from fpvcar.config.schema import CYCLE_S, TURN_S
from fpvcar.devices import backends
from fpvcar.devices.chips import hcsr04
from fpvcar.devices.pins import Edges, IoPins
from fpvcar.sensors.reading import RangeThread, Seen

LATE_S = 0.003


def note(seen: Seen, sample: hcsr04.Sample, now_s: float) -> None:
    """What a sensor's sample makes of its last word: while it is WAITING, nothing, so
    that its range gets old."""
    if sample.status is hcsr04.Status.WAITING:
        return
    if sample.status is hcsr04.Status.NOISY:
        seen.noisy(sample.range_m)
        return
    good = sample.status in (hcsr04.Status.OK, hcsr04.Status.FAR)
    seen.note(sample.range_m, "ok" if good else str(sample.status), now_s)


class SonarThread(RangeThread):
    """All HC-SR04 of a car, in turn: they would hear each other."""

    def live(self) -> None:
        """Measures once every TURN_S. Raises PinsFault."""
        with contextlib.closing(backends.open_pins(self._profile)) as pins:
            self._work(pins)

    def _work(self, pins: IoPins) -> None:
        places = list(self._profile.sensors.ultrasound.values())
        echoes = [place.echo for place in places]
        for echo in echoes:
            pins.hear(echo)
        edges = backends.open_edges(self._profile, echoes)
        with contextlib.closing(edges):
            sensors = [self._sensor(pins, edges, place) for place in places]
            self.say("ok")
            for sensor, seen in self._turns(sensors):
                sample = sensor.measure(self._profile.sensors.celsius)
                note(seen, sample, self._clock_s())

    def _sensor(
        self, pins: IoPins, edges: Edges, place: config.Ultrasound
    ) -> hcsr04.HcSr04:
        pins.write(place.trigger, 0)

        trigger = partial(pins.trigger, place.trigger)
        return hcsr04.HcSr04(edges, trigger, place.echo, self._clock_s)

    def _turns(
        self, sensors: list[hcsr04.HcSr04]
    ) -> Iterator[tuple[hcsr04.HcSr04, Seen]]:
        next_s = -math.inf
        turn_s = max(TURN_S, CYCLE_S / len(sensors))
        while not self.ending:
            for sensor, seen in zip(sensors, self._seen, strict=True):
                # What one is late is made up for, as far as echoes may fade sooner.
                soonest_s = self._clock_s() + TURN_S - LATE_S
                next_s = max(next_s + turn_s, soonest_s)
                yield sensor, seen
                if self.ending:
                    return
                self.pause(next_s - self._clock_s())
