"""Behaviour of each motor's bridge for the levels of its pins, chip by chip. Pure."""

import math
import time
from collections.abc import Callable
from typing import NamedTuple

from fpvbench.soc import MODE_OUTPUT, Soc
from fpvcar.config import (
    HAT_CHANNELS,
    AimServo,
    AnyMotor,
    DcMotor,
    EscMotor,
    HatEsc,
    HatServo,
    L298n,
    MotorHat,
    Motors,
    Mx1508,
    Servo,
)


class Bridge(NamedTuple):
    """H-bridge over a PWM period, as shares of the time.

    `drive` is forward minus reverse (-1..1), `brake` the winding shorted, `coast` the
    bridge off (high-Z). PWMs of one chip start together, so inputs overlap.
    """

    drive: float = 0.0
    brake: float = 0.0
    coast: float = 1.0


class ServoState(NamedTuple):
    """Steering servo in place of a motor: the angle of its pulses, None without
    pulses, which leaves it in place."""

    angle_rad: float | None = None


class Bridges(NamedTuple):
    """Both motors of a car: drive and steering, or left and right."""

    drive: Bridge = Bridge()
    steer: Bridge = Bridge()
    servo: ServoState | None = None
    """Servo that steers in place of the second bridge."""
    differential: bool = False
    """True for left and right motors without steering."""


class Losses(NamedTuple):
    """Voltage loss of a bridge: a constant `drop_v`, and its resistance."""

    ohm: float = 1.6
    """MX1508: both switches of the path together; it drops 1.6 V/A. With the resistor in a lead."""
    drop_v: float = 0.0
    pwm_hz: float = 4000.0


def pin_pulse_us(soc: Soc, gpio: int) -> float:
    """Return the length of the servo pulses on a pin; 0 without pulses."""
    pin = soc.pin[gpio]
    return float(pin.duty() * (pin.pwm & 0xFFFFFFFF))


def hat_pulse_us(soc: Soc, channel: int) -> float:
    """Return the length of the servo pulses on an output of the PCA9685; 0 without pulses."""
    return float(soc.hat.duty(channel) * soc.hat.period_us())


def aimed_deg(soc: Soc, servo: AimServo) -> float | None:
    """Return the angle of a servo that does not steer, by its pulses; None without pulses."""
    if servo.signal is not None:
        pulse_us = pin_pulse_us(soc, servo.signal)
    else:
        assert servo.channel is not None
        pulse_us = hat_pulse_us(soc, servo.channel)
    return servo.deg(pulse_us) if pulse_us else None


def mx1508(forward: float, reverse: float) -> Bridge:
    """Return the state: 1/0 forward, 0/1 reverse, 1/1 brake, 0/0 high-Z. Duties 0 to 1."""
    brake = min(forward, reverse)
    return Bridge(forward - reverse, brake, 1.0 - max(forward, reverse))


def l298n(enable: float, forward: float, reverse: float) -> Bridge:
    """Return the state: off without the enable; otherwise unequal inputs drive,
    equal ones brake."""
    drive = min(forward, enable) - min(reverse, enable)
    return Bridge(drive, enable - abs(drive), 1.0 - enable)


def tb6612(pwm: float, forward: float, reverse: float) -> Bridge:
    """Return the state: unequal inputs drive while PWM is high and brake while it is
    low; both inputs on brake, both off are high-Z. The inputs are steady."""
    if forward and reverse:
        return Bridge(0.0, 1.0, 0.0)
    if not forward and not reverse:
        return Bridge()
    return Bridge(pwm if forward else -pwm, 1.0 - pwm, 0.0)


class Chip(NamedTuple):
    """Model of a chip. `bridge` takes the duties of the pins in the order of the motor's `pins`."""

    bridge: Callable[..., Bridge]
    losses: Losses


