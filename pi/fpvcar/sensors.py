"""Range sensors: what stands around the car, how old that is, and who does not answer.

    VL53L0X (I2C), HC-SR04 (edges) -> one thread each -> Ranges -> gate, page

Each sensor is set up, read and given up by itself: one that is absent, silent, stuck or
noisy is said so and tried again, and holds up no other.
"""

import asyncio
import contextlib
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from fpvcar import config, wire
from fpvcar.devices import hcsr04, vl53l0x
from fpvcar.devices.i2c import I2cError, PigpioI2c
from fpvcar.devices.pigpio_edges import PigpioEdges
from fpvcar.devices.pigpio_pins import PigpioPins
from fpvcar.pin_thread import ANSWER_S, PinThread

AGAIN_S = 1.0
"""How long a sensor that failed is left alone."""
SILENT_S = 0.2
"""A sensor that ranges and has nothing new for so long is set up anew."""
DOWN_S, UP_S = 0.002, 0.003
"""XSHUT: held low, and from high to the first answer (1.2 ms)."""
POLL_S = 0.002
NEVER_S = -math.inf


@dataclass
class Seen:
    """The last word of one sensor."""

    name: str
    bearing_deg: float
    range_m: float | None = None
    at_s: float = NEVER_S
    state: str = "starting"

    def note(self, range_m: float | None, state: str, now_s: float) -> None:
        """A measurement; only one that held makes it young."""
        self.state = state
        if state == "ok":
            self.range_m, self.at_s = range_m, now_s

    def told(self, now_s: float) -> wire.Range:
        """As the page gets it; `age_s` is None before the first measurement."""
        age_s = None if self.at_s == NEVER_S else now_s - self.at_s
        return wire.Range(
            self.name, self.bearing_deg, self.range_m, age_s, self.state
        )  # fmt: skip


class Tof:
    """One VL53L0X as the thread handles it: `turn` does what is due."""

    def __init__(
        self, where: config.Tof, seen: Seen, pins: PigpioPins,
        clock_s: Callable[[], float],
    ) -> None:  # fmt: skip
        self.seen, self.due_s = seen, NEVER_S
        self._where, self._pins, self._clock_s = where, pins, clock_s
        self._device: PigpioI2c | None = None
        self._chip: vl53l0x.Vl53l0x | None = None
        self._news_s = NEVER_S
        self.power(False)

    def power(self, on: bool) -> None:
        """XSHUT, where it is wired."""
        if self._where.power is not None:
            self._pins.write(self._where.power, on)

    def turn(self) -> None:
        """Sets it up, or takes its newest sample. Raises PinsFault."""
        try:
            if self._chip is None:
                self._set_up()
            else:
                self._read(self._chip)
        except I2cError as fault:
            self.seen.state = str(fault)
            self.close()
            self.due_s = self._clock_s() + AGAIN_S

    def _set_up(self) -> None:
        time.sleep(DOWN_S)
        self.power(True)
        time.sleep(UP_S)
        default = vl53l0x.DEFAULT_ADDRESS
        if self._where.address != default and self._where.power is not None:
            self._open(default).readdress(self._where.address)
            self._close_device()
        chip = self._open(self._where.address)
        chip.start()
        self._chip, self._news_s = chip, self._clock_s()
        self.due_s = self._news_s + vl53l0x.BUDGET_US / 1e6

    def _open(self, address: int) -> vl53l0x.Vl53l0x:
        self._device = PigpioI2c(self._pins, self._where.bus, address)
        return vl53l0x.Vl53l0x(self._device, self._clock_s, time.sleep)

    def _read(self, chip: vl53l0x.Vl53l0x) -> None:
        sample, now_s = chip.read(), self._clock_s()
        if sample is None:
            if now_s - self._news_s > SILENT_S:
                raise I2cError("ranges no more")
            self.due_s = now_s + POLL_S
            return
        self._news_s = now_s
        self.due_s = now_s + vl53l0x.BUDGET_US / 1e6
        bad = sample.status in (vl53l0x.Status.HARDWARE, vl53l0x.Status.NEAR)
        self.seen.note(sample.range_m, sample.status if bad else "ok", now_s)

    def _close_device(self) -> None:
        if self._device is not None:
            with contextlib.suppress(I2cError):
                self._device.close()
            self._device = None

    def close(self) -> None:
        """Frees the daemon's handle and lets the chip sleep. Raises PinsFault."""
        self._chip = None
        self._close_device()
        self.power(False)


