"""Drive hardware in a car's profile: motors, ESCs, servos, and their PWM chip."""

from collections.abc import Iterable
from typing import Annotated, Literal

from msgspec import Meta

from fpvcar.config.base import ConfigError, Gpio, LowGpio, Section, Share


class Motor(Section, frozen=True, tag_field="driver"):
    """Motor that moves the car, or actuator of its front wheels. `driver` names the hardware
    behind it; the default is half of an MX1508. A servo can only steer, an ESC only drive."""

    invert: bool = False
    """Swap the two directions of a motor or servo that is mounted the other way round."""
    slew_per_s: Annotated[float, Meta(gt=0, le=1000)] = 1000.0
    """Largest rise of the output (1 = from stand to full in a second): a soft start."""
    trim: Annotated[float, Meta(ge=-0.5, le=0.5)] = 0.0
    """Compensation for a motor that is stronger one way: + favours forward (left)."""

    def pins(self) -> tuple[int, ...]:
        """GPIO that can move this motor."""
        return ()

    def pwm_pins(self) -> tuple[int, ...]:
        """GPIO with pulses, among `pins`."""
        return self.pins()


class DcMotor(Motor, frozen=True):
    """Brushed motor behind a bridge."""

    dead_band: Share = 0.0
    """Duty below which the motor does not turn; the smallest one that is used."""
    max_volts: Annotated[float, Meta(gt=0, le=24)] = 3.0
    """Mean voltage that the motor bears; duty is limited to max_volts / battery."""
    brake_s: Annotated[float, Meta(ge=0, le=1)] = 0.0
    """Braking time of a stop before the bridge is released; 0 releases at once."""
    rest_s: Annotated[float, Meta(ge=0, le=0.2)] = 0.03
    """Pause with the bridge off at a change of direction."""
    kick_s: Annotated[float, Meta(ge=0.05, le=2)] = 0.3
    """Time at full duty for each command; then `hold` of it."""
    hold: Share = 1.0
    """Share of the duty that holds. A motor that steers against its stop draws its stall current
    for as long as it is held there."""
    winding_ohm: Annotated[float, Meta(ge=0.1, le=100)] = 0.68
    """Resistance of the motor; the default is that of an FA-130. A PWM below 2000 Hz drives full
    battery / (this + `resistor_ohm` + the bridge's) through a stalled motor in each pulse. The
    car does not drive if that exceeds an MX1508's peak current of 2 A."""
    resistor_ohm: Annotated[float, Meta(ge=0, le=100)] = 0.0
    """Resistance of a resistor in the motor's lead. Set it only after soldering the resistor."""

    @property
    def bridge_ohm(self) -> float:
        """Resistance of the bridge; 0 if its data sheet has no value."""
        return 0.0

    @property
    def peak_a(self) -> float | None:
        """Largest current that the bridge bears for a moment; None: not checked."""
        return None

    @property
    def least_v(self) -> float:
        """Lowest supply voltage with which the bridge works."""
        return 0.0


class Mx1508(DcMotor, frozen=True, kw_only=True, tag="mx1508"):
    """Half of an MX1508: two inputs, PWM on one, the other low."""

    forward: Gpio
    """Input that drives forward; for steering, left."""
    reverse: Gpio
    """Input that drives backward; for steering, right."""
    pwm_hz: Annotated[int, Meta(ge=50, le=8000)] = 4000
    """Frequency of the PWM. pigpiod takes the nearest available one; the kernel's pins are
    limited to 100 except those of `pins.pwm`. Below 2000 a small motor's current follows each
    pulse, up to the stall current."""

    def pins(self) -> tuple[int, ...]:
        return (self.forward, self.reverse)

    @property
    def bridge_ohm(self) -> float:
        """Resistance of both transistors in the path of the current."""
        return 1.6

    @property
    def peak_a(self) -> float:
        """Lowest value in data sheets of clones: 2 to 2.5 A."""
        return 2.0


