"""Drivers of motors: behind an H-bridge, independent of the chip, and of servos. Time is an
argument; nothing waits.

    FORWARD, REVERSE -> OFF -> (rest) -> the other direction
                     -> BRAKE -> (brake_s) -> OFF

A chip adds its transitions between these states, pin by pin, such that both halves are
on at the same time only for braking.
"""

import enum
from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib import import_module
from typing import Protocol

from fpvcar.config import DcMotor, EscMotor, Motor, Profile, ServoMotor
from fpvcar.devices.pins import DeadMan, Pins

KICK_STEP = 0.05
"""Growth of the command that counts as a new one and gets full duty for a moment."""


class Drive(enum.IntEnum):
    """State of a bridge; for the two directions it is the sign of the duty."""

    REVERSE = -1
    OFF = 0
    FORWARD = 1
    BRAKE = 2


class Bridge(ABC):
    """Bridge, initially switched off. Raises the exceptions of its pins.

    A change of direction keeps the bridge off for `rest_s`, which spares the bridge and
    the Pi's supply. A stop brakes for `brake_s`, then coasts.
    """

    def __init__(self, motor: DcMotor) -> None:
        self.state = Drive.OFF
        self._brake_s, self._rest_s = motor.brake_s, motor.rest_s
        self._kick_s, self._hold = motor.kick_s, motor.hold
        self._setpoint = 0.0
        self._kicked, self._kicked_s = 0.0, 0.0
        """Last command that got its full duty, and its start time."""
        self._turned = Drive.OFF
        self._since_s = 0.0

    def drive(self, duty: float, now_s: float) -> None:
        """Set the target `duty` (-1..1); 0 is a stop. May be repeated."""
        grew = abs(duty) > abs(self._kicked) + KICK_STEP
        if grew or duty * self._kicked <= 0.0:
            self._kicked, self._kicked_s = duty, now_s
        elif abs(duty) < abs(self._kicked):
            self._kicked = duty
        self._setpoint = duty
        self._settle(now_s)
        if self.state in (Drive.FORWARD, Drive.REVERSE):
            # also if unchanged: the dead man may have cut it
            self._run(self._share(now_s))

    def tick(self, now_s: float) -> None:
        """Do the work due by now: release the brake, end a rest."""
        last_state = self.state
        self._settle(now_s)
        if self.state != last_state and self.state in (Drive.FORWARD, Drive.REVERSE):
            self._run(self._share(now_s))

    @property
    def due_s(self) -> float | None:
        """Time of the next `tick` with work to do, None for never."""
        if self.state == Drive.BRAKE:
            return self._since_s + self._brake_s
        if self.state == Drive.OFF and self._setpoint:
            return self._since_s + self._rest_s
        return None

    # Implemented by a chip; `state` is still the previous state

    @abstractmethod
    def _off(self) -> None:
        """Switch the bridge off: the motor coasts."""

    @abstractmethod
    def _brake(self) -> None:
        """Short the motor. The bridge is off before."""

    @abstractmethod
    def _run(self, duty: float) -> None:
        """Drive in the direction of `state`. The bridge is off, or already runs this way."""

    def _settle(self, now_s: float) -> None:
        """Move from the present state towards the target, as far as time allows."""
        goal = _direction(self._setpoint)
        if self.state == Drive.BRAKE:
            if goal or now_s >= self._since_s + self._brake_s:
                self._off()
                self._enter(Drive.OFF, now_s)
        elif self.state not in (Drive.OFF, goal):
            self._off()
            brakes = goal == Drive.OFF and self._brake_s > 0.0
            if brakes:
                self._brake()
            self._enter(Drive.BRAKE if brakes else Drive.OFF, now_s)
        if self.state == Drive.OFF and goal and self._rested(goal, now_s):
            self._enter(goal, now_s)
            self._turned = goal

    def _share(self, now_s: float) -> float:
        """Return the target duty, reduced to the holding share after the kick."""
        kicked = now_s >= self._kicked_s + self._kick_s
        return abs(self._setpoint) * (self._hold if kicked else 1.0)

    def _rested(self, goal: Drive, now_s: float) -> bool:
        turns_on = self._turned in (Drive.OFF, goal)
        return turns_on or now_s >= self._since_s + self._rest_s

    def _enter(self, state: Drive, now_s: float) -> None:
        self.state, self._since_s = state, now_s


def _direction(duty: float) -> Drive:
    if duty == 0.0:
        return Drive.OFF
    return Drive.FORWARD if duty > 0.0 else Drive.REVERSE


class ServoDriver:
    """Servo that turns to its centre at the first zero, with which every drive
    begins. Before that it gets no pulse and stays put. A stop is the centre, too."""

    due_s: float | None = None

    def __init__(self, motor: ServoMotor, pins: Pins) -> None:
        """Create the driver; it raises the exceptions of its pins."""
        self._motor, self._pins = motor, pins

    def drive(self, duty: float, now_s: float) -> None:
        """Turn to an angle: 1 is `left_deg`, -1 `right_deg`."""
        self._pins.servo(self._motor.output, self._motor.pulse_us(duty))

    def tick(self, now_s: float) -> None:
        """Do nothing: a servo has no timed work."""


class MotorDriver(Protocol):
    """Driver of one motor. Raises the exceptions of its pins."""

    def drive(self, duty: float, now_s: float) -> None:
        """Set the target `duty` (-1..1); 0 is a stop. May be repeated."""

    def tick(self, now_s: float) -> None:
        """Do the work due by now."""

    @property
    def due_s(self) -> float | None:
        """Time of the next `tick` with work to do, None for never."""


def motor_driver(motor: Motor, pins: Pins) -> MotorDriver:
    """Return the driver of a motor: DRIVER of the module here with the name of its chip, or that of
    servos or ESCs. A process loads only the chips of its profile."""
    if isinstance(motor, ServoMotor):
        return ServoDriver(motor, pins)
    if isinstance(motor, EscMotor):
        from fpvcar.devices.motors.esc import EscDriver

        return EscDriver(motor, pins)
    name = str(type(motor).__struct_config__.tag).replace("-", "_")
    driver: MotorDriver = import_module(f"fpvcar.devices.motors.{name}").DRIVER(motor, pins)
    return driver


def motor_drivers(profile: Profile, pins: Pins) -> list[MotorDriver]:
    """Return the drivers of drive motor and steering, or of the left and right motor."""
    return [motor_driver(motor, pins) for motor in profile.motors.pair]


class MotorBoard(Protocol):
    """Motors of one car, switched off, with the dead man that stops them if this process dies.

    A back end without a dead man does not fit this interface, on purpose.
    """

    @property
    def drivers(self) -> Sequence[MotorDriver]:
        """Drivers of drive motor and steering, or of the left and right motor."""

    @property
    def dead_man(self) -> DeadMan:
        """Dead man of these motors, armed."""

    def close(self) -> None:
        """Switch all motors off, then remove the dead man and end the connection.

        If the pins do not answer, the dead man stays: it switches them off. Never
        raises; waits only for pins that have answered so far.
        """
