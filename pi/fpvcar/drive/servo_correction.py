"""Correction for a servo: `wheels` has only the profile's servo, calibration found another. Pure.

mixing -> duties -> CalibratedServo.send -> duties that give the calibrated pulse in `wheels`
"""

from collections.abc import Callable

from fpvcar.config import Profile, ServoMotor

Send = Callable[[tuple[float, ...], int], bool]


def corrected(
    wheels_servo: ServoMotor, tuned: ServoMotor, duties: tuple[float, ...]
) -> tuple[float, ...]:
    """Convert duties for `wheels_servo`, so that it turns as `tuned` would.

    At rest the servo stands in the centre of `wheels_servo`: zero stays zero.
    """
    if not any(duties):
        return duties
    drive, steer = duties
    deg = wheels_servo.deg(tuned.pulse_us(steer))
    most = wheels_servo.left_deg if deg > 0.0 else wheels_servo.right_deg
    return drive, min(max(deg / most, -1.0), 1.0) if most else 0.0


class CalibratedServo:
    """Filter in front of the client of `wheels`; `wheels_profile` is the profile of `wheels`."""

    def __init__(self, wheels_profile: Profile, tuned: Profile, send: Send) -> None:
        self._wheels_profile, self._send = wheels_profile, send
        self.tune(tuned)

    def tune(self, tuned: Profile) -> None:
        """Turn the servo by this profile from now on."""
        wheels_servo, tuned_servo = self._wheels_profile.motors.pair[1], tuned.motors.pair[1]
        self._servos: tuple[ServoMotor, ServoMotor] | None = None
        if isinstance(wheels_servo, ServoMotor) and isinstance(tuned_servo, ServoMotor):
            self._servos = (wheels_servo, tuned_servo) if wheels_servo != tuned_servo else None

    def send(self, duties: tuple[float, ...], now_ns: int) -> bool:
        """Correct the duties and send them like WheelsClient.send."""
        if self._servos is not None:
            duties = corrected(*self._servos, duties)
        return self._send(duties, now_ns)
