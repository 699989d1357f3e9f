"""Thread of the HC-SR04: triggers them in turn, since each receives the others' echoes."""

import contextlib
import math
from collections.abc import Iterator

from fpvcar import config
from fpvcar.config.sensors import CYCLE_S, TURN_S
from fpvcar.devices import backends
from fpvcar.devices.chips import hcsr04
from fpvcar.devices.outlier_filter import NoiseFilter
from fpvcar.devices.pins import Edges, IoPins
from fpvcar.sensors.reading import JUMP_M, JUMP_SHARE, LastReading, RangeThread

LATE_S = 0.003


def update(reading: LastReading, sample: hcsr04.Sample, now_s: float) -> None:
    """Store a sample, but not while the sensor is WAITING, so that its range ages."""
    if sample.status is hcsr04.Status.WAITING:
        return
    if sample.status is hcsr04.Status.NOISY:
        reading.noisy(sample.range_m)
        return
    good = sample.status in (hcsr04.Status.OK, hcsr04.Status.FAR)
    reading.update(sample.range_m, "ok" if good else sample.status.value, now_s)


class UltrasonicThread(RangeThread):
    """Thread for all HC-SR04 of a car."""

    def live(self) -> None:
        """Measure once every TURN_S. Raises PinsFault."""
        with contextlib.closing(backends.open_pins(self._profile)) as pins:
            self._work(pins)

    def _work(self, pins: IoPins) -> None:
        configs = list(self._profile.sensors.ultrasound.values())
        echoes = [place.echo for place in configs]
        for echo in echoes:
            pins.input_pull_down(echo)
        edges = backends.open_edges(self._profile, pins, echoes)
        with contextlib.closing(edges):
            sensors = [self._sensor(pins, edges, place) for place in configs]
            self.set_state("ok")
            celsius = self._profile.sensors.celsius
            for sensor, reading, after_s in self._turns(sensors, edges, echoes):
                sample = sensor.measure(celsius, after_s)
                update(reading, sample, self._clock_s())

    def _sensor(self, pins: IoPins, edges: Edges, place: config.Ultrasound) -> hcsr04.HcSr04:
        pins.write(place.trigger, 0)
        noise = NoiseFilter(JUMP_M, JUMP_SHARE)
        return hcsr04.HcSr04(pins, edges, place.trigger, place.echo, noise, self._clock_s)

    def _turns(
        self, sensors: list[hcsr04.HcSr04], edges: Edges, echoes: list[int]
    ) -> Iterator[tuple[hcsr04.HcSr04, LastReading, float]]:
        """Yield each sensor in turn, with the delay of its trigger."""
        next_s = -math.inf
        turn_s = max(TURN_S, CYCLE_S / len(sensors))
        while not self.ending:
            for sensor, reading in zip(sensors, self._readings, strict=True):
                after_s = max(0.0, next_s - self._clock_s())
                # A continuing echo, or a missing answer, is checked for at the due time.
                ill = reading.state != "ok" or any(map(edges.level, echoes))
                if ill or self.resting:
                    self.pause(after_s)
                    self.rest()
                    after_s = 0.0
                if self.ending:
                    return
                # Delays of one sensor are made up for, as far as echoes may fade sooner.
                soonest_s = self._clock_s() + after_s + TURN_S - LATE_S
                next_s = max(next_s + turn_s, soonest_s)
                yield sensor, reading, after_s


THREAD = UltrasonicThread
