"""A motor behind an H-bridge, whichever chip that is. Time is passed in; nothing here
waits.

    FORWARD, REVERSE -> OFF -> (rest) -> the other way
                     -> BRAKE -> (brake_s) -> OFF

A chip adds how it goes from one of these states to the next, pin by pin, such that both
of its halves are never on but to brake.
"""

import enum
from abc import ABC, abstractmethod

from fpvcar.config import DcMotor

KICK_STEP = 0.05
"""A wish that grows by so much is a new one, and gets its full duty for a moment."""


class Drive(enum.IntEnum):
    """What a bridge does; the sign of a duty for the two directions."""

    REVERSE = -1
    OFF = 0
    FORWARD = 1
    BRAKE = 2


class Bridge(ABC):
    """A bridge that was just switched off. Raises what its pins raise.

    A change of direction rests with the bridge off for `rest_s`: it spares the bridge,
    and the supply that the Pi hangs on. A stop brakes for `brake_s`, then lets go.
    """

    def __init__(self, motor: DcMotor) -> None:
        self.state = Drive.OFF
        self._brake_s, self._rest_s = motor.brake_s, motor.rest_s
        self._kick_s, self._hold = motor.kick_s, motor.hold
        self._wanted = 0.0
        self._kicked, self._kicked_s = 0.0, 0.0
        """The wish that was last given its full duty, and since when."""
        self._turned = Drive.OFF
        self._since_s = 0.0

    def drive(self, duty: float, now_s: float) -> None:
        """Wants `duty` (-1..1) from now on; 0 is a stop. Repeat it at will."""
        grew = abs(duty) > abs(self._kicked) + KICK_STEP
        if grew or duty * self._kicked <= 0.0:
            self._kicked, self._kicked_s = duty, now_s
        elif abs(duty) < abs(self._kicked):
            self._kicked = duty
        self._wanted = duty
        self._settle(now_s)
        if self.state in (Drive.FORWARD, Drive.REVERSE):
            # again even if unchanged: the dead man may have cut it
            self._run(self._share(now_s))

    def tick(self, now_s: float) -> None:
        """Does what is due by now: lets go of a brake, ends a rest."""
        before = self.state
        self._settle(now_s)
        if self.state != before and self.state in (Drive.FORWARD, Drive.REVERSE):
            self._run(self._share(now_s))

    @property
    def due_s(self) -> float | None:
        """When `tick` has something to do, if nothing else happens."""
        if self.state == Drive.BRAKE:
            return self._since_s + self._brake_s
        if self.state == Drive.OFF and self._wanted:
            return self._since_s + self._rest_s
        return None

    # --- what a chip adds; `state` is still the one that it comes from ---

    @abstractmethod
    def _off(self) -> None:
        """Switches the bridge off: the motor coasts."""

    @abstractmethod
    def _brake(self) -> None:
        """Shorts the motor. The bridge is off."""

    @abstractmethod
    def _run(self, duty: float) -> None:
        """Drives as `state` says. The bridge is off, or runs this way already."""

    def _settle(self, now_s: float) -> None:
        """Goes from the present state towards the wanted one, as far as time allows."""
        goal = _direction(self._wanted)
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
        """The wanted duty; what holds it once the kick is over."""
        held = now_s >= self._kicked_s + self._kick_s
        return abs(self._wanted) * (self._hold if held else 1.0)

    def _rested(self, goal: Drive, now_s: float) -> bool:
        turns_on = self._turned in (Drive.OFF, goal)
        return turns_on or now_s >= self._since_s + self._rest_s

    def _enter(self, state: Drive, now_s: float) -> None:
        self.state, self._since_s = state, now_s


def _direction(duty: float) -> Drive:
    if duty == 0.0:
        return Drive.OFF
    return Drive.FORWARD if duty > 0.0 else Drive.REVERSE
