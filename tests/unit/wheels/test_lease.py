"""Lease on the motors alone: valid packets, their deadline, and the answers."""

import math

import pytest

from fpvcar.config import Esc
from fpvcar.wheels.controller import AHEAD_MAX_NS, ROUNDING, Lease
from fpvcar.wire.wheels import EscPulses, Setpoint, Status, WheelsReason, pack_setpoint

NOW_NS = 10**12
MOST = (0.5, 0.25)


def packet(seq: int, drive: float = 0.0, steer: float = 0.0, ahead_ns: int = 100_000_000) -> bytes:
    return pack_setpoint(Setpoint(seq, NOW_NS + ahead_ns, (drive, steer)))


def armed() -> Lease:
    lease = Lease(MOST)
    lease.applied(Setpoint(1, NOW_NS + 1000, (0.0, 0.0)), NOW_NS)
    return lease


def test_new_lease_is_idle_and_wants_a_zero_first() -> None:
    lease = Lease(MOST)
    assert lease.zero_first and not lease.moving
    assert lease.deadline_ns is None and not lease.expired(NOW_NS)
    assert lease.standing(7) == (Status.STOPPED, WheelsReason.START, 0, 7)


def test_applied_setpoint_holds_until_its_deadline() -> None:
    lease = Lease(MOST)
    answer = lease.applied(Setpoint(5, NOW_NS + 10, (0.0, -0.1)), NOW_NS)
    assert answer == (Status.APPLIED, WheelsReason.NONE, 5, NOW_NS)
    assert lease.moving and not lease.zero_first and lease.seq == 5
    assert not lease.expired(NOW_NS + 9)
    assert lease.expired(NOW_NS + 10) and lease.expired(NOW_NS + 11)


def test_stop_ends_the_lease() -> None:
    lease = armed()
    lease.applied(Setpoint(5, NOW_NS + 10, (0.1, 0.0)), NOW_NS)
    answer = lease.stop(WheelsReason.DEADLINE, NOW_NS + 20)
    assert answer == (Status.STOPPED, WheelsReason.DEADLINE, 5, NOW_NS + 20)
    assert lease.zero_first and not lease.moving
    assert lease.deadline_ns is None and not lease.expired(NOW_NS + 10**9)
    assert lease.standing(NOW_NS + 30) == (*answer[:3], NOW_NS + 30)


@pytest.mark.parametrize(
    ("ahead_ns", "reason"),
    [
        (-1, WheelsReason.PAST),
        (0, WheelsReason.PAST),
        (1, None),
        (AHEAD_MAX_NS, None),
        (AHEAD_MAX_NS + 1, WheelsReason.TOO_FAR_AHEAD),
    ],
)
def test_deadline_past_or_too_far_ahead_is_refused(
    ahead_ns: int, reason: WheelsReason | None
) -> None:
    taken = armed().take([packet(2, 0.1, ahead_ns=ahead_ns)], NOW_NS)
    if reason is None:
        assert taken.setpoint is not None and taken.answers == ()
    else:
        assert taken.setpoint is None
        assert taken.answers == ((Status.REFUSED, reason, 2, NOW_NS),)


def test_longest_lease_is_150_ms() -> None:
    assert AHEAD_MAX_NS == 150_000_000


@pytest.mark.parametrize("duties", [(0.1, 0.0), (0.0, 0.1), (-0.1, 0.0)])
def test_first_setpoint_must_be_zero(duties: tuple[float, float]) -> None:
    lease = Lease(MOST)
    taken = lease.take([packet(2, *duties)], NOW_NS)
    assert taken.setpoint is None
    assert taken.answers[0].reason == WheelsReason.ZERO_FIRST
    assert lease.take([packet(3)], NOW_NS).setpoint is not None
    assert lease.zero_first, "taken is not applied"


def test_older_packets_are_answered_as_superseded() -> None:
    taken = armed().take([packet(2), packet(3), packet(4, 0.2)], NOW_NS)
    assert taken.setpoint is not None and taken.setpoint.seq == 4
    superseded = [(Status.REFUSED, WheelsReason.SUPERSEDED, n, NOW_NS) for n in (2, 3)]
    assert list(taken.answers) == superseded