class L298n(DcMotor, frozen=True, kw_only=True, tag="l298n"):
    """Half of an L298N: two inputs for the direction, PWM on the enable."""

    enable: LowGpio
    """Enable, ENA or ENB, with its jumper removed."""
    forward: Gpio
    """Input that is high to drive forward; for steering, left."""
    reverse: Gpio
    """Input that is high to drive backward; for steering, right."""
    pwm_hz: Annotated[int, Meta(ge=50, le=8000)] = 4000
    """Frequency of the PWM. pigpiod takes the nearest available one; the kernel's pins are
    limited to 100 except those of `pins.pwm`."""

    def pins(self) -> tuple[int, ...]:
        """Pins with the enable first: it alone stops the motor."""
        return (self.enable, self.forward, self.reverse)

    def pwm_pins(self) -> tuple[int, ...]:
        return (self.enable,)

    @property
    def least_v(self) -> float:
        """Lowest supply by the data sheet: 2.5 V above an input's high level of 2.3 V."""
        return 4.8


class MotorHat(DcMotor, frozen=True, kw_only=True, tag="motor-hat"):
    """Motor on M1 to M4 of a HAT with a PCA9685 (see `[pca9685]`) and TB6612."""

    port: Annotated[int, Meta(ge=1, le=4)]
    """Number N of the HAT's terminals MN."""


HAT_CHANNELS = {1: (8, 10, 9), 2: (13, 11, 12), 3: (2, 4, 3), 4: (7, 5, 6)}
"""Outputs of the chip behind each port: PWM, IN1, IN2 (Adafruit's MotorHAT library; clones have
the same)."""


class ServoMotor(Motor, frozen=True):
    """Servo that steers. At rest it is centred. At the car's start it gets no pulses at first,
    and is then centred."""

    centre_us: Annotated[float, Meta(ge=900, le=2100)] = 1500.0
    """Pulse for driving straight on."""
    left_deg: Annotated[float, Meta(ge=0, le=60)] = 30.0
    """Largest angle to the left, limited so that the linkage does not jam."""
    right_deg: Annotated[float, Meta(ge=0, le=60)] = 30.0
    """Largest angle to the right."""
    us_per_deg: Annotated[float, Meta(ge=2, le=20)] = 10.0
    """Increase of the pulse per degree to the left (`invert`: decrease)."""

    @property
    def output(self) -> int:
        """GPIO, or output of the PCA9685, with the servo's pulses."""
        raise NotImplementedError

    def pulse_us(self, steer: float) -> float:
        """Return the pulse for -1 (right) to 1 (left)."""
        deg = steer * (self.left_deg if steer > 0.0 else self.right_deg)
        return self.centre_us + (-deg if self.invert else deg) * self.us_per_deg

    def deg(self, pulse_us: float) -> float:
        """Return the angle for a pulse; + is left."""
        deg = (pulse_us - self.centre_us) / self.us_per_deg
        return -deg if self.invert else deg


class Servo(ServoMotor, frozen=True, kw_only=True, tag="servo"):
    """Servo on a GPIO, without a PCA9685."""

    signal: Gpio
    """Output to the servo's signal wire."""

    @property
    def output(self) -> int:
        return self.signal

    def pins(self) -> tuple[int, ...]:
        return (self.signal,)


class HatServo(ServoMotor, frozen=True, kw_only=True, tag="hat-servo"):
    """Servo on a PCA9685: a servo board, or the free outputs of a motor HAT."""

    channel: Annotated[int, Meta(ge=0, le=15)]
    """Output of the chip; on a motor HAT 0, 1, 14 and 15 are free."""

    @property
    def output(self) -> int:
        return self.channel


NEUTRAL_OFF_US = 50.0
"""Largest distance of a calibrated neutral pulse from the profile's, which the parts that stop the
car without `run` send."""
DEAD_BAND_MOST_US = 150.0
ROUNDED_US = 1e-3
"""Tolerance for a pulse that travels as f32."""
PulseUs = Annotated[float, Meta(ge=1000, le=2000)]
LOSS_S = 0.3
"""Longest time for which an ESC may run on without pulses, where no process can send neutral."""
UNSURE_LIMIT = 0.3
"""Share of full throttle with an ESC that runs on for longer than LOSS_S."""


