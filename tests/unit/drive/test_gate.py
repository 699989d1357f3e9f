"""Every rule of "Who stops the car" that the gate decides, with time passed in."""

import math
from typing import Literal

import pytest
from msgspec import Struct

from fpvcar.config import Gate
from fpvcar.drive import gate
from fpvcar.drive.gate import Cause, Freshness, Hold, Latches, Staleness, Wish, World, decide

LIMITS = Gate()
FREE = Latches(arm=None)
GOOD = World(picture_age_s=0.05, fault=None, limit=1.0)
FORWARD = Wish(1.0, -0.5, received_s=10.0)
NEUTRAL = Wish(0.0, 0.0, received_s=10.0)


@pytest.mark.parametrize(
    "value",
    [FORWARD, GOOD, FREE, Hold(Cause.ESTOP), decide(FORWARD, FREE, GOOD, 10.1, LIMITS)],
    ids=lambda value: type(value).__name__,
)
def test_gate_values_are_immutable(value: Struct) -> None:
    """The recorder's thread reads the values later."""
    field = value.__struct_fields__[0]
    with pytest.raises(AttributeError):
        setattr(value, field, getattr(value, field))


def test_fresh_wish_drives() -> None:
    decision = decide(FORWARD, FREE, GOOD, 10.1, LIMITS)
    assert (decision.throttle, decision.steer) == (1.0, -0.5)
    assert decision.reason == "driving"
    assert not decision.neutral


def test_speed_limit_scales_throttle_and_leaves_steering() -> None:
    decision = decide(FORWARD, FREE, World(0.0, None, limit=0.25), 10.0, LIMITS)
    assert (decision.throttle, decision.steer) == (0.25, -0.5)


def test_missing_wish_stays_neutral_and_arms_for_handover() -> None:
    decision = decide(None, FREE, GOOD, 10.0, LIMITS)
    assert decision.neutral and decision.reason == "nobody"
    assert decision.latches.arm is Cause.HANDOVER


def test_missing_wish_keeps_the_cause_of_the_last_stop() -> None:
    decision = decide(None, Latches(arm=Cause.SILENCE), GOOD, 10.0, LIMITS)
    assert decision.latches.arm is Cause.SILENCE


@pytest.mark.parametrize(("now_s", "moves"), [(10.2499, True), (10.25, False), (10.3, False)])
def test_silence_of_a_quarter_second_stops(now_s: float, moves: bool) -> None:
    decision = decide(FORWARD, FREE, GOOD, now_s, LIMITS)
    assert (decision.throttle == 1.0) is moves
    assert decision.latches.arm is (None if moves else Cause.SILENCE)


def test_silence_after_a_neutral_wish_latches_nothing() -> None:
    decision = decide(NEUTRAL, FREE, GOOD, 11.0, LIMITS)
    assert decision.reason == "neutral"
    assert decision.latches == FREE


@pytest.mark.parametrize("arm", [Cause.SILENCE, Cause.BLIND, Cause.HANDOVER])
def test_armed_gate_waits_for_one_fresh_neutral(arm: Cause) -> None:
    latches = Latches(arm=arm)
    still = decide(FORWARD, latches, GOOD, 10.0, LIMITS)
    assert still.neutral and still.latches.arm is arm
    assert still.reason == ("neutral" if arm is Cause.HANDOVER else "stopped")
    old_neutral = decide(NEUTRAL, latches, GOOD, 10.25, LIMITS)
    assert old_neutral.latches.arm is arm
    rearmed = decide(NEUTRAL, latches, GOOD, 10.0, LIMITS)
    assert rearmed.latches.arm is None
    assert decide(FORWARD, rearmed.latches, GOOD, 10.0, LIMITS).throttle == 1.0


def test_latches_start_armed_for_handover() -> None:
    assert Latches() == Latches(arm=Cause.HANDOVER, hold=None)


def test_steering_alone_is_no_neutral_wish() -> None:
    left = Wish(0.0, 0.5, received_s=10.0)
    assert not left.neutral and Wish(0.0, 0.0, 1.0).neutral
    assert not decide(left, FREE, GOOD, 10.0, LIMITS).neutral
    assert decide(left, Latches(Cause.SILENCE), GOOD, 10.0, LIMITS).neutral


def test_silence_does_not_rename_another_stop() -> None:
    decision = decide(FORWARD, Latches(Cause.BLIND), GOOD, 11.0, LIMITS)
    assert decision.latches.arm is Cause.BLIND


def test_hold_is_never_cleared_by_neutral() -> None:
    latches = Latches(arm=None, hold=Hold(Cause.ESTOP, "Ann"))
    decision = decide(NEUTRAL, latches, GOOD, 10.0, LIMITS)
    assert decision.latches == latches and decision.reason == "stopped"
    assert decide(FORWARD, latches, GOOD, 10.0, LIMITS).neutral


