"""A servo that `wheels` knows by the profile alone, turned as calibration found. Pure.

mixing -> duties -> OwnServo.send -> duties by which wheels makes the right pulse
"""

from collections.abc import Callable

from fpvcar.config import Profile, ServoMotor

Send = Callable[[tuple[float, ...], int], bool]


def retold(mine: ServoMotor, tuned: ServoMotor, duties: tuple[float, ...]) -> tuple[float, ...]:
    """Duties for whom the servo is `mine`, so that it turns as `tuned` would.

    At rest it stands in the centre of its own: zero stays zero.
    """
    if not any(duties):
        return duties
    drive, steer = duties
    deg = mine.deg(tuned.pulse_us(steer))
    most = mine.left_deg if deg > 0.0 else mine.right_deg
    return drive, min(max(deg / most, -1.0), 1.0) if most else 0.0


class OwnServo:
    """Before the client of `wheels`; `own` is the profile that wheels has."""

    def __init__(self, own: Profile, tuned: Profile, send: Send) -> None:
        self._own, self._send = own, send
        self.tune(tuned)

    def tune(self, tuned: Profile) -> None:
        """Turns the servo as in this profile from now on."""
        mine, other = self._own.motors.pair[1], tuned.motors.pair[1]
        self._servos: tuple[ServoMotor, ServoMotor] | None = None
        if isinstance(mine, ServoMotor) and isinstance(other, ServoMotor):
            self._servos = (mine, other) if mine != other else None

    def send(self, duties: tuple[float, ...], now_ns: int) -> bool:
        """As WheelsClient.send."""
        if self._servos is not None:
            duties = retold(*self._servos, duties)
        return self._send(duties, now_ns)