class EscMotor(Motor, frozen=True):
    """Electronic speed control (ESC) of an RC car, with its motor. Its neutral pulse stops the
    motor; without pulses the ESC stops by itself only after `esc_loss_s`."""

    neutral_us: Annotated[float, Meta(ge=1300, le=1700)] = 1500.0
    """Pulse at which the wheels stand."""
    forward_us: PulseUs = 2000.0
    """Pulse of full throttle forward, as taught to the ESC."""
    reverse_us: PulseUs = 1000.0
    """Pulse of full throttle backward, as taught to the ESC."""
    dead_band_us: Annotated[float, Meta(ge=0, le=DEAD_BAND_MOST_US)] = 40.0
    """Distance from neutral at which the wheels begin to turn."""
    arm_s: Annotated[float, Meta(ge=1, le=10)] = 1.0
    """Time of neutral pulses before the first throttle, and again after a gap in the pulses."""
    reverse: Literal["direct", "brake-first", "forward-only"] = "brake-first"
    """Reaction of the ESC to a reverse pulse: "direct" drives backward; "brake-first" brakes
    the first time, and drives backward after neutral; "forward-only" has no reverse."""
    limit: Annotated[float, Meta(ge=0.05, le=1)] = 0.3
    """Largest share of full throttle. Raise it after the first drives."""
    esc_loss_s: Annotated[float, Meta(ge=0.02, le=10)] = 3.0
    """Time for which the wheels turn on after the signal wire is pulled at half throttle. Measure
    it with the wheels in the air (hardware/first-drive.md); the default is the longest known.
    Above 0.3 the throttle is limited to 0.3, and pigpiod is refused."""
    unguarded: bool = False
    """For a PCA9685 without OE: drive although nothing stops the chip when its bus fails."""

    @property
    def output(self) -> int:
        """GPIO, or output of the PCA9685, with the ESC's pulses."""
        raise NotImplementedError

    @property
    def top(self) -> float:
        """Largest share of full throttle that is sent."""
        return self.limit if self.esc_loss_s <= LOSS_S else min(self.limit, UNSURE_LIMIT)

    def refuse_pulses(self, neutral_us: float, dead_band_us: float) -> None:
        """Raise ConfigError for calibrated pulses too far from this profile's."""
        if not abs(neutral_us - self.neutral_us) <= NEUTRAL_OFF_US + ROUNDED_US:  # NaN, too
            raise ConfigError(
                f"motors.drive.neutral_us = {neutral_us:g}: expected at most {NEUTRAL_OFF_US:g} "
                f"from {self.neutral_us:g}, that of the profile; change it there, then restart"
            )
        if not 0.0 <= dead_band_us <= DEAD_BAND_MOST_US:
            raise ConfigError(
                f"motors.drive.dead_band_us = {dead_band_us:g}: expected 0 to {DEAD_BAND_MOST_US:g}"
            )


class Esc(EscMotor, frozen=True, kw_only=True, tag="esc"):
    """ESC on a GPIO, without a PCA9685."""

    signal: LowGpio
    """Output to the ESC's signal wire, with 10 kΩ to ground near the ESC."""

    @property
    def output(self) -> int:
        return self.signal

    def pins(self) -> tuple[int, ...]:
        return (self.signal,)


class HatEsc(EscMotor, frozen=True, kw_only=True, tag="hat-esc"):
    """ESC on a PCA9685, such as a servo board."""

    channel: Annotated[int, Meta(ge=0, le=15)]
    """Output of the chip."""

    @property
    def output(self) -> int:
        return self.channel


AnyMotor = Mx1508 | L298n | MotorHat | Servo | HatServo | Esc | HatEsc
PwmStop = tuple[int, str] | tuple[int, str, int]
"""Pin on the kernel's PWM to switch off: GPIO, device; for an ESC also its neutral pulse in us, for
a servo 0: its pulses end with a whole one."""
ChipStop = tuple[int, int] | tuple[int, int, int, int]
"""PCA9685 to switch off: bus, address; for an ESC also its channel and neutral pulse in us, 0 and 0
for servos without an ESC."""
DEFAULT_DRIVER = "mx1508"
"""Driver of a motor in old profiles, written when there was only this one."""