def test_empty_read_gives_no_setpoint_and_no_answer() -> None:
    assert armed().take([], NOW_NS) == (None, ())


@pytest.mark.parametrize(
    ("duties", "taken"),
    [
        ((0.5, 0.25), True),
        ((-0.5, -0.25), True),
        ((0.5 + 2 * ROUNDING, 0.0), False),
        ((0.0, 0.25 + 2 * ROUNDING), False),
        ((0.0, -0.25 - 2 * ROUNDING), False),
    ],
)
def test_duty_beyond_a_motors_largest_stops(duties: tuple[float, float], taken: bool) -> None:
    lease = armed()
    came = lease.take([packet(2, *duties)], NOW_NS)
    assert (came.setpoint is not None) is taken
    assert lease.zero_first is not taken, "its sender has lost its mind: it stops"
    assert ROUNDING == 1e-6


def test_duty_exactly_at_the_bound_is_no_bad_packet() -> None:
    most = 0.5 - ROUNDING
    assert most + ROUNDING == 0.5
    lease = Lease((most, most))
    assert lease.take([packet(2, 0.5)], NOW_NS).answers[0].status == Status.REFUSED


@pytest.mark.parametrize("bad", [b"", b"?", packet(2) + b"\0"])
@pytest.mark.parametrize("first", [True, False])
def test_bad_packet_stops_even_beside_a_good_newest(bad: bytes, first: bool) -> None:
    lease = armed()
    packets = [bad, packet(3, 0.1)] if first else [packet(3, 0.1), bad]
    taken = lease.take(packets, NOW_NS)
    assert taken.setpoint is None
    assert [answer[:2] for answer in taken.answers] == [
        (Status.STOPPED, WheelsReason.BAD_MESSAGE),
        (Status.REFUSED, WheelsReason.ZERO_FIRST),
    ]
    assert lease.reason == WheelsReason.BAD_MESSAGE


def test_packet_with_another_motor_count_is_bad() -> None:
    one = pack_setpoint(Setpoint(2, NOW_NS + 1000, (0.0,)))
    assert armed().take([one], NOW_NS).answers[0].status == Status.STOPPED


def tuned(neutral_us: float, dead_band_us: float) -> bytes:
    pulses = EscPulses(neutral_us, dead_band_us)
    return pack_setpoint(Setpoint(2, NOW_NS + 1000, (0.0, 0.0), pulses))


@pytest.mark.parametrize("pulses", [(1500.0, 40.0), (1450.0, 0.0), (1550.0, 150.0)])
def test_pulses_near_those_of_the_profile_are_accepted(pulses: tuple[float, float]) -> None:
    lease = Lease(MOST, Esc(signal=18))
    assert lease.take([tuned(*pulses)], NOW_NS).setpoint is not None


@pytest.mark.parametrize(
    "pulses",
    [(1449.0, 40.0), (1551.0, 40.0), (1500.0, 151.0), (1500.0, -1.0)]
    + [(math.nan, 40.0), (1500.0, math.nan), (math.inf, 0.0), (2000.0, 0.0)],
)
def test_pulses_far_from_those_of_the_profile_are_bad(pulses: tuple[float, float]) -> None:
    lease = Lease(MOST, Esc(signal=18))
    assert lease.take([tuned(*pulses)], NOW_NS).answers[0].reason == WheelsReason.BAD_MESSAGE


def test_pulses_for_a_car_without_esc_are_bad() -> None:
    taken = armed().take([tuned(1500.0, 40.0)], NOW_NS)
    assert taken.answers[0].reason == WheelsReason.BAD_MESSAGE


def test_ten_thousand_old_packets_move_nothing() -> None:
    """Packets are past, far ahead, or replayed while a zero is due: all at once or one by one."""
    lease = Lease(MOST)
    packets = [packet(seq, 0.3, ahead_ns=(seq * 7919) % 10**9 - 10**9) for seq in range(5000)]
    packets += [packet(seq, 0.3) for seq in range(5000)]
    assert lease.take(packets, NOW_NS).setpoint is None
    taken = [lease.take([one], NOW_NS).setpoint for one in packets]
    assert taken == [None] * 10_000
