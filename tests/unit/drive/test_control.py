"""Owner of the gate: sent setpoints, latches, reports."""

from collections.abc import Callable

import pytest
from testkit.control import PROFILE, PlayedWheels, Rig
from testkit.profiles import mx1508s

from fpvcar.config import profiles
from fpvcar.drive.control import IDLE_TICK_S, NO_PINS, RENEW_S, TICK_S
from fpvcar.drive.gate import Cause
from fpvcar.runtime import paths
from fpvcar.runtime.texts import SAYS
from fpvcar.wheels.client import LEASE_NS, REST_LEASE_NS
from fpvcar.wire import telemetry
from fpvcar.wire.wheels import Answer, Status, WheelsReason


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_wish_is_sent_at_once(rig: Rig) -> None:
    rig.drive_off()
    assert rig.sent[-1][0] > mx1508s(PROFILE)[0].dead_band
    rig.wish(0.0)
    assert rig.sent[-1] == (0.0, 0.0)


def test_wish_postpones_next_tick_by_one_period(monkeypatch: pytest.MonkeyPatch) -> None:
    rig, later = Rig(), list[float]()
    monkeypatch.setattr(rig.control._timer, "postpone", later.append)
    rig.drive_off()
    assert later == [RENEW_S, TICK_S], "it stands; it speeds up"
    assert rig.control.due_in_s == pytest.approx(TICK_S)


def test_full_throttle_gives_a_3_v_motor_3_v(rig: Rig) -> None:
    rig.drive_off()
    for _ in range(100):
        rig.tick()
        rig.wish(1.0)
    assert abs(rig.sent[-1][0] - 3.0 / 7.5) < 1e-9


def test_silence_stops_and_waits_for_neutral(rig: Rig) -> None:
    rig.drive_off()
    rig.tick(12)
    assert rig.moving
    rig.tick()
    assert not rig.moving and rig.cause is Cause.SILENCE
    rig.wish(1.0)
    assert not rig.moving
    rig.drive_off()


def test_link_lost_while_driving_stops_for_silence(
    caplog: pytest.LogCaptureFixture, rig: Rig
) -> None:
    rig.drive_off()
    with caplog.at_level("INFO", "fpvcar.gate"):
        rig.control.clear_wish(lost=True)
    assert not rig.moving and rig.cause is Cause.SILENCE
    assert "stopped: silence" in caplog.text


def test_latched_stop_is_logged_once(caplog: pytest.LogCaptureFixture, rig: Rig) -> None:
    """Drivers who come and go under a latched stop add no line to the log."""
    with caplog.at_level("INFO", "fpvcar.gate"):
        rig.control.estop("Bob", grown_up=False)
        for _ in range(10):
            rig.control.handover()
            rig.wish(0.0)
    assert caplog.messages == ["stopped: estop Bob"]


def test_lost_pins_state_shows_the_back_ends_reason(rig: Rig) -> None:
    rig.drive_off()
    rig.answer(Status.STOPPED, WheelsReason.PINS_LOST)
    assert rig.control.wheels == NO_PINS
    fault = SAYS(place="PCA9685", reason="enable I2C")
    rig.control.wheels_fault(fault)
    assert rig.control.wheels == fault
    rig.answer(Status.REFUSED, WheelsReason.PINS_LOST)
    assert rig.control.wheels == fault
    rig.control.wheels_fault(None)
    rig.answer(Status.APPLIED)
    assert str(rig.control.wheels) == "ok"


def test_repeated_pins_lost_answers_send_no_more_setpoints(rig: Rig) -> None:
    """Each setpoint is answered: one for each answer would never end."""
    rig.drive_off()
    rig.answer(Status.STOPPED, WheelsReason.PINS_LOST)
    sent = len(rig.sent)
    for _ in range(3):
        rig.answer(Status.REFUSED, WheelsReason.PINS_LOST)
    assert len(rig.sent) == sent and rig.cause is Cause.PINS
    rig.answer(Status.APPLIED)
    rig.control.resume(grown_up=False)
    rig.answer(Status.REFUSED, WheelsReason.PINS_LOST)
    assert rig.cause is Cause.PINS


def test_pending_wheels_stop_is_handled_before_a_wish(rig: Rig) -> None:
    waiting = [Answer(Status.STOPPED, WheelsReason.BAD_MESSAGE, 1, 0)]

    def hear() -> None:
        while waiting:
            rig.control.wheels_answer(waiting.pop())

    rig.control = rig.control_of(wheels=PlayedWheels(rig.send, hear))
    rig.answer(Status.APPLIED)
    rig.wish(0.0)
    assert not waiting and rig.cause is Cause.WHEELS_STOPPED
    rig.control.resume(grown_up=False)
    rig.drive_off()
    waiting.append(Answer(Status.STOPPED, WheelsReason.DEADLINE, 2, 0))
    rig.wish(0.9)
    assert not rig.moving and rig.cause is Cause.WHEELS_STOPPED


