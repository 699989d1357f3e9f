"""Checks of a car with an ESC: its end pulses, and the part that stops it on each back end."""

from collections.abc import Iterator

from fpvcar.config.base import ConfigError
from fpvcar.config.motors import LOSS_S, UNSURE_LIMIT, Esc, EscMotor, HatEsc, HatServo
from fpvcar.config.schema import Profile

SPAN_US = 200.0
"""Least distance of an end pulse from neutral."""


def refuse_esc(profile: Profile) -> None:
    """Refuse an ESC that could not be stopped, or whose pulses make no sense."""
    for name, motor in profile.motors.named:
        if isinstance(motor, EscMotor) and name != "drive":
            raise ConfigError(
                f"motors.{name}: an ESC can only drive; expected it in motors.drive, with a servo "
                "in motors.steer"
            )
    esc = profile.motors.esc
    if esc is None:
        return
    _refuse_ends(esc)
    if isinstance(esc, Esc):
        _refuse_pins(profile, esc)
    elif unguarded(profile) and not esc.unguarded:
        raise ConfigError(
            "pca9685.oe is missing: with an ESC expected the GPIO that is wired to OE. Without it "
            "a PCA9685 whose bus fails repeats its last pulse for ever; to drive all the same: "
            "motors.drive.unguarded = true"
        )
    steer = profile.motors.pair[1]
    if isinstance(esc, HatEsc) and isinstance(steer, HatServo) and esc.channel == steer.channel:
        raise ConfigError(f"motors.steer.channel = {steer.channel}: already used by motors.drive")


def unguarded(profile: Profile) -> bool:
    """Return whether nothing stops the ESC when the bus of its PCA9685 fails."""
    return isinstance(profile.motors.esc, HatEsc) and profile.pca9685.oe is None


def _refuse_ends(esc: EscMotor) -> None:
    ahead, back = esc.forward_us - esc.neutral_us, esc.reverse_us - esc.neutral_us
    if ahead * back > 0.0 or min(abs(ahead), abs(back)) < SPAN_US:
        raise ConfigError(
            f"motors.drive.forward_us = {esc.forward_us:g}, reverse_us = {esc.reverse_us:g}: "
            f"expected one at least {SPAN_US:g} below neutral_us = {esc.neutral_us:g}, and the "
            "other one as far above"
        )


def _refuse_pins(profile: Profile, esc: Esc) -> None:
    backend, kernel = profile.pins.backend, f"pins.pwm = [{esc.signal}]"
    if backend == "auto":
        raise ConfigError(
            f'pins.backend = "auto": with an ESC on a GPIO expected "linux" and {kernel}, or '
            '"pigpio": they stop it in different ways'
        )
    if backend == "linux" and esc.signal not in profile.pins.pwm:
        raise ConfigError(
            f"motors.drive.signal = {esc.signal}: expected {kernel} (GPIO 12, 13, 18 or 19), "
            "because a late thread would change the length of the pulses, and so the speed"
        )
    if backend == "pigpio" and esc.esc_loss_s > LOSS_S:
        raise ConfigError(
            f"motors.drive.esc_loss_s = {esc.esc_loss_s:g}: pigpiod that hangs can send no "
            f"neutral, so the ESC itself must stop within {LOSS_S:g} s; measure it, or choose "
            f'pins.backend = "linux" and {kernel}'
        )


def esc_warnings(profile: Profile) -> Iterator[str]:
    """Yield warnings about an ESC that is driven with less than all safeguards."""
    esc = profile.motors.esc
    if esc is None:
        return
    if esc.esc_loss_s > LOSS_S:
        yield (
            f"motors.drive.esc_loss_s = {esc.esc_loss_s:g}: without pulses the ESC drives on for "
            f"that long, so the throttle is limited to {UNSURE_LIMIT:g}; measure it with the "
            f"wheels in the air (hardware/first-drive.md), or use an ESC with {LOSS_S:g} s or less"
        )
    if unguarded(profile):
        yield (
            "motors.drive.unguarded = true: without OE nothing stops the car when the bus of the "
            "PCA9685 fails; wire OE, and set pca9685.oe"
        )
