"""Motor behind an H-bridge, independent of the chip. Time is an argument; nothing waits.

    FORWARD, REVERSE -> OFF -> (rest) -> the other direction
                     -> BRAKE -> (brake_s) -> OFF

A chip adds its transitions between these states, pin by pin, such that both halves are
on at the same time only for braking.
"""

import enum
from abc import ABC, abstractmethod

from fpvcar.config import DcMotor

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
