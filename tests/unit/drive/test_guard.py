"""Collision guard: alone, and in the gate."""

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from fpvcar import config
from fpvcar.config import profiles
from fpvcar.devices.outlier_filter import NOISY
from fpvcar.drive import gate
from fpvcar.drive.guard import AWAY, Approach, Free, Guard, share
from fpvcar.runtime import paths
from fpvcar.runtime.texts import STARTING, State, Text
from fpvcar.wire import telemetry

BENCH = profiles.load(paths.HARDWARE / "bench.toml")
ABSENT = Text("echo_absent", "does not answer")
LIMITS = msgspec.structs.replace(BENCH.guard, mode="limit")


def measured(range_m: float | None, age_s: float = 0.02, state: State = "ok") -> telemetry.Range:
    return telemetry.Range("front", 0.0, range_m, age_s, state)


def test_closing_speed_is_zero_once_no_target_is_seen() -> None:
    approach = Approach()
    assert approach.speed_mps() == 0.0
    for number in range(4):
        approach.add(1.0 - number * 0.1, number * 0.1)
    assert approach.speed_mps() > 0.0
    approach.add(None, 0.4)
    assert approach.speed_mps() == 0.0


def test_guard_frees_far_and_limits_near() -> None:
    guard = Guard(LIMITS)
    assert guard.update([measured(None)], 1.0) == Free(1.0, 1.0)
    assert guard.update([measured(LIMITS.stop_m)], 2.0) == Free(0.0, 1.0)
    assert 0.0 < guard.update([measured(0.4)], 3.0).ahead < 1.0


def test_rear_range_limits_only_driving_backwards() -> None:
    rear = telemetry.Range("rear", 180.0, 0.1, 0.02)
    assert Guard(LIMITS).update([rear], 1.0) == Free(1.0, 0.0)
    aside = telemetry.Range("left", 90.0, 0.1, 0.02)
    assert Guard(LIMITS).update([aside], 1.0) == Free(1.0, 1.0)


@pytest.mark.parametrize("wrong", [0, 1, 2])
def test_share_is_zero_for_nan(wrong: int) -> None:
    values = [5.0, 0.0, 0.1]
    values[wrong] = math.nan
    range_m, age_s, speed_mps = values
    assert share(range_m, age_s, speed_mps, LIMITS) == 0.0


@pytest.mark.parametrize(
    "blind",
    [
        measured(None, 0.3),
        measured(2.0, state=ABSENT),
        telemetry.Range("front", 0.0, None, None, STARTING),
        telemetry.Range("front", 0.0, None, None),
    ],
)
def test_blind_sensor_gives_the_unseen_limit(blind: telemetry.Range) -> None:
    assert Guard(LIMITS).update([blind], 1.0).ahead == LIMITS.unseen_limit


ranges = some.floats(0.01, 4.0)
ages = some.floats(0.0, 0.2)
speeds = some.floats(0.0, 3.0)


@given(ranges, ranges, ages, speeds)
def test_share_never_grows_as_the_range_shrinks(
    a_m: float, b_m: float, age_s: float, v: float
) -> None:
    near, far = sorted((a_m, b_m))
    assert share(near, age_s, v, LIMITS) <= share(far, age_s, v, LIMITS)


@given(ranges, ages, speeds, speeds)
def test_share_never_grows_with_the_closing_speed(
    range_m: float, age_s: float, a: float, b: float
) -> None:
    slow, fast = sorted((a, b))
    assert share(range_m, age_s, fast, LIMITS) <= share(range_m, age_s, slow, LIMITS)


@given(ranges, ages, speeds)
def test_allowed_speed_stops_before_the_obstacle(range_m: float, age_s: float, v: float) -> None:
    most_mps = max(v, share(range_m, age_s, v, LIMITS) * LIMITS.top_mps)
    if share(range_m, age_s, v, LIMITS) > 0.0:
        way_m = most_mps * (age_s + LIMITS.reaction_s)
        way_m += most_mps**2 / 2 / LIMITS.brake_mps2
        assert way_m <= range_m - LIMITS.stop_m + 1e-9