CHIPS: dict[type[DcMotor], Chip] = {
    Mx1508: Chip(mx1508, Losses()),
    # bipolar: typically 1.8 V at 1 A (data sheet), mostly independent of the current
    L298n: Chip(l298n, Losses(ohm=0.8, drop_v=1.0)),
    MotorHat: Chip(tb6612, Losses(ohm=0.5)),  # Toshiba: 0.5 ohm, high and low side
}


class Wiring:
    """Connection of outputs and bridges, by the profile. `invert` swaps a motor's
    leads; `balance` makes one side weaker than the other."""

    def __init__(
        self, motors: Motors, oe: int | None = None, hat_hz: int = 1526, armed: bool = True
    ) -> None:
        """`oe` is the GPIO at the OE of a PCA9685, `hat_hz` its frequency. `armed`: an ESC is armed
        already, as for an observer that begins in the middle of a drive."""
        from fpvbench.world.esc import EscModel  # not above: it needs Bridge

        self._motors, self._oe, self._hat_hz = motors.pair, oe, hat_hz
        self._differential = motors.differential
        self._weaker = max(-motors.balance, 0.0), max(motors.balance, 0.0)
        self.esc = EscModel(motors.esc, armed) if motors.esc else None

    @property
    def losses(self) -> tuple[Losses, Losses]:
        """Return the losses of the bridges: drive motor and steering, or left and right."""
        drive, steer = map(self._losses, self._motors)
        return drive, steer

    def _losses(self, motor: AnyMotor) -> Losses:
        if not isinstance(motor, DcMotor):
            return Losses()
        hz = self._hat_hz if isinstance(motor, MotorHat) else motor.pwm_hz
        losses = CHIPS[type(motor)].losses
        return losses._replace(pwm_hz=hz, ohm=losses.ohm + motor.resistor_ohm)

    def bridges(self, soc: Soc) -> Bridges:
        """Return the state of the bridges for the present pins."""
        first, second = self._motors
        if isinstance(second, Servo | HatServo):
            turned = self._turned(second, soc)
            return Bridges(self._bridge(first, soc), servo=turned)
        left_bridge, right_bridge = self._bridge(first, soc), self._bridge(second, soc)
        if self._differential:
            left, right = self._weaker
            left_bridge = left_bridge._replace(drive=left_bridge.drive * (1.0 - left))
            right_bridge = right_bridge._replace(drive=right_bridge.drive * (1.0 - right))
        return Bridges(left_bridge, right_bridge, differential=self._differential)

    def _bridge(self, motor: AnyMotor, soc: Soc) -> Bridge:
        if isinstance(motor, EscMotor):
            assert self.esc is not None
            state = self.esc.step(self.pulse_us(motor, soc), time.monotonic())
            return state._replace(drive=-state.drive) if motor.invert else state
        assert isinstance(motor, DcMotor)
        if isinstance(motor, MotorHat):
            on = self._enabled(soc)
            duties = [soc.hat.duty(channel) * on for channel in HAT_CHANNELS[motor.port]]
        else:
            duties = [min(soc.pin[gpio].duty(), 1.0) for gpio in motor.pins()]
        state = CHIPS[type(motor)].bridge(*duties)
        return state._replace(drive=-state.drive) if motor.invert else state

    def _turned(self, servo: Servo | HatServo, soc: Soc) -> ServoState:
        pulse_us = self.pulse_us(servo, soc)
        return ServoState(math.radians(servo.deg(pulse_us)) if pulse_us else None)

    def pulse_us(self, motor: Servo | HatServo | EscMotor, soc: Soc) -> float:
        """Return the width of the pulses at a servo or an ESC, 0 for none."""
        if isinstance(motor, HatServo | HatEsc):
            return hat_pulse_us(soc, motor.channel) * self._enabled(soc)
        return pin_pulse_us(soc, motor.output)

    def _enabled(self, soc: Soc) -> bool:
        """Return True if OE is enabled: its wire has a pull-up, so a low output enables it."""
        return self._oe is None or (
            soc.pin[self._oe].mode == MODE_OUTPUT and not soc.pin[self._oe].out
        )
