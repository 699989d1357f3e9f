"""Checks of PWM: its frequency by back end, current of its pulses, pins with the kernel's PWM."""

import math
from typing import NamedTuple

from fpvcar.config.base import ConfigError
from fpvcar.config.motors import L298n, Mx1508, ServoMotor
from fpvcar.config.schema import Profile
from fpvcar.runtime.texts import Phrase, Text

LEAD_RESISTOR = Phrase(
    "lead_resistor",
    "{place} is not driven: PWM pulses at {hz} Hz draw {stall_a} A from {supply_v} V if the "
    "motor stalls, and its bridge bears {peak_a} A; solder a resistor of {ohm} Ω for {watts} "
    "W into the motor's lead, then confirm it: sudo fpvcar setup",
)

PWM_GROUPS = ((12, 18), (13, 19))
"""GPIO that share a channel of the PWM of a Pi Zero to 4."""
RESISTORS = [
    round(ohm * 10**decade, 2)
    for decade in (-1, 0, 1)
    for ohm in (1.0, 1.2, 1.5, 1.8, 2.2, 2.7, 3.3, 3.9, 4.7, 5.6, 6.8, 8.2)
]
"""Series E12 from 0.1 to 82 Ω."""
MOST_HZ = 100
"""Fastest PWM of the kernel's pins, made by a thread. Two motors then have 400 edges per second:
1.3 % of a core of a busy x86-64; a Zero 2 W is ten times slower."""
SMOOTH_HZ = 2000
"""PWM frequency below which the current of a small motor (0.34 mH) follows each pulse."""


class OverPeak(NamedTuple):
    """Motor that may draw more current from its bridge than the bridge bears."""

    place: str
    hz: int
    stall_a: float
    supply_v: float
    peak_a: float
    bridge_ohm: float
    winding_ohm: float
    top_duty: float

    @property
    def resistor_ohm(self) -> float:
        """Resistor of the series E12 that limits the current to the bridge's peak."""
        least = self.supply_v / self.peak_a - self.bridge_ohm - self.winding_ohm
        return next(ohm for ohm in RESISTORS if ohm >= least)

    def resistor_w(self, ohm: float) -> int:
        """Return the power that a resistor must bear while the motor is stalled."""
        stall_a = self.supply_v / (self.bridge_ohm + self.winding_ohm + ohm)
        return math.ceil(stall_a**2 * ohm * self.top_duty)

    @property
    def most_v(self) -> float:
        """Voltage of a full battery that needs no resistor, rounded down."""
        return math.floor(self.peak_a * (self.bridge_ohm + self.winding_ohm) * 10) / 10

    def values(self) -> dict[str, str | int]:
        """Return the values of its texts."""
        return {
            "place": self.place,
            "hz": self.hz,
            "stall_a": f"{self.stall_a:.1f}",
            "supply_v": f"{self.supply_v:g}",
            "peak_a": f"{self.peak_a:g}",
            "ohm": f"{self.resistor_ohm:g}",
            "watts": self.resistor_w(self.resistor_ohm),
        }

    def __str__(self) -> str:
        return str(self.text)

    @property
    def text(self) -> Text:
        """Refusal to drive this motor, with the next step."""
        return LEAD_RESISTOR(**self.values())


def slow_pulses(profile: Profile, most_hz: int | None) -> list[str]:
    """Return warnings for motors with a PWM above `most_hz`, the back end's limit (None:
    unlimited)."""
    return [
        f"motors.{name}.pwm_hz = {motor.pwm_hz}: limited to {most_hz} Hz, as software switches "
        "the pins; for more: pigpiod, or the kernel's PWM (pins.pwm)"
        for name, motor in profile.motors.named
        if isinstance(motor, Mx1508 | L298n) and _hz(profile, motor, most_hz) < motor.pwm_hz
    ]


def over_peak(profile: Profile, most_hz: int | None, bare: bool = False) -> list[OverPeak]:
    """Return the motors that would, if stalled, draw PWM pulses above their bridge's limit.

    `bare`: without the resistors that the profile names.
    """
    supply_v = profile.battery.full_v
    overloads = []
    for name, motor in profile.motors.named:
        if not isinstance(motor, Mx1508):
            continue
        hz, place = _hz(profile, motor, most_hz), f"motors.{name}"
        resistor_ohm = 0.0 if bare else motor.resistor_ohm
        stall_a = supply_v / (motor.bridge_ohm + motor.winding_ohm + resistor_ohm)
        peak_a = motor.peak_a
        if hz < SMOOTH_HZ and stall_a > peak_a:
            ohms = motor.bridge_ohm, motor.winding_ohm
            top_duty = min(1.0, motor.max_volts / profile.battery.lowest_v)
            overloads.append(OverPeak(place, hz, stall_a, supply_v, peak_a, *ohms, top_duty))
    return overloads


def _hz(profile: Profile, motor: Mx1508 | L298n, most_hz: int | None) -> int:
    """Return the frequency of a motor's PWM, where pins without the kernel's PWM are limited."""
    if most_hz is None or motor.pwm_pins()[0] in profile.pins.pwm:
        return motor.pwm_hz
    return min(motor.pwm_hz, most_hz)


def refuse_kernel_pwm(profile: Profile) -> None:
    """Refuse pins that the kernel's PWM cannot drive, or only half of a motor's pins on it."""
    pwm, seen = set(profile.pins.pwm), set[int]()
    if pwm and profile.pins.backend != "linux":
        raise ConfigError(
            f'pins.pwm = {list(profile.pins.pwm)}: expected pins.backend = "linux", because '
            "pigpiod makes the pulses itself"
        )
    for name, motor in profile.motors.named:
        pins = motor.pwm_pins()
        on_pwm = pwm.intersection(pins)
        pwm -= on_pwm
        if on_pwm and len(on_pwm) < len(pins):
            raise ConfigError(
                f"pins.pwm: GPIO {_numbers(on_pwm)} without {_numbers(set(pins) - on_pwm)}: "
                f"expected both inputs of motors.{name}, or none"
            )
        for gpio in sorted(on_pwm):
            groups = [group for group in PWM_GROUPS if gpio in group]
            if not groups and not isinstance(motor, ServoMotor):
                raise ConfigError(
                    f"pins.pwm: GPIO {gpio} (motors.{name}): expected one of 12 and 18, and one "
                    "of 13 and 19; only those have a PWM"
                )
            _refuse_shared_channel(gpio, seen)
    for gpio in pwm.intersection(servo.signal for servo in profile.servos.values()):
        pwm.discard(gpio)
        _refuse_shared_channel(gpio, seen)
    if pwm:
        raise ConfigError(
            f"pins.pwm: GPIO {_numbers(pwm)}: expected PWM inputs of motors or the signal of a "
            "servo (L298N: only its enable)"
        )


def _refuse_shared_channel(gpio: int, seen: set[int]) -> None:
    """Refuse a pin whose channel an earlier pin has; add it to `seen`."""
    for group in PWM_GROUPS:
        if gpio in group and not seen.isdisjoint(group):
            raise ConfigError(
                f"pins.pwm: GPIO {_numbers(set(group))} share a channel: expected one of them"
            )
    seen.add(gpio)


def _numbers(gpios: set[int]) -> str:
    return ", ".join(map(str, sorted(gpios)))
