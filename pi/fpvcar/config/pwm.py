"""Checks of PWM: its frequency by back end, current of its pulses, pins with the kernel's PWM."""

import math
from typing import NamedTuple

from fpvcar.config.base import ConfigError
from fpvcar.config.motors import L298n, Mx1508, ServoMotor
from fpvcar.config.schema import Profile

PWM_GROUPS = ((12, 18), (13, 19))
"""GPIO that share a channel of the PWM of a Pi Zero to 4."""
RESISTORS = [
    round(ohm * 10**decade, 2)
    for decade in (-1, 0, 1)
    for ohm in (1.0, 1.2, 1.5, 1.8, 2.2, 2.7, 3.3, 3.9, 4.7, 5.6, 6.8, 8.2)
]
"""Series E12 from 0.1 to 82 Ω."""
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
    def cure(self) -> str:
        """Remedy as text, for messages: resistor, battery or board."""
        ohm = self.bridge_ohm + self.winding_ohm
        resistor_ohm = next(each for each in RESISTORS if each >= self.supply_v / self.peak_a - ohm)
        lost_w = (self.supply_v / (ohm + resistor_ohm)) ** 2 * resistor_ohm * self.top_duty
        most_v = self.peak_a * ohm
        return (
            f"a resistor of {resistor_ohm:g} Ω for {math.ceil(lost_w)} W in the motor's lead (then "
            f"{self.place}.winding_ohm = {self.winding_ohm + resistor_ohm:.4g}); or a battery of "
            f"at most {math.floor(most_v * 10) / 10:g} V when full; or PWM of 4000 Hz: pigpiod "
            "(not on a Pi 5), or the kernel's PWM (pins.pwm); or a motor HAT"
        )

    def __str__(self) -> str:
        return (
            f"{self.place}: PWM pulses at {self.hz} Hz draw {self.stall_a:.1f} A from "
            f"{self.supply_v:g} V if the motor stalls; the peak current of an MX1508 is "
            f"{self.peak_a:g} A; use {self.cure}"
        )


def slow_pulses(profile: Profile, most_hz: int | None) -> list[str]:
    """Return warnings for motors with a PWM above `most_hz`, the back end's limit (None:
    unlimited)."""
    return [
        f"motors.{name}.pwm_hz = {motor.pwm_hz}: limited to {most_hz} Hz, as software switches "
        "the pins; for more: pigpiod, or the kernel's PWM (pins.pwm)"
        for name, motor in profile.motors.named
        if isinstance(motor, Mx1508 | L298n) and _hz(profile, motor, most_hz) < motor.pwm_hz
    ]


def over_peak(profile: Profile, most_hz: int | None) -> list[OverPeak]:
    """Return the motors that would, if stalled, draw PWM pulses above their bridge's limit."""
    supply_v = profile.battery.full_v
    overloads = []
    for name, motor in profile.motors.named:
        if not isinstance(motor, Mx1508):
            continue
        hz, place = _hz(profile, motor, most_hz), f"motors.{name}"
        stall_a, peak_a = motor.stall_a(supply_v), motor.peak_a
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
            for group in groups:
                if not seen.isdisjoint(group):
                    raise ConfigError(
                        f"pins.pwm: GPIO {_numbers(set(group))} share a channel: expected one of "
                        "them"
                    )
            seen.add(gpio)
    if pwm:
        raise ConfigError(
            f"pins.pwm: GPIO {_numbers(pwm)}: expected PWM inputs of motors or the signal of a "
            "servo (L298N: only its enable)"
        )


def _numbers(gpios: set[int]) -> str:
    return ", ".join(map(str, sorted(gpios)))
