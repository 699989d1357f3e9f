"""Battery reading: charge, age, and faults of the sensor."""

import contextlib
import math
import time
from collections.abc import Sequence

from msgspec import Struct

from fpvcar import config
from fpvcar.devices import backends
from fpvcar.devices.chips.ina219 import Ina219, Reading
from fpvcar.devices.i2c import I2cDevice, I2cError, Open
from fpvcar.devices.outlier_filter import NOISY, NoiseFilter
from fpvcar.devices.pins import PinsFault
from fpvcar.runtime.clock import Clock
from fpvcar.runtime.texts import Phrase, fault_text
from fpvcar.runtime.workers import Worker
from fpvcar.wire import telemetry

INA219_SILENT = Phrase("ina219_silent", "INA219: no new average for {seconds} s")

BATTERY_EVERY_S = 0.078
"""Interval of readings: 12 a second, so that no reading is 0.1 s old, and longer than an average
takes."""
SILENT_S = 0.5
"""Time without a new average after which an answering chip is set up again."""
AGAIN_S = 2.0
YOUNG_S = 1.0
"""Largest age of a voltage that is used to compute motor duties."""
JUMP_V = 1.5
"""Jump between two averages, to and fro, that indicates a loose contact rather than a driver's
action."""
LOW_SHARE = 0.1
WEAK_SHARE, WEAK_S = 0.9, 2.0
"""A pack below this share of `empty_v` counts as weak, and stays weak for this time. More
current would crash the computer, and a Pi Zero has no detector of under-voltage. The hold time is
needed because a limited motor lets the pack recover, and the limit would end at once."""
STEADY_S = 3.0
"""Time constant of the charge, so that a short spurt does not make a battery appear empty."""


class Charge(Struct, frozen=True):
    """Reading with the charge computed from it; `share` is the remaining charge, 0 to 1."""

    volts: float
    amps: float
    share: float
    low: bool


class Gauge:
    """Computes the remaining charge of the battery from its voltage. Pure."""

    def __init__(self, battery: config.Battery) -> None:
        self._battery = battery
        self._steady_v: float | None = None
        self._at_s = 0.0

    def add(self, reading: Reading, now_s: float) -> Charge:
        """Add a reading. `share` and `low` follow the voltage of the last seconds, `volts` is
        the present one."""
        if self._steady_v is None:
            self._steady_v = reading.volts
        weight = -math.expm1((self._at_s - now_s) / STEADY_S)
        self._steady_v += (reading.volts - self._steady_v) * min(max(weight, 0.0), 1.0)
        self._at_s = now_s
        span_v = self._battery.full_v - self._battery.empty_v
        at = (self._steady_v - self._battery.empty_v) / span_v
        share = on_curve(self._battery.curve, min(max(at, 0.0), 1.0))
        return Charge(reading.volts, reading.amps, share, share <= LOW_SHARE)


def on_curve(curve: Sequence[float], at: float) -> float:
    """Return the value at 0..1 of the way along a curve of even steps."""
    step, part = divmod(at * (len(curve) - 1), 1.0)
    low, high = curve[int(step)], curve[min(int(step) + 1, len(curve) - 1)]
    return low + (high - low) * part


class BatterySensor(Worker):
    """Battery sensor, read 12 times a second in a thread of its own.

    Each reading costs one wake. If the chip is absent, refuses or is stuck, the thread reports the
    fault with the age of the last reading, and retries.
    """

    def __init__(self, profile: config.Profile, clock_s: Clock = time.monotonic) -> None:
        super().__init__("battery")
        self.readings = 0
        self._profile, self._clock_s = profile, clock_s
        self._gauge, self._noise = Gauge(profile.battery), NoiseFilter(JUMP_V)
        self._last: tuple[Charge, float] | None = None
        self._weak_s = -math.inf

    def tune(self, profile: config.Profile) -> None:
        """Compute the charge by this version of the car's profile from now on."""
        self._profile, self._gauge = profile, Gauge(profile.battery)

    def status(self, now_s: float) -> telemetry.Battery | None:
        """Return the last reading and its age; None for a car without this sensor."""
        if self._profile.battery.address is None:
            return None
        if self._last is None:
            return telemetry.Battery(None, None, None, False, None, self.state)
        charge, at_s = self._last
        age_s = max(0.0, now_s - at_s)
        return telemetry.Battery(
            charge.volts, charge.amps, charge.share, charge.low, age_s, self.state
        )

    def volts(self, now_s: float) -> float | None:
        """Return the voltage; None if it is older than YOUNG_S."""
        if self._last is None or now_s - self._last[1] > YOUNG_S:
            return None
        return self._last[0].volts

    def weak(self, now_s: float) -> bool:
        """Return whether the pack has sagged within the last WEAK_S."""
        return now_s - self._weak_s <= WEAK_S

    # Thread

    def live(self) -> None:
        """Read the sensor by the profile's back end. Raises PinsFault."""
        if self._profile.battery.address is None:
            self.set_state("none")
            while not self.ending:
                self.pause(3600.0)
        else:
            with backends.open_i2c(self._profile) as opens:
                self._watch(opens, self._profile.battery.address)

    def _watch(self, opens: Open, address: int) -> None:
        while not self.ending:
            try:
                self._measure(opens(self._profile.battery.bus, address))
            except I2cError as fault:
                self.set_state(fault_text(fault))
                self.pause(AGAIN_S)

    def _measure(self, device: I2cDevice) -> None:
        """Read the chip until `ending`. Raises I2cError, PinsFault."""
        try:
            chip = Ina219(device, self._profile.battery.shunt_ohm)
            news_s = now_s = self._clock_s()
            while not self.ending:
                next_s = now_s + BATTERY_EVERY_S
                self.rest()
                after_s = max(0.0, next_s - self._clock_s())
                if after_s > device.patience_s:
                    self.pause(after_s)
                    after_s = 0.0
                reading, now_s = chip.read(after_s), self._clock_s()
                if reading is not None:
                    self._take(reading, now_s)
                    news_s = now_s
                elif now_s - news_s > SILENT_S:
                    raise I2cError(INA219_SILENT(seconds=SILENT_S))
        finally:
            with contextlib.suppress(PinsFault, I2cError):
                device.close()

    def _take(self, reading: Reading, now_s: float) -> None:
        """Process a reading; a noisy one updates neither the charge nor its age."""
        if self._noise.add(reading.volts):
            self.set_state(NOISY)
            return
        self._last = self._gauge.add(reading, now_s), now_s
        if reading.volts < WEAK_SHARE * self._profile.battery.empty_v:
            self._weak_s = now_s
        self.readings += 1
        self.set_state("ok")
