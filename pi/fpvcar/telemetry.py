"""What is slow and harmless on the pins: lights, sensors' power, the battery.

One thread of `run` owns one connection to pigpiod. A daemon that hangs holds up this
thread only; the event loop reads what it last knew.
"""

import asyncio
import contextlib
import logging
import math
import threading
import time
from collections.abc import Callable, Generator

from fpvcar import config, lights, wire
from fpvcar.devices.i2c import I2cError, PigpioI2c
from fpvcar.devices.ina219 import Ina219, Reading
from fpvcar.devices.pigpio_pins import PigpioPins
from fpvcar.devices.pins import Pins, PinsFault

BATTERY_EVERY_S = 0.2
RETRY_S = 0.5
SENSOR_RETRY_S = 2.0
ANSWER_S = 0.5
WATCH_S = 0.5
LOW_SHARE = 0.1
STEADY_S = 3.0
"""Time constant of the charge: a spurt does not make a battery empty."""
log = logging.getLogger("fpvcar.board")


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


class Board:
    """Lights and battery of one car. Every method returns at once, but `stop`.

    `battery` is None while no sensor answers; `state` is "ok", or says what is wrong.
    """

    def __init__(
        self, profile: config.Profile, clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        self.battery: wire.Battery | None = None
        self.state = "starting"
        self._profile, self._clock_s = profile, clock_s
        self._head = self._reversing = False
        self._ending = False
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="board", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    async def watch(self) -> None:
        """Raises RuntimeError when the thread has died: no car is half alive."""
        while True:
            if not self._thread.is_alive():
                raise RuntimeError("the board's thread has failed")
            await asyncio.sleep(WATCH_S)

    def stop(self) -> None:
        """Switches the lights off and ends the thread; takes a second at most."""
        self._ending = True
        self._wake.set()
        self._thread.join(2 * ANSWER_S)

    def set_head(self, on: bool) -> None:
        """Head lights."""
        self._head = on
        self._wake.set()

    def set_reversing(self, on: bool) -> None:
        """Rear lights: they shine while the car reverses."""
        if on != self._reversing:
            self._reversing = on
            self._wake.set()

    # --- the thread ---

    def _run(self) -> None:
        while not self._ending:
            try:
                pins = self._profile.pins
                connection = PigpioPins(pins.host, pins.port, ANSWER_S)
                with contextlib.closing(connection):
                    self._work(connection)
            except PinsFault as fault:
                self._say(str(fault))
            self.battery = None
            if not self._ending:
                self._wake.wait(RETRY_S)
                self._wake.clear()

    def _work(self, pins: PigpioPins) -> None:
        shown: dict[int, int] = {}
        with contextlib.closing(self._readings(pins)) as readings:
            while not self._ending:
                self._show(pins, shown, self._levels())
                self.battery = next(readings)
                self._wake.wait(BATTERY_EVERY_S)
                self._wake.clear()
        self._show(pins, shown, dict.fromkeys(shown, 0))

    def _levels(self) -> dict[int, int]:
        power = dict.fromkeys(self._profile.sensors.tof_power, 1)
        return power | lights.levels(
            self._profile.lights, self._head, self._reversing
        )  # fmt: skip

    def _show(self, pins: Pins, shown: dict[int, int], levels: dict[int, int]) -> None:
        for gpio, level in levels.items():
            if shown.get(gpio) != level:
                pins.write(gpio, level)
                shown[gpio] = level

    def _readings(self, pins: PigpioPins) -> Generator[wire.Battery | None, None, None]:
        """One after the other for ever, None while the sensor is absent."""
        battery = self._profile.battery
        while battery.address is None:
            self._say("ok")
            pins.call("tick", pins.client.get_current_tick)  # is it still there?
            yield None
        while True:
            try:
                yield from self._measure(pins, battery, battery.address)
            except I2cError as fault:
                self._say(f"no battery sensor: {fault}")
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
            self._say("ok")
            while True:
                yield gauge.add(chip.read(), self._clock_s())
        finally:
            with contextlib.suppress(PinsFault, I2cError):
                device.close()

    def _say(self, state: str) -> None:
        if state != self.state:
            level = logging.INFO if state == "ok" else logging.WARNING
            log.log(level, "%s", state)
        self.state = state