def test_tick_reads_wheels_answers_and_runs_the_gate_when_due() -> None:
    rig, heard = Rig(), list[int]()
    wheels = PlayedWheels(rig.send, lambda: heard.append(len(rig.sent)))
    control = rig.control_of(wheels=wheels)
    assert control.tick() == IDLE_TICK_S and heard == [0] and len(rig.sent) == 1
    rig.now_ns += 30_000_000
    assert control.tick() == pytest.approx(0.07) and heard == [0, 1]
    assert len(rig.sent) == 1, "it is not due"
    rig.now_ns += 68_500_000
    assert control.tick() == IDLE_TICK_S and len(rig.sent) == 2, "nearly due is due"


def test_link_lost_while_neutral_is_only_a_handover(rig: Rig) -> None:
    rig.wish(0.0)
    rig.control.clear_wish(lost=True)
    assert rig.cause is Cause.HANDOVER


def test_handover_voids_the_previous_drivers_wish(rig: Rig) -> None:
    rig.drive_off()
    rig.control.handover()
    assert not rig.moving and rig.cause is Cause.HANDOVER
    rig.wish(1.0)
    assert not rig.moving


def test_stale_neutral_lets_go_and_clears_no_latch(rig: Rig) -> None:
    rig.drive_off()
    rig.control.let_go()
    assert not rig.moving
    rig.control.clear_wish(lost=False)
    rig.control.let_go()
    rig.wish(1.0)
    assert not rig.moving


def test_stale_neutral_does_not_rearm_the_gate_after_silence(rig: Rig) -> None:
    rig.drive_off()
    rig.tick(13)
    rig.wish(1.0)
    rig.control.let_go()
    rig.tick()
    assert rig.cause is Cause.SILENCE
    rig.wish(1.0)
    assert not rig.moving
    rig.drive_off()


def test_new_driver_owes_neutral_even_after_a_neutral_driver(rig: Rig) -> None:
    rig.wish(0.0)
    rig.control.handover()
    rig.wish(1.0)
    assert not rig.moving and rig.cause is Cause.HANDOVER


def test_estop_and_resume(rig: Rig) -> None:
    rig.drive_off()
    rig.control.estop("Bob", grown_up=False)
    assert not rig.moving and rig.cause is Cause.ESTOP
    rig.wish(0.0)
    rig.wish(1.0)
    assert not rig.moving
    assert rig.control.resume(grown_up=False)
    rig.wish(1.0)
    assert not rig.moving, "a held stick drove off with Resume"
    rig.drive_off()


def test_neutral_wish_before_resume_does_not_arm_the_gate(rig: Rig) -> None:
    rig.wish(0.0)
    rig.control.estop("Bob", grown_up=False)
    assert rig.control.resume(grown_up=True)
    rig.wish(1.0)
    assert not rig.moving, "the stick was pushed before Resume"
    rig.drive_off()


def test_grown_ups_stop_is_cleared_by_grown_ups_only(rig: Rig) -> None:
    rig.control.estop("Mum", grown_up=True)
    assert not rig.control.resume(grown_up=False)
    assert rig.control.resume(grown_up=True)
    assert rig.control.resume(grown_up=False), "nothing held: nothing refused"


def test_wheels_stop_latches_with_its_reason(rig: Rig) -> None:
    rig.drive_off()
    rig.answer(Status.STOPPED, WheelsReason.DEADLINE)
    assert not rig.moving and rig.cause is Cause.WHEELS_STOPPED
    assert rig.control.decision.latches.hold is not None
    assert rig.control.decision.latches.hold.by == "deadline"


def test_wheels_that_start_or_see_a_socket_close_latch_nothing(rig: Rig) -> None:
    rig.answer(Status.STOPPED, WheelsReason.START)
    rig.answer(Status.STOPPED, WheelsReason.CLOSED)
    rig.drive_off()


def test_zero_first_refusal_is_answered_with_zero(rig: Rig) -> None:
    rig.drive_off()
    rig.answer(Status.REFUSED, WheelsReason.ZERO_FIRST)
    assert not rig.moving and rig.cause is Cause.HANDOVER
    rig.tick()
    rig.answer(Status.REFUSED, WheelsReason.ZERO_FIRST)
    rig.drive_off()


def test_momentary_pins_fault_holds_the_car(rig: Rig) -> None:
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