class Motors(Section, frozen=True):
    """Drive motor and steering actuator (forward = left); or one motor per side."""

    drive: AnyMotor | None = None
    steer: AnyMotor | None = None
    left: AnyMotor | None = None
    right: AnyMotor | None = None
    turn: Share = 0.5
    """For one motor per side: largest speed of the wheels against each other, as a share of full
    throttle."""
    balance: Annotated[float, Meta(ge=-0.5, le=0.5)] = 0.0
    """For one motor per side: share of its duty by which the stronger one is slowed; + is the
    left one, - the right."""
    circle_m: Annotated[float, Meta(ge=0.1, le=20)] | None = None
    """Diameter of the circle that the car's middle drives with full steering and full throttle.
    Without it the page's map of the drive is not to scale."""

    @property
    def differential(self) -> bool:
        """Whether the car has one motor per side and no steering."""
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
        """Names of the pair in the profile."""
        return ("left", "right") if self.differential else ("drive", "steer")

    @property
    def named(self) -> list[tuple[str, AnyMotor]]:
        """Name and motor of the pair."""
        return list(zip(self.names, self.pair, strict=True))

    @property
    def on_hat(self) -> bool:
        """Whether the motors are driven by a PCA9685 instead of GPIO."""
        return any(isinstance(motor, MotorHat | HatServo | HatEsc) for motor in self.pair)

    @property
    def esc(self) -> EscMotor | None:
        """The car's ESC, if it has one."""
        first = self.pair[0]
        return first if isinstance(first, EscMotor) else None

    def servo_pins(self) -> tuple[int, ...]:
        """Return the GPIO of the servo that steers, if it is on one."""
        servos = (motor for motor in self.pair if isinstance(motor, ServoMotor))
        return tuple(gpio for servo in servos for gpio in servo.pins())

    def pwm_stops(self, gpios: Iterable[int], device: str) -> tuple[PwmStop, ...]:
        """Return how to stop those of the pins with the kernel's PWM that belong to a motor. A
        servo is the last: the end of its pulse takes a moment."""
        stops: list[PwmStop] = []
        for gpio in gpios:
            if self.esc is not None and gpio in self.esc.pins():
                stops.append((gpio, device, round(self.esc.neutral_us)))
            elif gpio in self.servo_pins():
                stops.append((gpio, device, 0))
            elif any(gpio in motor.pins() for motor in self.pair):
                stops.append((gpio, device))
        return tuple(sorted(stops, key=lambda stop: stop[2:] == (0,)))

    def chip_stop(self, hat: "Pca9685", servos: bool) -> ChipStop:
        """Return how to stop the PCA9685; `servos`: any of its outputs turns a servo. The neutral
        pulse of an ESC is one for a chip whose clock is 25 MHz."""
        if self.esc is not None:
            neutral_us = round(self.esc.neutral_us * hat.clock)
            return hat.bus, hat.address, self.esc.output, neutral_us
        return (hat.bus, hat.address, 0, 0) if servos else (hat.bus, hat.address)


class Pca9685(Section, frozen=True):
    """Chip of motor HATs and servo boards, for motors and servos that name it as their driver."""

    bus: Annotated[int, Meta(ge=0, le=255)] = 1
    """I2C bus of the chip: N of /dev/i2c-N."""
    address: Annotated[int, Meta(ge=0x40, le=0x7F)] = 0x60
    """I2C address: 0x60 is Adafruit's motor HAT, 0x6f its clones, 0x40 a servo board."""
    pwm_hz: Annotated[int, Meta(ge=24, le=1526)] | None = None
    """Frequency of all 16 outputs, as they share one prescaler. The default is 50 with a servo,
    which needs 40 to 60, and otherwise 1526: motors at 50 Hz growl and draw more."""
    clock: Annotated[float, Meta(ge=0.85, le=1.15)] = 1.0
    """Speed of the chip's own oscillator as a share of 25 MHz: some run several per cent off, and
    all pulses with them. `fpvcar hil` measures it (`pca9685-clock`). By a meter, it is this value
    times the pulse that was set, divided by the measured one."""
    oe: Gpio | None = None
    """Output to the chip's OE, if it is wired, with 1 kΩ from there to 3.3 V: it stops the
    motors when the bus fails."""
