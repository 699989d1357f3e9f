"""One bridge of an MX1508, pin by pin. Time is passed in; nothing here waits.

Inputs and what they do, by the sheets of its family (MX1616, TC1508A; that 1/1 brakes
is to be verified on each batch of clones):

    forward  reverse   state
       0        0      off: coasts
      PWM       0      forward
       0       PWM     reverse
       1        1      brake: both low sides on

Both inputs are on in no other state, and on the way between two states they are on one
at a time only: a running input is switched off before the other one is touched, and
the brake is set and released in the same instant for both.
"""

import enum

from fpvcar.config import Motor
from fpvcar.devices.pins import Pins


class Drive(enum.IntEnum):
    """What a bridge does; the sign of a duty for the two directions."""

    REVERSE = -1
    OFF = 0
    FORWARD = 1
    BRAKE = 2


class Bridge:
    """A motor behind half of an MX1508. Raises what its pins raise.

    A change of direction rests with both inputs low for `rest_s`: it spares the bridge,
    and the supply that the Pi hangs on. A stop brakes for `brake_s`, then lets go.
    """

    def __init__(self, motor: Motor, pins: Pins, now_s: float) -> None:
        """Switches both inputs off, whatever they did before."""
        self._motor, self._pins = motor, pins
        self._inputs = (motor.forward, motor.reverse)
        self._wanted = 0.0
        self._turned = Drive.OFF
        self._since_s = now_s
        self.state = Drive.OFF
        for gpio in self._inputs:
            pins.write(gpio, 0)
        for gpio in self._inputs:
            pins.set_frequency(gpio, motor.pwm_hz)

    def drive(self, duty: float, now_s: float) -> None:
        """Wants `duty` (-1..1) from now on; 0 is a stop. Repeat it at will."""
        self._wanted = duty
        self._settle(now_s)
        if self.state in (Drive.FORWARD, Drive.REVERSE):
            self._run()  # again even if unchanged: the dead man may have cut it

    def tick(self, now_s: float) -> None:
        """Does what is due by now: lets go of a brake, ends a rest."""
        before = self.state
        self._settle(now_s)
        if self.state != before and self.state in (Drive.FORWARD, Drive.REVERSE):
            self._run()

    @property
    def due_s(self) -> float | None:
        """When `tick` has something to do, if nothing else happens."""
        if self.state == Drive.BRAKE:
            return self._since_s + self._motor.brake_s
        if self.state == Drive.OFF and self._wanted:
            return self._since_s + self._motor.rest_s
        return None

    def _settle(self, now_s: float) -> None:
        """Goes from the present state towards the wanted one, as far as time allows."""
        goal = _direction(self._wanted)
        if self.state == Drive.BRAKE:
            if goal or now_s >= self._since_s + self._motor.brake_s:
                self._pins.write_together(self._inputs, 0)
                self._enter(Drive.OFF, now_s)
        elif self.state not in (Drive.OFF, goal):
            self._pins.write(self._active(), 0)
            brakes = goal == Drive.OFF and self._motor.brake_s > 0.0
            if brakes:
                self._pins.write_together(self._inputs, 1)
            self._enter(Drive.BRAKE if brakes else Drive.OFF, now_s)
        if self.state == Drive.OFF and goal and self._rested(goal, now_s):
            self._enter(goal, now_s)
            self._turned = goal

    def _rested(self, goal: Drive, now_s: float) -> bool:
        turns_on = self._turned in (Drive.OFF, goal)
        return turns_on or now_s >= self._since_s + self._motor.rest_s

    def _enter(self, state: Drive, now_s: float) -> None:
        self.state, self._since_s = state, now_s

    def _active(self) -> int:
        forward, reverse = self._inputs
        return forward if self.state == Drive.FORWARD else reverse

    def _run(self) -> None:
        self._pins.pwm(self._active(), abs(self._wanted))


def _direction(duty: float) -> Drive:
    if duty == 0.0:
        return Drive.OFF
    return Drive.FORWARD if duty > 0.0 else Drive.REVERSE