def test_resume_clears_an_estop_and_then_neutral_is_needed() -> None:
    latches = gate.hold(FREE, Hold(Cause.ESTOP, "Ann"))
    latches = gate.resume(latches, grown_up=False)
    assert latches == Latches(arm=Cause.HANDOVER, hold=None)


def test_grown_ups_estop_is_cleared_by_grown_ups_only() -> None:
    latches = gate.hold(FREE, Hold(Cause.ESTOP_GROWN_UP, "Mum"))
    assert gate.resume(latches, grown_up=False) == latches
    assert gate.resume(latches, grown_up=True).hold is None


def test_resume_without_a_hold_changes_nothing() -> None:
    latches = Latches(arm=Cause.SILENCE)
    assert gate.resume(latches, grown_up=True) == latches


@pytest.mark.parametrize(
    ("first", "second", "stays"),
    [
        (Cause.ESTOP_GROWN_UP, Cause.ESTOP, Cause.ESTOP_GROWN_UP),
        (Cause.ESTOP, Cause.ESTOP_GROWN_UP, Cause.ESTOP_GROWN_UP),
        (Cause.ESTOP, Cause.PINS, Cause.ESTOP),
        (Cause.PINS, Cause.ESTOP, Cause.ESTOP),
        (Cause.PINS, Cause.WHEELS_LOST, Cause.PINS),
    ],
)
def test_hold_that_is_harder_to_clear_stays(first: Cause, second: Cause, stays: Cause) -> None:
    latches = gate.hold(gate.hold(FREE, Hold(first)), Hold(second))
    assert latches.hold == Hold(stays)


def test_fault_holds_even_after_it_is_gone() -> None:
    broken = World(0.0, Cause.WHEELS_LOST, 1.0)
    decision = decide(FORWARD, FREE, broken, 10.0, LIMITS)
    assert decision.neutral and decision.reason == "stopped"
    later = decide(FORWARD, decision.latches, GOOD, 10.1, LIMITS)
    assert later.neutral and later.latches.hold == Hold(Cause.WHEELS_LOST)


def test_present_fault_cannot_be_resumed() -> None:
    broken = World(0.0, Cause.PINS, 1.0)
    latches = gate.resume(Latches(None, Hold(Cause.PINS)), grown_up=True)
    assert decide(NEUTRAL, latches, broken, 10.0, LIMITS).latches.hold is not None


@pytest.mark.parametrize("age_s", [None, 0.25, 3.0])
def test_blind_stops_and_latches(age_s: float | None) -> None:
    decision = decide(FORWARD, FREE, World(age_s, None, 1.0), 10.0, LIMITS)
    assert decision.neutral and decision.latches.arm is Cause.BLIND


def test_blind_limits_where_the_profile_says_so() -> None:
    limits = Gate(blind="limit", blind_limit=0.3)
    blind = World(None, None, 1.0)
    decision = decide(FORWARD, FREE, blind, 10.0, limits)
    assert decision.throttle == 0.3 and decision.reason == "limited"
    slow = decide(FORWARD, FREE, World(None, None, 0.1), 10.0, limits)
    assert slow.throttle == 0.1
    seeing = decide(FORWARD, FREE, GOOD, 10.0, limits)
    assert seeing.reason == "driving"


def test_blind_is_ignored_where_the_profile_says_so() -> None:
    blind = World(None, None, 1.0)
    decision = decide(FORWARD, FREE, blind, 10.0, Gate(blind="ignore"))
    assert decision.throttle == 1.0 and decision.reason == "driving"


def test_blind_does_not_rename_another_stop() -> None:
    blind = World(None, None, 1.0)
    decision = decide(FORWARD, Latches(Cause.SILENCE), blind, 10.0, LIMITS)
    assert decision.latches.arm is Cause.SILENCE


def us(now_s: float) -> int:
    """Return a moment in the wire's unit, us."""
    return int(now_s * 1e6)


@pytest.mark.parametrize(
    ("latches", "age_s", "may"),
    [
        (FREE, 0.0, True),
        (FREE, LIMITS.silence_s - 0.001, True),
        (FREE, LIMITS.silence_s, False),
        (FREE, math.inf, False),
        (Latches(Cause.SILENCE), 0.0, True),
        (Latches(Cause.HANDOVER, Hold(Cause.ESTOP)), 0.0, False),
        (Latches(None, Hold(Cause.WHEELS_LOST)), 0.0, False),
    ],
)
def test_servos_turn_on_fresh_wishes_unless_the_car_is_held(
    latches: Latches, age_s: float, may: bool
) -> None:
    assert gate.may_aim(10.0 - age_s, latches, 10.0, LIMITS) is may


