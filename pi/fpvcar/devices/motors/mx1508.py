"""Bridge of an MX1508, pin by pin.

Inputs and states, from the data sheets of its family (MX1616, TC1508A). That 1/1 brakes
must be verified on each batch of clones:

    forward  reverse   state
       0        0      off: coasts
      PWM       0      forward
       0       PWM     reverse
       1        1      brake: both low sides on

Both inputs are on only for braking. Between two states one pin changes at a time: a
running input is switched off before the other one is touched. The brake sets and
releases both in the same instant.
"""

from fpvcar.config import Mx1508
from fpvcar.devices.motors.bridge import Bridge, Drive
from fpvcar.devices.pins import Pins


class Mx1508Bridge(Bridge):
    """Motor behind one half of an MX1508."""

    def __init__(self, motor: Mx1508, pins: Pins) -> None:
        """Switch both inputs off from any previous state."""
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


DRIVER = Mx1508Bridge
