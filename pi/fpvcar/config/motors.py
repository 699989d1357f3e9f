"""What moves a car, in its profile: motors, servos, and the chip that some hang on."""

from typing import Annotated

from msgspec import Meta

from fpvcar.config.base import ConfigError, Gpio, LowGpio, Section, Share


class Motor(Section, frozen=True, tag_field="driver"):
    """What moves the car, or its front wheels; `driver` says what it hangs on, half of
    an MX1508 unless said. A servo steers; what drives is a motor."""

    invert: bool = False
    """Swaps the two directions of a motor or servo that is mounted the other way
    round."""
    slew_per_s: Annotated[float, Meta(gt=0, le=1000)] = 1000.0
    """How fast it may rise (1 = from stand to full in a second): a soft start."""
    trim: Annotated[float, Meta(ge=-0.5, le=0.5)] = 0.0
    """Evens out a motor that is stronger one way: + favours forward (left)."""

    def pins(self) -> tuple[int, ...]:
        """The GPIO that can move it."""
        return ()


class DcMotor(Motor, frozen=True):
    """A motor with brushes behind a bridge."""

    dead_band: Share = 0.0
    """Duty below which the motor does not turn; the smallest one that is used."""
    max_volts: Annotated[float, Meta(gt=0, le=24)] = 3.0
    """Mean voltage that the motor bears; duty is limited to max_volts / battery."""
    brake_s: Annotated[float, Meta(ge=0, le=1)] = 0.0
    """How long a stop brakes before it lets go; 0 only lets go."""
    rest_s: Annotated[float, Meta(ge=0, le=0.2)] = 0.03
    """How long a change of direction rests with the bridge off."""
    kick_s: Annotated[float, Meta(ge=0.05, le=2)] = 0.3
    """How long a wish has its full duty; then `hold` of it."""
    hold: Share = 1.0
    """Share of the duty that holds: a motor that steers against its stop draws what
    stalls it for as long as it is held there."""
    winding_ohm: Annotated[float, Meta(ge=0.1, le=100)] = 0.68
    """Resistance of the motor, an FA-130's unless said: supply / (this + the bridge's)
    is the current of each PWM pulse when it stalls. Nothing but warnings uses it."""

    def stall_a(self, supply_v: float) -> float:
        """Current of a slow PWM pulse into the motor that stands."""
        return supply_v / (self.winding_ohm + self.bridge_ohm)

    @property
    def bridge_ohm(self) -> float:
        """Resistance of the bridge; 0 where its data sheet has none."""
        return 0.0

    @property
    def peak_a(self) -> float | None:
        """Most current that the bridge bears for a moment; None: not checked."""
        return None

    @property
    def least_v(self) -> float:
        """The least supply with which the bridge works."""
        return 0.0


class Mx1508(DcMotor, frozen=True, kw_only=True, tag="mx1508"):
    """Half of an MX1508: two inputs, PWM on one, the other low."""

    forward: Gpio
    """Input that drives forward; for steering, left."""
    reverse: Gpio
    """Input that drives backward; for steering, right."""
    pwm_hz: Annotated[int, Meta(ge=50, le=8000)] = 4000
    """Frequency of the PWM; pigpiod takes the nearest that it has, and without it 100
    is the most. A small motor's current follows each pulse below 2000, up to what
    stalls it."""

    def pins(self) -> tuple[int, ...]:
        """Both inputs."""
        return (self.forward, self.reverse)

    @property
    def bridge_ohm(self) -> float:
        """Both transistors in the way of the current."""
        return 1.6

    @property
    def peak_a(self) -> float:
        """Data sheets of clones: 2 to 2.5 A."""
        return 2.0


class L298n(DcMotor, frozen=True, kw_only=True, tag="l298n"):
    """Half of an L298N: two inputs that say which way, PWM on the enable."""

    enable: LowGpio
    """Enable, ENA or ENB, with its jumper removed."""
    forward: Gpio
    """Input that is high to drive forward; for steering, left."""
    reverse: Gpio
    """Input that is high to drive backward; for steering, right."""
    pwm_hz: Annotated[int, Meta(ge=50, le=8000)] = 4000
    """Frequency of the PWM; pigpiod takes the nearest that it has, and without it 100
    is the most."""

    def pins(self) -> tuple[int, ...]:
        """The enable first: without it nothing moves."""
        return (self.enable, self.forward, self.reverse)

    @property
    def least_v(self) -> float:
        """Data sheet: 2.5 V above what an input takes for high, 2.3 V."""
        return 4.8