@given(some.floats(-2.0, 2.0), some.integers(3, 10))
def test_closing_speed_is_that_of_a_straight_line(mps: float, count: int) -> None:
    approach = Approach()
    for index in range(count):
        approach.add(2.0 - mps * index * 0.03, index * 0.03)
    assert approach.speed_mps() == pytest.approx(max(0.0, mps), abs=1e-6)


def test_new_target_after_a_gap_starts_with_zero_speed() -> None:
    approach = Approach()
    for index in range(5):
        approach.add(1.0 - 0.1 * index, index * 0.03)
    assert approach.speed_mps() > 1.0
    approach.add(None, 0.2)
    approach.add(0.4, 0.23)
    approach.add(0.3, 0.26)
    assert approach.speed_mps() == 0.0


RULE = config.Guard(
    mode="limit", stop_m=0.2, top_mps=2.0, brake_mps2=1.0, reaction_s=0.1, stale_s=0.2
)


@pytest.mark.parametrize(
    ("range_m", "age_s", "speed_mps", "expected"),
    [
        # room 0.6 m, lag 0.2 s: v^2 / 2 + 0.2 v = 0.6 -> 0.9136 m/s of 2
        (0.8, 0.1, 0.0, 0.4568),
        (0.8, 0.1, 0.9, 0.4568),
        (0.8, 0.1, 0.92, 0.0),  # 0.2 * 0.92 + 0.92^2 / 2 = 0.607 m
        (0.8, 0.0, 0.92, 0.5),  # 0.1 * 0.92 + 0.4232 = 0.515 m
        (3.0, 0.1, 0.0, 1.0),  # 2.1 m/s
        (2.58, 0.1, 0.0, 0.9954),
        (0.2, 0.0, 0.0, 0.0),  # no room left
        (0.2151, 0.0, 0.0, 0.05),  # the least: 0.1 m/s
        (0.2149, 0.0, 0.0, 0.0),
        (None, 0.1, 3.0, 1.0),
    ],
)
def test_share_equals_values_computed_by_hand(
    range_m: float | None, age_s: float, speed_mps: float, expected: float
) -> None:
    assert share(range_m, age_s, speed_mps, RULE) == pytest.approx(expected, abs=5e-4)


@pytest.mark.parametrize(
    ("bearing_deg", "free"),
    [
        (45.0, Free(0.0, 1.0)),
        (46.0, Free()),
        (-45.0, Free(0.0, 1.0)),
        (-46.0, Free()),
        (135.0, Free(1.0, 0.0)),
        (134.0, Free()),
        (-135.0, Free(1.0, 0.0)),
        (-134.0, Free()),
        (180.0, Free(1.0, 0.0)),
        (-180.0, Free(1.0, 0.0)),
    ],
)
def test_sensor_counts_only_for_the_way_it_faces(bearing_deg: float, free: Free) -> None:
    near = telemetry.Range("one", bearing_deg, 0.1, 0.0)
    assert Guard(RULE).update([near], 1.0) == free


def test_nearest_of_several_sensors_counts() -> None:
    far, near = telemetry.Range("a", -20.0, 3.0, 0.0), telemetry.Range("b", 20.0, 0.8, 0.1)
    for both in ([far, near], [near, far]):
        assert Guard(RULE).update(both, 1.0).ahead == pytest.approx(0.4568, abs=5e-4)


def test_limiting_sensor_is_named() -> None:
    guard = Guard(RULE)
    assert (guard.ahead_by, guard.back_by) == ("", "")
    far, near = telemetry.Range("a", -20.0, 3.0, 0.0), telemetry.Range("b", 20.0, 0.8, 0.1)
    guard.update([far, near, telemetry.Range("c", 180.0, 0.2, 0.0)], 1.0)
    assert (guard.ahead_by, guard.back_by) == ("b", "c")
    guard.update([near], 1.1)
    assert (guard.ahead_by, guard.back_by) == ("b", "")


