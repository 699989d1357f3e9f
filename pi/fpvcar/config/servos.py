"""Servos in a car's profile that do not steer: pan and tilt, or up to six of any name."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from fpvcar.config.base import ConfigError, Gpio, Section
from fpvcar.config.motors import HAT_CHANNELS, HatEsc, HatServo, MotorHat

if TYPE_CHECKING:
    from fpvcar.config.schema import Profile

SERVOS_MOST = 6
SERVO_HZ = (40, 60)
"""Frequencies of pulses that servos take."""
PULSE_US = (500.0, 2500.0)
"""Shortest and longest pulse; pigpiod refuses others."""
Degrees = Annotated[float, Meta(ge=-135, le=135)]


class AimServo(Section, frozen=True):
    """Servo that does not steer. The second stick, keys and a gamepad turn those called pan and
    tilt; each other one has a slider in the menu. It needs `signal` or `channel`.

    At the car's start it turns to `rest_deg`, at its own speed: its angle is unknown until then.
    """

    signal: Gpio | None = None
    """Output to the servo's signal wire."""
    channel: Annotated[int, Meta(ge=0, le=15)] | None = None
    """Output of the PCA9685 (see `[pca9685]`); on a motor HAT 0, 1, 14 and 15 are free."""
    centre_us: Annotated[float, Meta(ge=900, le=2100)] = 1500.0
    """Pulse for 0 degrees: straight ahead."""
    us_per_deg: Annotated[float, Meta(ge=2, le=20)] = 10.0
    """Increase of the pulse per degree to the left, or up (`invert`: decrease)."""
    invert: bool = False
    """Swap the two directions of a servo that is mounted the other way round."""
    least_deg: Degrees = -60.0
    """Limit to the right, or down: less, if the mount or a cable jams."""
    most_deg: Degrees = 60.0
    """Limit to the left, or up."""
    rest_deg: Degrees = 0.0
    """Angle at the car's start, and of the key R."""
    speed_deg_s: Annotated[float, Meta(ge=5, le=600)] = 120.0
    """Largest speed in degrees per second."""
    center_on_stop: bool = False
    """Whether a stop of the car also turns the servo to `rest_deg`, also one by a failure of `run`.
    Otherwise it holds still."""

    def limited(self, deg: float) -> float:
        """Return the nearest angle within the limits."""
        return min(max(deg, self.least_deg), self.most_deg)

    def pulse_us(self, deg: float) -> float:
        """Return the pulse for an angle within the limits; + is left or up."""
        return self.centre_us + (-deg if self.invert else deg) * self.us_per_deg

    def deg(self, pulse_us: float) -> float:
        """Return the angle for a pulse."""
        deg = (pulse_us - self.centre_us) / self.us_per_deg
        return -deg if self.invert else deg


def channels(profile: "Profile") -> Iterator[tuple[int, str]]:
    """Yield output and key of the servos on the PCA9685."""
    for name, servo in profile.servos.items():
        if servo.channel is not None:
            yield servo.channel, f"servos.{name}.channel"


def chip_turns_servos(profile: "Profile") -> bool:
    """Return whether an ESC or any servo, also one that steers, is on the PCA9685."""
    moves = any(isinstance(motor, HatServo | HatEsc) for motor in profile.motors.pair)
    return moves or any(channels(profile))


def refuse_servos(profile: "Profile") -> None:
    """Raise ConfigError for the first servo that cannot be driven as the profile demands."""
    if len(profile.servos) > SERVOS_MOST:
        raise ConfigError(f"servos: {len(profile.servos)} defined; expected {SERVOS_MOST} at most")
    for name, servo in profile.servos.items():
        _refuse_servo(f"servos.{name}", servo)
    seen = dict(_motor_channels(profile))
    for channel, place in channels(profile):
        if channel in seen:
            raise ConfigError(f"{place} = {channel}: already used by {seen[channel]}")
        seen[channel] = place
    low, high = SERVO_HZ
    if chip_turns_servos(profile) and not low <= profile.hat_hz() <= high:
        raise ConfigError(
            f"pca9685.pwm_hz = {profile.hat_hz()}: expected {low} to {high} for the servo or "
            "ESC; all outputs share one prescaler"
        )
    if any(channels(profile)) and not profile.motors.on_hat and profile.pca9685.oe is not None:
        raise ConfigError(
            f"pca9685.oe = {profile.pca9685.oe}: it stops motors, and this chip has only servos; "
            "expected no oe, and the chip's OE open or at ground"
        )


def _refuse_servo(place: str, servo: AimServo) -> None:
    if (servo.signal is None) == (servo.channel is None):
        raise ConfigError(f"{place}: expected signal (a GPIO) or channel (of a PCA9685)")
    if not servo.least_deg < servo.most_deg:
        raise ConfigError(
            f"{place}.least_deg = {servo.least_deg:g}: expected below most_deg = {servo.most_deg:g}"
        )
    if servo.limited(servo.rest_deg) != servo.rest_deg:
        raise ConfigError(
            f"{place}.rest_deg = {servo.rest_deg:g}: expected {servo.least_deg:g} to "
            f"{servo.most_deg:g}, least_deg to most_deg"
        )
    low_us, high_us = PULSE_US
    for key in ("least_deg", "most_deg"):
        deg = getattr(servo, key)
        pulse_us = servo.pulse_us(deg)
        if not low_us <= pulse_us <= high_us:
            raise ConfigError(
                f"{place}.{key} = {deg:g}: its pulse is {pulse_us:g} us; expected {low_us:g} to "
                f"{high_us:g}"
            )


def _motor_channels(profile: "Profile") -> Iterator[tuple[int, str]]:
    """Yield output and user of the PCA9685's outputs with motors or the steering servo."""
    for name, motor in profile.motors.named:
        if isinstance(motor, MotorHat):
            yield from ((channel, f"motors.{name}") for channel in HAT_CHANNELS[motor.port])
        elif isinstance(motor, HatServo | HatEsc):
            yield motor.channel, f"motors.{name}.channel"
