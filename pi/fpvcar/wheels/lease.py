"""Lease on the motors: the setpoint in force, its deadline, and the answer to every packet. Pure.

A setpoint is a lease that ends at its deadline. Of several pending packets, the newest counts.
After any stop of its own the lease accepts only zero until it has had a zero, so that the car does
not move unexpectedly.
"""

from collections.abc import Sequence
from typing import NamedTuple

from fpvcar.wire.errors import WireError
from fpvcar.wire.wheels import Answer, Setpoint, Status, WheelsReason, parse_setpoint

AHEAD_MAX_NS = 150_000_000
"""Limit of a deadline; a later one is refused, because the clock or the sender is wrong."""
ROUNDING = 1e-6
"""Tolerance for duties, which travel as f32."""


class LeaseResult(NamedTuple):
    """Result of some packets: the setpoint to apply, if any, and the answers."""

    setpoint: Setpoint | None
    answers: tuple[Answer, ...]


class Lease:
    """Setpoint in force. `most` is the largest duty of each motor."""

    def __init__(self, most: tuple[float, ...]) -> None:
        self._most = most
        self.zero_first = True
        self.deadline_ns: int | None = None
        self.moving = False
        self.seq = 0
        self.reason = WheelsReason.START

    def take(self, packets: Sequence[bytes], now_ns: int) -> LeaseResult:
        """Validate packets, oldest first. Only the newest setpoint may be applied.

        A bad packet among them stops the car first, because its sender is broken.
        """
        setpoints, bad = [], None
        for packet in packets:
            try:
                setpoints.append(self._parse(packet))
            except WireError as fault:
                bad = fault
        answers = []
        if bad is not None:
            answers.append(self.stop(WheelsReason.BAD_MESSAGE, now_ns))
        for superseded in setpoints[:-1]:
            answers.append(_refused(superseded, WheelsReason.SUPERSEDED, now_ns))
        if not setpoints:
            return LeaseResult(None, tuple(answers))
        newest = setpoints[-1]
        reason = self._refusal(newest, now_ns)
        if reason is None:
            return LeaseResult(newest, tuple(answers))
        return LeaseResult(None, (*answers, _refused(newest, reason, now_ns)))

    def applied(self, setpoint: Setpoint, now_ns: int) -> Answer:
        """Put a setpoint in force after the motors have applied it."""
        self.zero_first = False
        self.deadline_ns, self.seq = setpoint.deadline_ns, setpoint.seq
        self.moving = any(setpoint.duties)
        return Answer(Status.APPLIED, WheelsReason.NONE, setpoint.seq, now_ns)

    def refuse(self, setpoint: Setpoint, reason: WheelsReason, now_ns: int) -> Answer:
        """Refuse a setpoint that the motors could not apply."""
        return _refused(setpoint, reason, now_ns)

    def expired(self, now_ns: int) -> bool:
        """Return True once the setpoint in force has passed its deadline."""
        return self.deadline_ns is not None and now_ns >= self.deadline_ns

    def stop(self, reason: WheelsReason, now_ns: int) -> Answer:
        """End the lease; the answer contains the reason."""
        self.zero_first, self.moving, self.deadline_ns = True, False, None
        self.reason = reason
        return self.standing(now_ns)

    def standing(self, now_ns: int) -> Answer:
        """Return the last stop of its own, as sent to a client that connects."""
        return Answer(Status.STOPPED, self.reason, self.seq, now_ns)

    def _parse(self, packet: bytes) -> Setpoint:
        setpoint = parse_setpoint(packet)
        if len(setpoint.duties) != len(self._most):
            count = len(setpoint.duties)
            raise WireError("motors", count, str(len(self._most)))
        for duty, most in zip(setpoint.duties, self._most, strict=True):
            if abs(duty) > most + ROUNDING:
                raise WireError("duty", duty, f"-{most:.3f} to {most:.3f}")
        return setpoint

    def _refusal(self, setpoint: Setpoint, now_ns: int) -> WheelsReason | None:
        if setpoint.deadline_ns <= now_ns:
            return WheelsReason.PAST
        if setpoint.deadline_ns > now_ns + AHEAD_MAX_NS:
            return WheelsReason.TOO_FAR_AHEAD
        if self.zero_first and any(setpoint.duties):
            return WheelsReason.ZERO_FIRST
        return None


def _refused(setpoint: Setpoint, reason: WheelsReason, now_ns: int) -> Answer:
    return Answer(Status.REFUSED, reason, setpoint.seq, now_ns)
