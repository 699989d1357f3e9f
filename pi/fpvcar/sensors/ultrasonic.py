"""The HC-SR04 of a car in one thread, in turn: they would hear each other."""

import contextlib
import math
from collections.abc import Iterator

from fpvcar import config
from fpvcar.devices.chips import hcsr04
from fpvcar.devices.pigpio.edges import PigpioEdges
from fpvcar.devices.pigpio.pins import PigpioPins
from fpvcar.sensors.reading import RangeThread, Seen
from fpvcar.threads import ANSWER_S

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

    def work(self, pins: PigpioPins) -> None:
        """One measurement every TURN_S."""
        where = self._profile.pins
        places = list(self._profile.sensors.ultrasound.values())
        echoes = [place.echo for place in places]
        for echo in echoes:
            pins.hear(echo)
        with contextlib.closing(
            PigpioEdges(where.host, where.port, echoes, ANSWER_S)
        ) as edges:
            sensors = [self._sensor(pins, edges, place) for place in places]
            self.say("ok")
            for sensor, seen in self._turns(sensors):
                sample = sensor.measure(self._profile.sensors.celsius)
                note(seen, sample, self._clock_s())

    def _sensor(
        self, pins: PigpioPins, edges: PigpioEdges, place: config.Ultrasound
    ) -> hcsr04.HcSr04:
        pins.write(place.trigger, 0)

        def trigger(length_us: int) -> None:
            pins.call(
                f"trigger GPIO {place.trigger}", pins.client.gpio_trigger,
                place.trigger, length_us, 1,
            )  # fmt: skip

        return hcsr04.HcSr04(edges, trigger, place.echo, self._clock_s)

    def _turns(
        self, sensors: list[hcsr04.HcSr04]
    ) -> Iterator[tuple[hcsr04.HcSr04, Seen]]:
        next_s = -math.inf
        turn_s = max(hcsr04.TURN_S, hcsr04.CYCLE_S / len(sensors))
        while not self.ending:
            for sensor, seen in zip(sensors, self._seen, strict=True):
                # What one is late is made up for, as far as echoes may fade sooner.
                soonest_s = self._clock_s() + hcsr04.TURN_S - LATE_S
                next_s = max(next_s + turn_s, soonest_s)
                yield sensor, seen
                if self.ending:
                    return
                self.pause(next_s - self._clock_s())