def test_range_aged_exactly_stale_s_still_counts() -> None:
    assert Guard(RULE).update([measured(None, 0.2)], 1.0).ahead == 1.0
    assert Guard(RULE).update([measured(None, 0.201)], 1.0).ahead == RULE.unseen_limit


# --- obstacles out of sight ---

SEE = msgspec.structs.replace(RULE, unseen_limit=1.0)
"""Rule that shows the remembered range unchanged."""
LOST = measured(0.9, state=Text("nobody", "nobody answers"))
STALE, NOTHING = measured(0.9, 0.25), measured(None, 0.0)


def remembered(range_m: float | None, mps: float = 0.0) -> object:
    return pytest.approx(share(range_m, 0.0, mps, SEE), abs=1e-9)


@pytest.mark.parametrize("fault", [LOST, STALE, NOTHING, measured(None, 9.0, NOISY)])
def test_sensor_failing_at_a_wall_frees_no_throttle(fault: telemetry.Range) -> None:
    guard = Guard(LIMITS)
    assert guard.update([measured(LIMITS.stop_m, 0.0)], 1.0, 1.0).ahead == 0.0
    assert guard.update([fault], 1.02, 1.0).ahead == 0.0
    assert guard.update([fault], 1.04, 0.0).ahead == 0.0


def test_sensor_failed_from_the_start_gives_the_unseen_limit() -> None:
    for settings in (LIMITS, RULE):
        assert Guard(settings).update([LOST], 1.0, 1.0).ahead == settings.unseen_limit


@pytest.fixture
def guard() -> Guard:
    return Guard(SEE)


def test_lost_rear_obstacle_moves_with_the_reverse_throttle(guard: Guard) -> None:
    lost = telemetry.Range("rear", 180.0, None, None, ABSENT)
    guard.update([telemetry.Range("rear", 180.0, 1.0, 0.0)], 1.0)
    assert guard.update([lost], 1.5, -0.1).back == remembered(1.0 - 0.6 * 0.5, 0.6)
    assert guard.update([lost], 2.5, 0.1).back == remembered(0.7 + AWAY * 0.2)


def test_obstacle_is_forgotten_after_three_empty_samples(guard: Guard) -> None:
    guard.update([measured(0.5, 0.0)], 1.0)
    for number in (1, 2):
        free = guard.update([NOTHING], 1.0 + number, 0.0).ahead
        assert free == remembered(0.5), number
    assert guard.update([NOTHING], 4.0, 0.0).ahead == 1.0
    assert guard.update([LOST], 5.0, 0.0).ahead == 1.0, "it is forgotten"
    assert Guard(SEE).update([NOTHING], 1.0).ahead == 1.0, "nothing ever was"


def test_repeated_empty_sample_counts_once(guard: Guard) -> None:
    guard.update([measured(0.5, 0.0)], 1.0)
    for age_s in (0.0, 0.0625, 0.125, 0.1875):
        assert guard.update([measured(None, age_s)], 2.0 + age_s).ahead == remembered(0.5)


def test_seen_obstacle_restarts_the_count_of_empty_samples(guard: Guard) -> None:
    for number, one in enumerate([measured(0.5, 0.0), NOTHING, NOTHING] * 3):
        free = guard.update([one], 1.0 + number).ahead
    assert free == remembered(0.5)


