"""Angles of servos that do not steer: limits and speed. Pure; time is an argument.

`run` moves them by the wishes that the gate accepts, and `wheels` limits the same way once more,
beside the pins.
"""

import math

from fpvcar.config import AimServo

STEP_S = 0.02
"""Interval of steps while a servo moves: a servo takes 50 pulses a second."""
STEP_MOST_S = 0.04
"""Longest step that counts, so that a servo does not start with a leap after a pause."""


class Aim:
    """Angle of one servo, on its way to a goal at no more than the servo's speed."""

    def __init__(self, servo: AimServo) -> None:
        self.servo = servo
        self.deg = self._goal_deg = servo.rest_deg
        self._pace, self._turning = 1.0, False
        self._at_s = -math.inf

    @property
    def moving(self) -> bool:
        """Whether the angle differs from the goal."""
        return self.deg != self._goal_deg

    @property
    def turning(self) -> bool:
        """Whether it turns by a share of its speed, as long as that is repeated."""
        return self.moving and self._turning

    def go(self, deg: float) -> None:
        """Set the goal, within the limits."""
        self._goal_deg, self._pace = self.servo.limited(deg), 1.0
        self._turning = False

    def turn(self, share: float) -> None:
        """Turn at a share of the speed, -1 (right, down) to 1 (left, up); 0 holds still."""
        ends = (self.servo.least_deg, self.deg, self.servo.most_deg)
        self._goal_deg, self._pace = ends[1 + (share > 0.0) - (share < 0.0)], min(1.0, abs(share))
        self._turning = share != 0.0

    def jump(self, deg: float) -> None:
        """Take an angle at once, within the limits, if the servo's own is unknown."""
        self.deg = self._goal_deg = self.servo.limited(deg)

    def step(self, now_s: float) -> bool:
        """Move towards the goal; return whether the angle changed."""
        before, passed_s = self.deg, max(0.0, min(now_s - self._at_s, STEP_MOST_S))
        self._at_s = now_s
        most_deg = self.servo.speed_deg_s * self._pace * passed_s
        way_deg = self._goal_deg - self.deg
        self.deg = (
            self._goal_deg
            if abs(way_deg) <= most_deg
            else self.deg + (most_deg if way_deg > 0.0 else -most_deg)
        )
        return self.deg != before
