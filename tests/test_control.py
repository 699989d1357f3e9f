"""The gate's owner: what it sends, when it latches, and invariants after every tick."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fpvcar import config, paths, wire
from fpvcar.control import IDLE_TICK_S, TICK_S, Control
from fpvcar.gate import Cause, Freshness
from fpvcar.wheels_client import LEASE_NS
from fpvcar.wire import Answer, Status, WheelsReason

PROFILE = config.load(paths.HARDWARE / "bench.toml")
TICK_NS = 20_000_000


@dataclass
class Rig:
    """A control with its own clock, camera and wheels."""

    now_ns: int = 1_000_000_000
    picture_age_s: float | None = 0.03
    sent: list[tuple[float, ...]] = field(default_factory=list)
    changes: int = 0
    control: Control = field(init=False)

    def __post_init__(self) -> None:
        self.control = Control(
            PROFILE, self.send, lambda _: self.picture_age_s, lambda: 7.5,
            lambda _: (), self.changed, lambda: self.now_ns,
        )  # fmt: skip
        self.answer(Status.APPLIED)

    def send(self, duties: tuple[float, ...], now_ns: int) -> bool:
        assert now_ns == self.now_ns
        self.sent.append(duties)
        return True

    def changed(self) -> None:
        self.changes += 1

    def answer(self, status: Status, reason: WheelsReason = WheelsReason.NONE) -> None:
        self.control.wheels_answer(Answer(status, reason, 1, self.now_ns))

    def tick(self, count: int = 1) -> None:
        for _ in range(count):
            self.now_ns += TICK_NS
            self.control.step()

    def wish(self, throttle: float, steer: float = 0.0) -> None:
        self.control.wish(throttle, steer, self.now_ns / 1e9)

    def drive_off(self) -> None:
        self.wish(0.0)
        self.wish(1.0)
        assert self.moving

    @property
    def moving(self) -> bool:
        return any(self.sent[-1])

    @property
    def cause(self) -> Cause | None:
        latches = self.control.decision.latches
        return latches.hold.cause if latches.hold else latches.arm


def test_a_wish_is_sent_at_once() -> None:
    rig = Rig()
    rig.drive_off()
    assert rig.sent[-1][0] > PROFILE.motors.drive.dead_band
    rig.wish(0.0)
    assert rig.sent[-1] == (0.0, 0.0)


def test_full_throttle_gives_a_3_v_motor_3_v() -> None:
    rig = Rig()
    rig.drive_off()
    for _ in range(100):
        rig.tick()
        rig.wish(1.0)
    assert abs(rig.sent[-1][0] - 3.0 / 7.5) < 1e-9


def test_silence_stops_and_waits_for_neutral() -> None:
    rig = Rig()
    rig.drive_off()
    rig.tick(12)
    assert rig.moving
    rig.tick()
    assert not rig.moving and rig.cause is Cause.SILENCE
    rig.wish(1.0)
    assert not rig.moving
    rig.drive_off()


def test_a_lost_link_in_the_middle_of_a_wish_is_silence() -> None:
    rig = Rig()
    rig.drive_off()
    rig.control.nobody(lost=True)
    assert not rig.moving and rig.cause is Cause.SILENCE


def test_a_link_that_is_lost_while_driving_is_logged_as_a_stop(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig = Rig()
    rig.drive_off()
    with caplog.at_level("INFO", "fpvcar.gate"):
        rig.control.nobody(lost=True)
    assert "stopped: silence" in caplog.text


def test_a_link_lost_while_neutral_is_only_a_handover() -> None:
    rig = Rig()
    rig.wish(0.0)
    rig.control.nobody(lost=True)
    assert rig.cause is Cause.HANDOVER


def test_a_handover_voids_the_wish_of_the_one_before() -> None:
    rig = Rig()
    rig.drive_off()
    rig.control.handover()
    assert not rig.moving and rig.cause is Cause.HANDOVER
    rig.wish(1.0)
    assert not rig.moving


def test_a_stale_neutral_lets_go_and_clears_nothing() -> None:
    rig = Rig()
    rig.drive_off()
    rig.control.hush()
    assert not rig.moving
    rig.control.nobody(lost=False)
    rig.control.hush()
    rig.wish(1.0)
    assert not rig.moving


def test_a_stale_neutral_does_not_arm_a_gate_that_waits_for_a_fresh_one() -> None:
    rig = Rig()
    rig.drive_off()
    rig.tick(13)
    rig.wish(1.0)
    rig.control.hush()
    rig.tick()
    assert rig.cause is Cause.SILENCE
    rig.wish(1.0)
    assert not rig.moving
    rig.drive_off()


def test_a_new_driver_owes_a_neutral_wish_even_if_the_one_before_let_go() -> None:
    rig = Rig()
    rig.wish(0.0)
    rig.control.handover()
    rig.wish(1.0)
    assert not rig.moving and rig.cause is Cause.HANDOVER


def test_estop_and_resume() -> None:
    rig = Rig()
    rig.drive_off()
    rig.control.estop("Bob", grown_up=False)
    assert not rig.moving and rig.cause is Cause.ESTOP
    rig.wish(0.0)
    rig.wish(1.0)
    assert not rig.moving
    assert rig.control.resume(grown_up=False)
    rig.wish(1.0)
    assert not rig.moving, "a held stick drove off with Go on"
    rig.drive_off()


def test_a_neutral_wish_from_before_go_on_arms_nothing() -> None:
    rig = Rig()
    rig.wish(0.0)
    rig.control.estop("Bob", grown_up=False)
    assert rig.control.resume(grown_up=True)
    rig.wish(1.0)
    assert not rig.moving, "the stick was pushed before Go on"
    rig.drive_off()


def test_only_a_grown_up_clears_a_grown_ups_stop() -> None:
    rig = Rig()
    rig.control.estop("Mum", grown_up=True)
    assert not rig.control.resume(grown_up=False)
    assert rig.control.resume(grown_up=True)
    assert rig.control.resume(grown_up=False), "nothing held: nothing refused"


def test_a_stop_of_the_wheels_latches() -> None:
    rig = Rig()
    rig.drive_off()
    rig.answer(Status.STOPPED, WheelsReason.DEADLINE)
    assert not rig.moving and rig.cause is Cause.WHEELS_STOPPED
    assert rig.control.decision.latches.hold is not None
    assert rig.control.decision.latches.hold.by == "deadline"


def test_wheels_that_start_or_see_a_socket_close_latch_nothing() -> None:
    rig = Rig()
    rig.answer(Status.STOPPED, WheelsReason.START)
    rig.answer(Status.STOPPED, WheelsReason.CLOSED)
    rig.drive_off()


def test_wheels_that_wait_for_a_zero_get_one() -> None:
    rig = Rig()
    rig.drive_off()
    rig.answer(Status.REFUSED, WheelsReason.ZERO_FIRST)
    assert not rig.moving and rig.cause is Cause.HANDOVER
    rig.tick()
    rig.answer(Status.REFUSED, WheelsReason.ZERO_FIRST)
    rig.drive_off()


def test_a_fault_that_is_gone_at_once_holds_all_the_same() -> None:
    rig = Rig()
    rig.drive_off()
    rig.answer(Status.REFUSED, WheelsReason.PINS_SILENT)
    rig.answer(Status.APPLIED)
    rig.tick()
    assert not rig.moving and rig.cause is Cause.PINS


def test_lost_pins_and_lost_wheels_hold_until_go_on() -> None:
    breaks: list[tuple[Callable[[Rig], None], Cause]] = [
        (lambda rig: rig.answer(Status.REFUSED, WheelsReason.PINS_LOST), Cause.PINS),
        (lambda rig: rig.answer(Status.STOPPED, WheelsReason.PINS_SILENT), Cause.PINS),
        (lambda rig: rig.control.wheels_state("hung"), Cause.WHEELS_LOST),
        (lambda rig: rig.control.wheels_state("absent"), Cause.WHEELS_LOST),
    ]
    for break_it, cause in breaks:
        rig = Rig()
        rig.drive_off()
        break_it(rig)
        rig.tick()
        assert not rig.moving and rig.cause is cause
        rig.control.resume(grown_up=False)
        rig.tick()
        assert rig.cause is cause, "it is still broken"
        rig.answer(Status.APPLIED)
        rig.control.wheels_state("ok")
        rig.control.resume(grown_up=False)
        rig.drive_off()


def test_a_car_that_starts_is_not_broken_until_somebody_tries() -> None:
    rig = Rig()
    fresh = Control(
        PROFILE, rig.send, lambda _: 0.03, lambda: None, lambda _: (), rig.changed,
        lambda: rig.now_ns,
    )  # fmt: skip
    fresh.wheels_state("absent")
    fresh.wish(0.0, 0.0, 1.0)
    assert fresh.decision.latches.hold is None
    fresh.wish(1.0, 0.0, 1.0)
    assert fresh.decision.latches.hold is not None


def test_every_change_of_reason_is_told() -> None:
    rig = Rig()
    before = rig.changes
    rig.drive_off()
    rig.tick()
    told = rig.changes - before
    assert told == 2  # armed, driving
    rig.control.estop("Ann", grown_up=False)
    assert rig.changes - before == 3


class Storm(RuleBasedStateMachine):
    """Any order of wishes, delays, doubles, faults and pushes, on a clock of its own.

    A second, simpler model says after every step when the car must stand.
    """

    def __init__(self) -> None:
        super().__init__()
        self.rig = Rig()
        self.fresh = Freshness(PROFILE.gate.stale_s)
        self.seq = 0
        self.heard_ns: int | None = None
        self.last_neutral = True
        self.need_neutral, self.need_push, self.grown_up_stop = True, False, False
        self.fault = self.blind = False

    def _lose(self) -> None:
        self.heard_ns, self.need_neutral, self.last_neutral = None, True, True

    @rule(
        throttle=st.sampled_from([0.0, 0.0, 1.0, -1.0, 0.3]),
        steer=st.sampled_from([0.0, 0.0, -1.0, 0.7]),
        late_ms=st.sampled_from([0, 0, 0, 10, 149, 151, 800]),
        back=st.sampled_from([0, 0, 0, 1, 5]),
    )
    def a_wish_arrives(
        self, throttle: float, steer: float, late_ms: int, back: int
    ) -> None:
        """Late, doubled and reordered ones among them."""
        self.seq += 1
        sent_ms = self.rig.now_ns / 1e6 - late_ms
        verdict = self.fresh.accept(self.seq - back, sent_ms, self.rig.now_ns / 1e9)
        neutral = throttle == steer == 0.0
        if verdict is None:
            self.heard_ns, self.last_neutral = self.rig.now_ns, neutral
            if neutral:
                self.need_neutral = False
            elif self.blind:
                self.need_neutral = True
            self.need_push = self.need_push or self.fault
            self.rig.wish(throttle, steer)
        elif verdict == "stale" and neutral:
            self.rig.control.hush()
            self.last_neutral = True

    @rule(ticks=st.integers(1, 20))
    def time_passes(self, ticks: int) -> None:
        """Up to 0.4 s, with the invariants checked after each tick of 20 ms."""
        for _ in range(ticks):
            self.rig.tick()
            self.it_stands_when_it_must()

    @rule(grown_up=st.booleans())
    def somebody_stops(self, grown_up: bool) -> None:
        """The octagon."""
        self.rig.control.estop("somebody", grown_up)
        self.need_push = True
        self.grown_up_stop = self.grown_up_stop or grown_up

    @rule(grown_up=st.booleans())
    def somebody_goes_on(self, grown_up: bool) -> None:
        """A deliberate push."""
        held = self.rig.control.decision.latches.hold
        self.rig.control.resume(grown_up)
        if held is not None and (grown_up or not self.grown_up_stop):
            self.need_neutral, self.grown_up_stop = True, False
            self.need_push = self.fault

    @rule(lost=st.booleans())
    def the_driver_goes(self, lost: bool) -> None:
        """The socket closes or the wheel is given away."""
        self.rig.control.nobody(lost)
        self._lose()

    @rule()
    def somebody_else_sits_down(self) -> None:
        """A new driver, a new socket, a new clock."""
        self.rig.control.handover()
        self.fresh, self.seq = Freshness(PROFILE.gate.stale_s), 0
        self._lose()

    @rule(fault=st.sampled_from(["absent", "hung", "pins"]))
    def something_breaks(self, fault: str) -> None:
        """The wheels or their pins."""
        self.fault = self.need_push = True
        if fault == "pins":
            self.rig.answer(Status.REFUSED, WheelsReason.PINS_SILENT)
        else:
            self.rig.control.wheels_state(fault)
        self.rig.control.step()

    @rule(reason=st.sampled_from([WheelsReason.DEADLINE, WheelsReason.BAD_MESSAGE]))
    def the_wheels_stop_by_themselves(self, reason: WheelsReason) -> None:
        """And say so."""
        self.need_push = True
        self.rig.answer(Status.STOPPED, reason)

    @precondition(lambda self: self.fault)
    @rule()
    def it_is_mended(self) -> None:
        """The next setpoint is applied."""
        self.fault = False
        self.rig.answer(Status.APPLIED)

    @rule(blind=st.booleans())
    def the_picture_comes_and_goes(self, blind: bool) -> None:
        """The profile says blind = "stop"."""
        self.blind = blind
        self.rig.picture_age_s = 9.0 if blind else 0.03
        self.rig.control.step()

    @invariant()
    def it_stands_when_it_must(self) -> None:
        """The second model's word, and what holds always."""
        rig = self.rig
        duties = rig.sent[-1] if rig.sent else (0.0, 0.0)
        silent = self.heard_ns is None or rig.now_ns - self.heard_ns >= 250_000_000
        if silent and not self.last_neutral:
            self.need_neutral = True
        must = silent or self.need_neutral or self.need_push or self.blind or self.fault
        if must:
            assert duties == (0.0, 0.0), (duties, rig.cause)
        top = 3.0 / 7.5
        assert all(abs(duty) <= top + 1e-9 for duty in duties)
        decision = rig.control.decision
        assert decision.neutral or decision.reason in ("driving", "limited")


TestStorm = Storm.TestCase
TestStorm.settings = settings(max_examples=300, stateful_step_count=40, deadline=None)


def test_the_words_for_the_page_are_the_wires() -> None:
    """State carries what Control says, unchanged."""
    rig = Rig()
    assert rig.control.wheels == "ok"
    rig.answer(Status.REFUSED, WheelsReason.PINS_LOST)
    assert "pin daemon" in rig.control.wheels
    assert isinstance(rig.control.decision.reason, str)
    assert wire.Stop(Cause.PINS, "resume").cause == "pins"


def test_a_wish_counts_as_a_tick_and_an_empty_seat_needs_few() -> None:
    rig = Rig()
    rig.control.step()
    assert rig.control.due_in_s == IDLE_TICK_S < LEASE_NS / 1e9
    rig.wish(0.0)
    assert rig.control.due_in_s == TICK_S
    rig.now_ns += 15_000_000
    assert rig.control.due_in_s == pytest.approx(0.005)
    rig.wish(0.5)
    assert rig.control.due_in_s == TICK_S
    rig.control.nobody(lost=False)
    assert rig.control.due_in_s == IDLE_TICK_S