def test_lost_obstacle_is_extrapolated_from_the_throttle() -> None:
    """Step (throttle since the last look, s) -> speed and way, by hand; brake 1 m/s2."""
    guard, now_s, near_m = Guard(SEE), 1.0, 1.5
    guard.update([measured(near_m, 0.0)], now_s)
    for throttle, passed_s, mps in (
        (0.5, 0.1, 0.2),  # no car starts faster
        (0.5, 0.1, 0.4),
        (0.05, 0.25, 0.5),  # it has the wished speed, and CREEP
        (0.0, 0.1, 0.4),  # the car rolls on
        (0.8, 0.3, 1.0),
        (0.05, 0.1, 0.9),
        (0.05, 0.5, 0.5),
        (-0.1, 0.1, 0.4),
        (0.0, 0.3, 0.1),
        (-1.0, 0.5, -0.4),  # and back, which counts half
        (-0.1, 0.5, -0.2),
        (0.0, 0.3, 0.0),
    ):
        now_s += passed_s
        near_m -= mps * passed_s * (1.0 if mps > 0.0 else AWAY)
        free = guard.update([LOST], now_s, throttle).ahead
        assert free == remembered(near_m, mps), throttle


def test_lost_obstacle_keeps_the_last_closing_speed() -> None:
    for count, mps in ((2, 0.0), (3, 1.0), (4, 1.0)):
        guard = Guard(SEE)
        for index in range(count):
            guard.update([measured(1.6 - 0.1 * index, 0.0)], 1.0 + 0.1 * index)
        now_s, near_m = 1.0 + 0.1 * (count - 1), 1.7 - 0.1 * count
        assert guard.update([LOST], now_s).ahead == remembered(near_m, mps)


def test_lost_obstacle_is_moved_by_the_age_of_its_range(guard: Guard) -> None:
    for index in range(4):
        now_s = 1.0 + 0.1 * index
        guard.update([measured(1.6 - 0.1 * index, 0.05)], now_s)
    # computed as 1 - 0 m/s when the last one came: the car brakes no harder than it can
    near_m = 1.3 - (1.0 - 0.1) * 0.05
    assert guard.update([LOST], now_s).ahead == remembered(near_m, 1.0)


def test_estimated_speed_is_zero_at_the_first_look(guard: Guard) -> None:
    guard.update([measured(0.8, 0.1)], 1.0, 1.0)
    assert guard.update([LOST], 1.0, 1.0).ahead == remembered(0.8)


def test_car_speed_is_estimated_before_an_obstacle_is_seen(guard: Guard) -> None:
    for tenth in range(6):
        guard.update([measured(None, 0.0)], 1.0 + tenth / 10, 1.0)
    guard.update([measured(1.9, 0.0)], 1.6, 1.0)
    assert guard.update([LOST], 1.6, 1.0).ahead == remembered(1.9, 1.2)


@pytest.mark.parametrize("throttle", [0.0, -1.0])
def test_aged_range_is_not_shortened_at_rest_or_in_reverse(throttle: float, guard: Guard) -> None:
    guard.update([measured(0.8, 0.1)], 1.0, throttle)
    assert guard.update([LOST], 1.0, throttle).ahead == remembered(0.8)
    guard.update([measured(0.8, 0.1)], 1.2, throttle)
    mps = max(2.0 * throttle, -0.2)
    assert guard.update([LOST], 1.2, throttle).ahead == remembered(0.8, mps)


def test_lost_obstacle_beyond_two_metres_is_forgotten(guard: Guard) -> None:
    guard.update([measured(1.5, 0.0)], 1.0)
    free = guard.update([LOST], 2.0, -0.5).ahead
    assert free == remembered(1.5 + AWAY * 1.0) and free < 1.0
    assert guard.update([LOST], 2.0625, -0.5).ahead == 1.0


def test_noisy_sensor_counts_with_its_reported_range(guard: Guard) -> None:
    guard.update([measured(1.5, 0.0)], 1.0)
    for range_m in (0.4, 0.9):
        noisy = measured(range_m, 0.5, NOISY)
        assert guard.update([noisy], 2.0, 0.0).ahead == remembered(range_m)
    assert guard.update([measured(None, 0.5, NOISY)], 2.0).ahead == remembered(0.9)


