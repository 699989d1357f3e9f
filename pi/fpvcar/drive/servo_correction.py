"""Correction for a servo: `wheels` has only the profile's servo, calibration found another.
Pure.

mixing -> duties -> OwnServo.send -> duties that give the calibrated pulse in `wheels`
"""

from collections.abc import Callable

from fpvcar.config import Profile, ServoMotor

Send = Callable[[tuple[float, ...], int], bool]


def retold(mine: ServoMotor, tuned: ServoMotor, duties: tuple[float, ...]) -> tuple[float, ...]:
    """Convert duties for the servo `mine`, so that it turns as `tuned` would.

    At rest the servo stands in the centre of `mine`: zero stays zero.
    """
    if not any(duties):
        return duties
    drive, steer = duties
    deg = mine.deg(tuned.pulse_us(steer))
    most = mine.left_deg if deg > 0.0 else mine.right_deg
    return drive, min(max(deg / most, -1.0), 1.0) if most else 0.0


class OwnServo:
    """Filter in front of the client of `wheels`; `own` is the profile that `wheels` uses."""

    def __init__(self, own: Profile, tuned: Profile, send: Send) -> None:
        self._own, self._send = own, send
        self.tune(tuned)

    def tune(self, tuned: Profile) -> None:
        """Turn the servo by this profile from now on."""
        mine, other = self._own.motors.pair[1], tuned.motors.pair[1]
        self._servos: tuple[ServoMotor, ServoMotor] | None = None
        if isinstance(mine, ServoMotor) and isinstance(other, ServoMotor):
            self._servos = (mine, other) if mine != other else None

    def send(self, duties: tuple[float, ...], now_ns: int) -> bool:
        """Correct the duties and send them like WheelsClient.send."""
        if self._servos is not None:
            duties = retold(*self._servos, duties)
        return self._send(duties, now_ns)
