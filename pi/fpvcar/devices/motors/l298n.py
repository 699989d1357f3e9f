"""Bridge of an L298N, pin by pin (ST data sheet; L298N modules of many makers).

    enable  forward  reverse   state
       0       x        x      off: coasts
      PWM      1        0      forward
      PWM      0        1      reverse
       1       0        0      brake: both low sides on

The inputs change only while the enable is off. Off means all three low, which is also
the state after the dead man has acted. On its way there the enable may be high with
both inputs low, which brakes. On a module the enable's jumper must be removed: it ties
the enable to 5 V, and unequal inputs then drive at full duty.
"""

from fpvcar.config import L298n
from fpvcar.devices.motors.bridge import Bridge, Drive
from fpvcar.devices.pins import Pins


class L298nBridge(Bridge):
    """Motor behind one half of an L298N."""

    def __init__(self, motor: L298n, pins: Pins) -> None:
        """Switch the bridge off from any previous state."""
        super().__init__(motor)
        self._pins, self._enable = pins, motor.enable
        self._inputs = (motor.forward, motor.reverse)
        for gpio in motor.pins():
            pins.write(gpio, 0)
        pins.set_frequency(self._enable, motor.pwm_hz)

    def _off(self) -> None:
        self._pins.write(self._enable, 0)
        self._pins.write_together(self._inputs, 0)

    def _brake(self) -> None:
        self._pins.write(self._enable, 1)

    def _run(self, duty: float) -> None:
        forward, reverse = self._inputs
        self._pins.write(forward if self.state == Drive.FORWARD else reverse, 1)
        self._pins.pwm(self._enable, duty)


DRIVER = L298nBridge