@pytest.mark.parametrize("cause", [Cause.DIRECTION, Cause.RESISTOR])
def test_motor_in_doubt_holds_the_car_until_it_is_settled(rig: Rig, cause: Cause) -> None:
    rig.drive_off()
    rig.in_doubt = cause
    rig.tick()
    assert not rig.moving and rig.cause is cause
    rig.control.resume(grown_up=True)
    rig.wish(0.0)
    rig.wish(1.0)
    assert not rig.moving and rig.cause is cause, "still in doubt"
    rig.answer(Status.REFUSED, WheelsReason.PINS_LOST)
    rig.control.resume(grown_up=True)
    assert str(rig.cause) == "pins", "a fault of the pins is said first"
    rig.answer(Status.APPLIED)
    rig.in_doubt = None
    rig.tick()
    assert not rig.moving
    rig.control.resume(grown_up=False)
    rig.drive_off()


def test_absent_wheels_at_start_hold_after_first_driving_wish(rig: Rig) -> None:
    fresh = rig.control_of()
    fresh.wheels_state("absent")
    fresh.wish(0.0, 0.0, 1.0)
    assert fresh.decision.latches.hold is None
    fresh.wish(1.0, 0.0, 1.0)
    assert fresh.decision.latches.hold is not None


def test_change_of_reason_is_reported(rig: Rig) -> None:
    before = rig.changes
    rig.drive_off()
    rig.tick()
    changes = rig.changes - before
    assert changes == 2  # armed, driving
    rig.control.estop("Ann", grown_up=False)
    assert rig.changes - before == 3


def test_wish_counts_as_tick_and_empty_seat_ticks_rarely(rig: Rig) -> None:
    rig.control.step()
    assert rig.control.due_in_s == IDLE_TICK_S < REST_LEASE_NS / 1e9
    rig.wish(0.0)
    assert rig.control.due_in_s == RENEW_S
    rig.now_ns += 15_000_000
    assert rig.control.due_in_s == pytest.approx(RENEW_S - 0.015)
    rig.wish(0.5)
    assert rig.control.due_in_s == TICK_S
    rig.control.clear_wish(lost=False)
    assert rig.control.due_in_s == IDLE_TICK_S


def test_unchanged_setpoint_is_renewed_before_its_lease_ends(rig: Rig) -> None:
    rig.drive_off()
    for _ in range(100):
        rig.now_ns += 40_000_000
        rig.wish(1.0)
    assert rig.control.due_in_s == RENEW_S
    assert LEASE_NS / 1e9 - RENEW_S >= 0.075, "what a loop may stand still for"
    rig.seen = (telemetry.Range("front", 0.0, 0.6, 0.01, "ok"),)
    rig.control.guard_mode = "limit"
    for _ in range(20):
        rig.now_ns += 40_000_000
        rig.wish(1.0)
    assert rig.sent[-1] == rig.sent[-2], "it keeps its speed"
    assert rig.control.due_in_s == TICK_S, "an obstacle limits it"
    rig.wish(-1.0)
    rig.now_ns += 40_000_000
    rig.wish(-1.0)
    assert rig.control.due_in_s == TICK_S, "it comes up to speed the other way"


def test_gate_runs_when_a_wish_becomes_silence(rig: Rig) -> None:
    rig.drive_off()
    for _ in range(100):
        rig.tick()
        rig.wish(1.0)
    wished_ns = rig.now_ns
    while rig.moving:
        rig.now_ns += round(rig.control.due_in_s * 1e9)
        rig.control.tick()
    late_s = (rig.now_ns - wished_ns) / 1e9 - PROFILE.gate.silence_s
    assert 0.0 <= late_s < 0.001


def test_gate_runs_when_the_picture_is_too_old(rig: Rig) -> None:
    rig.drive_off()
    for _ in range(100):
        rig.tick()
        rig.wish(1.0)
    rig.picture_age_s = PROFILE.gate.blind_s - 0.03
    rig.wish(1.0)
    assert rig.control.due_in_s == pytest.approx(0.03)
    rig.picture_age_s = PROFILE.gate.blind_s
    rig.control.step()
    assert not rig.moving and rig.cause is Cause.BLIND


def test_weak_supply_halves_the_throttle_while_it_lasts(rig: Rig) -> None:
    rig.drive_off()
    rig.weak = True
    rig.wish(1.0)
    assert rig.control.decision.throttle == 0.5
    rig.control.limit = 0.3
    rig.wish(1.0)
    assert rig.control.decision.throttle == 0.3, "a grown-up's limit is lower"
    rig.control.limit, rig.weak = 1.0, False
    rig.wish(1.0)
    assert rig.control.decision.throttle == 1.0


def test_tuned_profile_applies_at_once(rig: Rig) -> None:
    rig.drive_off()
    overrides = ["motors.drive.invert = true", "guard.top_mps = 3.0"]
    rig.control.tune(profiles.load(paths.HARDWARE / "bench.toml", overrides))
    assert rig.sent[-1][0] < -0.13
    rig.control.guard_mode = "limit"
    rig.seen = (telemetry.Range("front", 0.0, 0.5, 0.0),)
    rig.tick()
    fast = rig.control.free.ahead
    rig.control.tune(PROFILE)
    assert rig.control.free.ahead > fast