class Page:
    """Page that returns nonces of some age, 0.3 s unless given."""

    def __init__(self, stale_s: float, late_s: float) -> None:
        self.fresh = Freshness(stale_s, late_s)
        self._nonce = 0

    def accept(
        self, seq: int, sent_ms: float, now_s: float, seen_ago_s: float = 0.3
    ) -> Staleness | None:
        self._nonce += 1
        self.fresh.sent(self._nonce, us(now_s - seen_ago_s))
        return self.fresh.accept(seq, sent_ms, self._nonce, now_s)


class TestFreshness:
    """Ages on one socket; the browser's clock has any start."""

    @pytest.mark.parametrize(
        ("stale_s", "wishes"),
        [
            (0.15, [(1, 1000.0, 100.0, None), (2, 1040.0, 100.04, None)]),
            (0.15, [(1, 1000.0, 100.0, None), (2, 1040.0, 100.04 + 0.149, None)]),
            (0.15, [(1, 1000.0, 100.0, None), (2, 1040.0, 100.04 + 0.151, "stale")]),
            # exactly at the limit: a number that floats represent exactly
            (0.25, [(0, 0.0, 100.0, None), (1, 0.0, 100.25, None)]),
            (0.25, [(0, 0.0, 100.0, None), (1, 0.0, 100.25 + 2**-20, "stale")]),
            # the reference counts for all of 30 s, and is forgotten then
            (0.15, [(1, 0.0, 100.0, None), (2, 29_750.0, 130.0, "stale")]),
            (
                0.15,
                [(1, 0.0, 100.0, None), (2, 29_000.0, 129.2, "stale"), (3, 31_500.0, 131.7, None)],
            ),
            # the clock of the page is ahead
            (0.15, [(1, 5_000_000.0, 100.0, None), (2, 5_001_000.0, 101.2, "stale")]),
            # after the best of the references expires, the next best counts: 0.25 above its 0.1
            (
                0.15,
                [(0, 0.0, 100.0, None), (1, 1000.0, 101.3, "stale"), (2, 2000.0, 102.1, None)]
                + [(9, 30_500.0, 130.85, "stale")],
            ),
            # doubled and reordered
            (
                0.15,
                [(5, 1000.0, 100.0, None), (5, 1000.0, 100.0, "old"), (4, 960.0, 100.0, "old")]
                + [(6, 1040.0, 100.04, None)],
            ),
            # 300 ms on the way, but no reference yet; 0 ms: the new reference
            (
                0.15,
                [(1, 1000.0, 100.3, None), (2, 1040.0, 100.04, None), (3, 1080.0, 100.38, "stale")],
            ),
        ],
    )
    def test_wish_is_stale_by_more_than_the_limit_behind_the_fastest(
        self, stale_s: float, wishes: list[tuple[int, float, float, str | None]]
    ) -> None:
        page = Page(stale_s, 0.4)
        for seq, sent_ms, now_s, verdict in wishes:
            assert page.accept(seq, sent_ms, now_s) == verdict

    def test_ten_thousand_old_commands_are_all_refused(self) -> None:
        page = Page(0.15, 0.4)
        page.accept(20_000, 0.0, 100.0)
        verdicts = {page.accept(seq, 0.0, 100.01) for seq in range(10_000)}
        assert verdicts == {"old"}

    def test_memory_is_bounded(self) -> None:
        page = Page(0.15, 0.4)
        for seq in range(20_000):
            page.accept(seq, seq * 5.0, 100.0 + seq * 0.005 + seq * 1e-7)
        assert len(page.fresh._fastest) <= 32

    @pytest.mark.parametrize(
        ("age_s", "verdict"), [(0.0, None), (0.25, None), (0.25 + 2**-19, "late"), (9.0, "late")]
    )
    def test_wish_on_an_old_state_is_late(self, age_s: float, verdict: str | None) -> None:
        page = Page(0.15, 0.25)
        assert page.accept(1, 0.0, 100.0, age_s) == verdict

    @pytest.mark.parametrize(("age_s", "late"), [(0.0, False), (0.25, False), (0.2500001, True)])
    def test_wish_to_look_needs_a_nonce_of_late_s(self, age_s: float, late: bool) -> None:
        """No number of a wish to look is checked."""
        fresh = Freshness(0.15, 0.25)
        fresh.sent(8, us(100.0))
        assert fresh.late(8, 100.0 + age_s) is late
        assert fresh.late(9, 100.0)

    @pytest.mark.parametrize("seen", [0, 7, us(100.0), us(100.1)])
    def test_wish_with_an_unsent_nonce_is_late(self, seen: int) -> None:
        fresh = Freshness(0.15, 0.4)
        fresh.sent(8, us(100.0))
        assert fresh.accept(1, 0.0, seen, 100.0) == "late"
        assert fresh.sent_us(seen) == 0

    def test_nonce_keeps_the_time_of_its_own_message(self) -> None:
        fresh = Freshness(0.15, 0.25)
        fresh.sent(7, us(99.5))
        fresh.sent(8, us(100.0))
        assert fresh.accept(1, 0.0, 7, 100.0) == "late"
        assert fresh.accept(2, 0.0, 8, 100.0) is None
        assert (fresh.sent_us(7), fresh.sent_us(8)) == (us(99.5), us(100.0))

    def test_nonce_from_before_a_pause_is_late(self) -> None:
        fresh = Freshness(0.15, 0.4)
        fresh.sent(7, us(100.0))
        fresh.forget()
        assert fresh.accept(1, 0.0, 7, 100.0) == "late"
        fresh.sent(8, us(100.0))
        assert fresh.accept(2, 0.0, 8, 100.0) is None

    def test_newest_256_nonces_count(self) -> None:
        fresh = Freshness(0.15, 0.4)
        for nonce in range(1, 258):
            fresh.sent(nonce, us(100.0))
        assert fresh.accept(1, 0.0, 1, 100.0) == "late"
        assert fresh.accept(2, 0.0, 2, 100.0) is None

    @pytest.mark.parametrize("stood_s", [0.3, 20.0, 3600.0])
    def test_reference_restarts_after_the_page_clock_stood_still(self, stood_s: float) -> None:
        fresh = Freshness(0.15, 0.4)
        fresh.sent(7, us(99.99))
        assert fresh.accept(1, 0.0, 7, 100.0) is None
        now_s = 100.0 + stood_s + 0.04
        fresh.sent(8, us(now_s - 0.1))
        assert fresh.accept(2, 40.0, 8, now_s) is None
        fresh.sent(9, us(now_s + 0.15))
        assert fresh.accept(3, 80.0, 9, now_s + 0.16) is None, "0.12 s more, 0.01 s old"
        fresh.sent(10, us(now_s + 0.3))
        assert fresh.accept(4, 120.0, 10, now_s + 0.3 + 0.16) == "stale"
        assert len(fresh._fastest) == 1

    def test_wish_after_a_clock_stand_counts_as_old_as_possible(self) -> None:
        fresh = Freshness(0.25, 0.5)  # numbers that floats represent exactly
        fresh.sent(7, us(100.0))
        assert fresh.accept(1, 0.0, 7, 100.0) is None
        fresh.sent(8, us(110.0))
        assert fresh.accept(2, 125.0, 8, 110.25) is None
        assert fresh.accept(3, 125.0, 8, 110.25 + 2**-6) == "stale"
        fresh.sent(9, us(110.5))
        assert fresh.accept(4, 500.0, 9, 110.5) is None, "a faster one is the measure"

    def test_late_wish_sets_no_reference(self) -> None:
        fresh = Freshness(0.25, 0.5)
        fresh.sent(7, us(100.0))
        assert fresh.accept(1, 0.0, 6, 100.0) == "late"
        assert fresh.accept(2, 9e9, 6, 100.0) == "late"
        assert fresh.accept(3, 0.0, 7, 100.3) is None


