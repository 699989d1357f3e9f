"""Bridge of a TB6612FNG behind a PCA9685, as on motor HATs (Toshiba data sheet).

    PWM  IN1  IN2   state
     x    0    0     off: coasts
    PWM   1    0     forward; brakes while PWM is low
    PWM   0    1     reverse; brakes while PWM is low
     x    1    1     brake: both low sides on

The HAT ties the standby input high. IN1 and IN2 are adjacent outputs of one chip and change in the
same instant. The inputs determine "off", so the chip's "all outputs off" is off at any PWM.
"""

from fpvcar.config import HAT_CHANNELS, MotorHat
from fpvcar.devices.motors.bridge import Bridge, Drive
from fpvcar.devices.pins import Pins


class MotorHatBridge(Bridge):
    """Motor on one port of the HAT; `pins` are the chip's outputs."""

    def __init__(self, motor: MotorHat, pins: Pins) -> None:
        """Switch the bridge off from any previous state."""
        super().__init__(motor)
        self._pins = pins
        self._pwm, *inputs = HAT_CHANNELS[motor.port]
        self._inputs = tuple(inputs)
        for channel in (*inputs, self._pwm):
            pins.write(channel, 0)

    def _off(self) -> None:
        self._pins.write_together(self._inputs, 0)

    def _brake(self) -> None:
        self._pins.write_together(self._inputs, 1)

    def _run(self, duty: float) -> None:
        forward, reverse = self._inputs
        self._pins.pwm(self._pwm, duty)
        self._pins.write(forward if self.state == Drive.FORWARD else reverse, 1)


DRIVER = MotorHatBridge