def test_fast_approaching_obstacle_stops_the_car() -> None:
    """Approach at 1 m/s from 1.0 m on, seen 30 times a second, each sample 20 ms old."""
    guard, at_s = Guard(RULE), 5.0
    frees = []
    for index in range(4):
        now_s = at_s + index / 30 + 0.02
        frees.append(guard.update([measured(1.0 - index / 30)], now_s).ahead)
    # From the third sample on the speed is known: 0.12 + 0.5 m must fit.
    assert frees[:2] == pytest.approx([0.5753, 0.5620], abs=1e-3)
    assert frees[2] > 0.0
    for index in range(4, 9):
        now_s = at_s + index / 30 + 0.02
        frees.append(guard.update([measured(1.0 - index / 30)], now_s).ahead)
    assert frees[5] > 0.0 and frees[6] == 0.0, frees


@pytest.mark.parametrize(("nearest_m", "expected"), [(0.82, 0.5089), (0.78, 0.0)])
def test_closing_speed_uses_measurement_times(nearest_m: float, expected: float) -> None:
    """Speed of 1 m/s: measured every 0.1 s, reported with ages between 0 and 0.19 s.

    0.1 + 0.5 m must fit into the rest of the range without stop_m.
    """
    guard = Guard(RULE)
    for behind_m, age_s in ((0.2, 0.0), (0.1, 0.19), (0.0, 0.0)):
        now_s = 6.0 - behind_m + age_s
        free = guard.update([measured(nearest_m + behind_m, age_s)], now_s).ahead
    assert free == pytest.approx(expected, abs=1e-3)


def test_repeated_sample_adds_no_point_to_the_speed() -> None:
    approach = Approach()
    for at_s, range_m in ((1.0, 0.9), (1.1, 0.8), (1.1, 0.8), (1.1, 0.8)):
        approach.add(range_m, at_s)
    assert approach.speed_mps() == 0.0, "two samples are no line"
    approach.add(0.7, 1.2)
    assert approach.speed_mps() == pytest.approx(1.0)


def test_closing_speed_uses_the_last_six_samples() -> None:
    approach = Approach()
    for index in range(6):
        approach.add(2.0 - index, index * 1.0)
    for index in range(6, 10):
        approach.add(-3.0, index * 1.0)
        assert approach.speed_mps() > 0.0
    approach.add(-3.0, 10.0)
    assert approach.speed_mps() == 0.0


# --- in the gate ---


def decided(throttle: float, free: Free) -> gate.Decision:
    world = gate.World(0.01, None, 1.0, free)
    wish = gate.Wish(throttle, 0.5, 10.0)
    return gate.decide(wish, gate.Latches(arm=None), world, 10.0, BENCH.gate)


def test_gate_takes_the_smaller_of_wish_and_free() -> None:
    ahead = decided(1.0, Free(0.4, 1.0))
    assert (ahead.throttle, ahead.steer, ahead.reason) == (0.4, 0.5, "guarded")
    back = decided(-1.0, Free(1.0, 0.25))
    assert (back.throttle, back.reason) == (-0.25, "guarded")
    assert decided(0.3, Free(0.4, 1.0)).reason == "driving"
    stands = decided(1.0, Free(0.0, 1.0))
    assert (stands.throttle, stands.reason) == (0.0, "guarded")
    assert decided(-1.0, Free(0.0, 1.0)).throttle == -1.0, "away from it is free"


@pytest.mark.parametrize("way", [0.05, -0.05])
def test_gate_takes_the_free_share_of_the_wished_way(way: float) -> None:
    ahead = Free(0.02, 1.0) if way > 0.0 else Free(1.0, 0.02)
    assert abs(decided(way, ahead).throttle) == 0.02
    assert decided(way, Free(ahead.back, ahead.ahead)).throttle == way