class MotorHat(DcMotor, frozen=True, kw_only=True, tag="motor-hat"):
    """A motor on M1 to M4 of a HAT with a PCA9685 (see `[pca9685]`) and TB6612."""

    port: Annotated[int, Meta(ge=1, le=4)]
    """N of the HAT's terminals MN."""


HAT_CHANNELS = {1: (8, 10, 9), 2: (13, 11, 12), 3: (2, 4, 3), 4: (7, 5, 6)}
"""Outputs of the chip behind each port: PWM, IN1, IN2 (Adafruit's MotorHAT library;
clones have the same)."""


class ServoMotor(Motor, frozen=True):
    """A servo that steers. At rest it is in its centre; when a car starts it is put
    there first, and without pulses before."""

    centre_us: Annotated[float, Meta(ge=900, le=2100)] = 1500.0
    """Pulse with which the car goes straight on."""
    left_deg: Annotated[float, Meta(ge=0, le=60)] = 30.0
    """How far it turns to the left, so that nothing jams."""
    right_deg: Annotated[float, Meta(ge=0, le=60)] = 30.0
    """How far it turns to the right."""
    us_per_deg: Annotated[float, Meta(ge=2, le=20)] = 10.0
    """How much longer a pulse is for a degree more to the left (`invert`: shorter)."""

    def pulse_us(self, steer: float) -> float:
        """The pulse for -1 (right) to 1 (left)."""
        deg = steer * (self.left_deg if steer > 0.0 else self.right_deg)
        return self.centre_us + (-deg if self.invert else deg) * self.us_per_deg

    def deg(self, pulse_us: float) -> float:
        """Where a pulse turns it; + is left."""
        deg = (pulse_us - self.centre_us) / self.us_per_deg
        return -deg if self.invert else deg


class Servo(ServoMotor, frozen=True, kw_only=True, tag="servo"):
    """A servo on a GPIO."""

    signal: Gpio
    """Output to the servo's signal wire."""

    def pins(self) -> tuple[int, ...]:
        """The signal."""
        return (self.signal,)


class HatServo(ServoMotor, frozen=True, kw_only=True, tag="hat-servo"):
    """A servo on a PCA9685: a servo board, or the free outputs of a motor HAT."""

    channel: Annotated[int, Meta(ge=0, le=15)]
    """Output of the chip; on a motor HAT 0, 1, 14 and 15 are free."""


AnyMotor = Mx1508 | L298n | MotorHat | Servo | HatServo
DEFAULT_DRIVER = "mx1508"
"""Where a motor names no driver: profiles from before there was a second one."""


class Motors(Section, frozen=True):
    """A drive motor and what steers (forward = left); or one motor a side."""

    drive: AnyMotor | None = None
    steer: AnyMotor | None = None
    left: AnyMotor | None = None
    right: AnyMotor | None = None
    turn: Share = 0.5
    """With a motor a side: how fast the wheels turn against each other at most, as a
    share of full throttle."""
    balance: Annotated[float, Meta(ge=-0.5, le=0.5)] = 0.0
    """With a motor a side: by how much of its duty the stronger one is slowed; + is the
    left one, - the right."""

    @property
    def differential(self) -> bool:
        """A motor a side, and nothing that steers."""
        return self.drive is None

    @property
    def pair(self) -> tuple[AnyMotor, AnyMotor]:
        """Drive and steering, or left and right: the order of all duties."""
        first = self.left if self.drive is None else self.drive
        second = self.right if self.steer is None else self.steer
        if first is None or second is None:
            raise ConfigError("motors: expected drive and steer, or left and right")
        return first, second

    @property
    def names(self) -> tuple[str, str]:
        """Of the two, as the profile has them."""
        return ("left", "right") if self.differential else ("drive", "steer")

    @property
    def on_hat(self) -> bool:
        """They hang on a PCA9685, not on GPIO."""
        return any(isinstance(one, MotorHat | HatServo) for one in self.pair)


class Pca9685(Section, frozen=True):
    """The chip of motor HATs and servo boards, for what names it as its driver."""

    bus: Annotated[int, Meta(ge=0, le=255)] = 1
    """I2C bus of the chip: N of /dev/i2c-N."""
    address: Annotated[int, Meta(ge=0x40, le=0x7F)] = 0x60
    """I2C address: 0x60 is Adafruit's motor HAT, 0x6f its clones, 0x40 a servo
    board."""
    pwm_hz: Annotated[int, Meta(ge=24, le=1526)] | None = None
    """Frequency of all 16 outputs: there is one prescaler. Without it 50 if a servo is
    among them, which needs 40 to 60, else 1526: motors at 50 Hz growl and draw more."""
    oe: Gpio | None = None
    """Output to the chip's OE, if it is wired, with 10 kΩ from there to 3.3 V: it stops
    the motors when the bus fails."""
