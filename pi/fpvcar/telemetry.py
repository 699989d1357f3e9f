"""What is slow and harmless on the pins: lights and the battery."""

import contextlib
import math
import time
from collections.abc import Callable, Generator

from fpvcar import config, lights, wire
from fpvcar.devices.i2c import I2cError, PigpioI2c
from fpvcar.devices.ina219 import Ina219, Reading
from fpvcar.devices.pigpio_pins import PigpioPins
from fpvcar.devices.pins import Pins, PinsFault
from fpvcar.pin_thread import PinThread

BATTERY_EVERY_S = 0.2
SENSOR_RETRY_S = 2.0
LOW_SHARE = 0.1
STEADY_S = 3.0
"""Time constant of the charge: a spurt does not make a battery empty."""


class Gauge:
    """Readings -> what is left in the battery, by its voltage. Pure."""

    def __init__(self, battery: config.Battery) -> None:
        self._battery = battery
        self._steady_v: float | None = None
        self._at_s = 0.0

    def add(self, reading: Reading, now_s: float) -> wire.Battery:
        """`share` and `low` follow the voltage of the last seconds, `volts` is now."""
        if self._steady_v is None:
            self._steady_v = reading.volts
        weight = -math.expm1((self._at_s - now_s) / STEADY_S)
        self._steady_v += (reading.volts - self._steady_v) * min(max(weight, 0.0), 1.0)
        self._at_s = now_s
        span_v = self._battery.full_v - self._battery.empty_v
        share = (self._steady_v - self._battery.empty_v) / span_v
        share = min(max(share, 0.0), 1.0)
        return wire.Battery(reading.volts, reading.amps, share, share <= LOW_SHARE)


class Board(PinThread):
    """Lights and battery of one car. `battery` is None while no sensor answers."""

    def __init__(
        self, profile: config.Profile, clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__("board", profile.pins)
        self.battery: wire.Battery | None = None
        self._profile, self._clock_s = profile, clock_s
        self._head = self._reversing = False

    def set_head(self, on: bool) -> None:
        """Head lights."""
        self._head = on
        self.wake()

    def set_reversing(self, on: bool) -> None:
        """Rear lights: they shine while the car reverses."""
        if on != self._reversing:
            self._reversing = on
            self.wake()

    # --- the thread ---

    def work(self, pins: PigpioPins) -> None:
        """Shows the lights and reads the battery."""
        shown: dict[int, int] = {}
        with contextlib.closing(self._readings(pins)) as readings:
            while not self.ending:
                self._show(pins, shown, self._levels())
                self.battery = next(readings)
                self.pause(BATTERY_EVERY_S)
        self._show(pins, shown, dict.fromkeys(shown, 0))

    def lost(self) -> None:
        """An old reading is no reading."""
        self.battery = None

    def _levels(self) -> dict[int, int]:
        return lights.levels(self._profile.lights, self._head, self._reversing)

    def _show(self, pins: Pins, shown: dict[int, int], levels: dict[int, int]) -> None:
        for gpio, level in levels.items():
            if shown.get(gpio) != level:
                pins.write(gpio, level)
                shown[gpio] = level

    def _readings(self, pins: PigpioPins) -> Generator[wire.Battery | None, None, None]:
        """One after the other for ever, None while the sensor is absent."""
        battery = self._profile.battery
        while battery.address is None:
            self.say("ok")
            pins.call("tick", pins.client.get_current_tick)  # is it still there?
            yield None
        while True:
            try:
                yield from self._measure(pins, battery, battery.address)
            except I2cError as fault:
                self.say(f"no battery sensor: {fault}")
            again_s = self._clock_s() + SENSOR_RETRY_S
            while self._clock_s() < again_s:
                pins.call("tick", pins.client.get_current_tick)
                yield None

    def _measure(
        self, pins: PigpioPins, battery: config.Battery, address: int
    ) -> Generator[wire.Battery | None, None, None]:
        device, gauge = PigpioI2c(pins, battery.bus, address), Gauge(battery)
        try:
            chip = Ina219(device, battery.shunt_ohm)
            yield None  # its first average takes 70 ms
            self.say("ok")
            while True:
                yield gauge.add(chip.read(), self._clock_s())
        finally:
            with contextlib.suppress(PinsFault, I2cError):
                device.close()