@pytest.mark.parametrize(
    ("latches", "words"),
    [
        (Latches(None), "driving"),
        (Latches(Cause.HANDOVER), "driving"),
        (Latches(Cause.SILENCE), "stopped: silence"),
        (Latches(Cause.SILENCE, Hold(Cause.ESTOP, "Bob")), "stopped: estop Bob"),
        (Latches(None, Hold(Cause.PINS)), "stopped: pins"),
    ],
)
def test_decision_words_name_the_stop_and_its_cause(latches: Latches, words: str) -> None:
    assert gate.Decision(0.5, 0.0, "driving", latches).words == words


@pytest.mark.parametrize(
    ("picture_age_s", "blind", "holds_s"),
    [
        (0.01, "stop", 0.20),  # until the wish counts as silence
        (0.12, "stop", 0.13),  # until the picture is too old
        (0.12, "ignore", 0.20),
        (None, "limit", 0.20),  # blind already
        (0.25, "limit", 0.20),
        (0.30, "limit", 0.20),
    ],
)
def test_decision_holds_until_silence_or_an_old_picture(
    picture_age_s: float | None, blind: Literal["stop", "limit", "ignore"], holds_s: float
) -> None:
    limits = Gate(silence_s=0.25, blind_s=0.25, blind=blind)
    world = World(picture_age_s, None, 1.0)
    found = gate.holds_s(Wish(1.0, 0.0, 99.95), world, 100.0, limits)
    assert found == pytest.approx(holds_s)