class TofThread(PinThread):
    """All VL53L0X of a car."""

    def __init__(
        self, profile: config.Profile, seen: list[Seen], clock_s: Callable[[], float]
    ) -> None:
        super().__init__("tof", profile.pins)
        self._profile, self._seen, self._clock_s = profile, seen, clock_s

    def work(self, pins: PigpioPins) -> None:
        """Whatever sensor is due, in turn."""
        places = self._profile.sensors.tof.values()
        # All are held down before the first is woken: they share an address.
        tofs = [
            Tof(where, seen, pins, self._clock_s)
            for where, seen in zip(places, self._seen, strict=True)
        ]
        self.say("ok")
        while not self.ending:
            first = min(tofs, key=lambda one: one.due_s)
            wait_s = first.due_s - self._clock_s()
            if wait_s > 0:
                self.pause(wait_s)
            else:
                first.turn()
        for tof in tofs:
            tof.close()

    def lost(self) -> None:
        """Their ages go on."""
        for seen in self._seen:
            seen.state = self.state


class SonarThread(PinThread):
    """All HC-SR04 of a car, in turn: they would hear each other."""

    def __init__(
        self, profile: config.Profile, seen: list[Seen], clock_s: Callable[[], float]
    ) -> None:
        super().__init__("sonar", profile.pins)
        self._profile, self._seen, self._clock_s = profile, seen, clock_s

    def work(self, pins: PigpioPins) -> None:
        """One measurement every TURN_S."""
        where = self._profile.pins
        places = list(self._profile.sensors.ultrasound.values())
        echoes = [place.echo for place in places]
        with contextlib.closing(
            PigpioEdges(where.host, where.port, echoes, ANSWER_S)
        ) as edges:
            sensors = [self._sensor(pins, edges, place) for place in places]
            self.say("ok")
            for sensor, seen in self._turns(sensors):
                sample = sensor.measure(self._profile.sensors.celsius)
                good = sample.status in (hcsr04.Status.OK, hcsr04.Status.FAR)
                state = "ok" if good else str(sample.status)
                seen.note(sample.range_m, state, self._clock_s())

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
        while not self.ending:
            for sensor, seen in zip(sensors, self._seen, strict=True):
                next_s = self._clock_s() + hcsr04.TURN_S
                yield sensor, seen
                if self.ending:
                    return
                self.pause(next_s - self._clock_s())

    def lost(self) -> None:
        """Their ages go on."""
        for seen in self._seen:
            seen.state = self.state


class Ranges:
    """What all range sensors of a car say."""

    def __init__(
        self, profile: config.Profile, clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        sensors = profile.sensors
        tofs = [Seen(name, one.bearing_deg) for name, one in sensors.tof.items()]
        sonars = [
            Seen(name, one.bearing_deg) for name, one in sensors.ultrasound.items()
        ]
        self._seen = tofs + sonars
        self._threads: list[PinThread] = []
        if tofs:
            self._threads.append(TofThread(profile, tofs, clock_s))
        if sonars:
            self._threads.append(SonarThread(profile, sonars, clock_s))

    def start(self) -> None:
        """Starts the threads."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Ends them; a second each at most."""
        for thread in self._threads:
            thread.stop()

    async def watch(self) -> None:
        """Raises RuntimeError when a thread has died."""
        await asyncio.gather(*(thread.watch() for thread in self._threads))
        await asyncio.Event().wait()  # a car without range sensors

    def told(self, now_s: float) -> tuple[wire.Range, ...]:
        """One entry a sensor, in the profile's order."""
        return tuple(seen.told(now_s) for seen in self._seen)
