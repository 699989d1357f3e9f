"""One bridge of an MX1508, pin by pin.

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

from fpvcar.config import Mx1508
from fpvcar.devices.motors.bridge import Bridge, Drive
from fpvcar.devices.pins import Pins


class Mx1508Bridge(Bridge):
    """A motor behind half of an MX1508."""

    def __init__(self, motor: Mx1508, pins: Pins) -> None:
        """Switches both inputs off, whatever they did before."""
        super().__init__(motor)
        self._pins, self._inputs = pins, (motor.forward, motor.reverse)
        for gpio in self._inputs:
            pins.write(gpio, 0)
        for gpio in self._inputs:
            pins.set_frequency(gpio, motor.pwm_hz)

    def _off(self) -> None:
        if self.state == Drive.BRAKE:
            self._pins.write_together(self._inputs, 0)
        else:
            self._pins.write(self._active(), 0)

    def _brake(self) -> None:
        self._pins.write_together(self._inputs, 1)

    def _run(self, duty: float) -> None:
        self._pins.pwm(self._active(), duty)

    def _active(self) -> int:
        forward, reverse = self._inputs
        return forward if self.state == Drive.FORWARD else reverse
