"""Steering servo, independent of the source of its pulses."""

from collections.abc import Callable

from fpvcar.config import ServoMotor


class ServoDriver:
    """Servo that turns to its centre at the first zero, with which every drive
    begins. Before that it gets no pulse and stays put. A stop is the centre, too."""

    due_s: float | None = None

    def __init__(self, motor: ServoMotor, pulse: Callable[[float], None]) -> None:
        """`pulse(us)` repeats pulses of that length from now on; raises PinsFault."""
        self._motor, self._pulse = motor, pulse

    def drive(self, duty: float, now_s: float) -> None:
        """Turn to an angle: 1 is `left_deg`, -1 `right_deg`."""
        self._pulse(self._motor.pulse_us(duty))

    def tick(self, now_s: float) -> None:
        """Do nothing: a servo has no timed work."""
