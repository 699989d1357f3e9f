"""Owner of the gate under any order of events: invariants after every event."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from testkit.control import PROFILE, Rig

from fpvcar.drive.gate import Freshness
from fpvcar.wire.wheels import Status, WheelsReason


class Storm(RuleBasedStateMachine):
    """Any order of wishes, delays, doubles, faults and pushes, on a clock of its own.

    A second, simpler model decides after every step whether the car must stand.
    """

    def __init__(self) -> None:
        super().__init__()
        self.rig = Rig()
        self.fresh = Freshness(PROFILE.gate.stale_s, PROFILE.gate.late_s)
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
        late_ms=st.sampled_from([0, 0, 0, 10, 199, 201, 800]),
        back=st.sampled_from([0, 0, 0, 1, 5]),
    )
    def a_wish_arrives(self, throttle: float, steer: float, late_ms: int, back: int) -> None:
        """Send a wish; late, doubled and reordered ones are included."""
        self.seq += 1
        sent_ms = self.rig.now_ns / 1e6 - late_ms
        now_s = self.rig.now_ns / 1e9
        seen_us = self.rig.now_ns // 1000 - late_ms * 1000
        self.fresh.sent(seen_us, seen_us)
        verdict = self.fresh.accept(self.seq - back, sent_ms, seen_us, now_s)
        neutral = throttle == steer == 0.0
        if verdict is None:
            self.heard_ns, self.last_neutral = self.rig.now_ns, neutral
            if neutral:
                self.need_neutral = False
            elif self.blind:
                self.need_neutral = True
            self.need_push = self.need_push or self.fault
            self.rig.wish(throttle, steer)
        elif verdict in ("stale", "late") and neutral:
            self.rig.control.let_go()
            self.last_neutral = True

    @rule(ticks=st.integers(1, 20))
    def time_passes(self, ticks: int) -> None:
        """Advance by up to 0.4 s, with the invariants checked after each tick of 20 ms."""
        for _ in range(ticks):
            self.rig.tick()
            self.it_stands_when_it_must()

    @rule(grown_up=st.booleans())
    def somebody_stops(self, grown_up: bool) -> None:
        self.rig.control.estop("somebody", grown_up)
        self.need_push = True
        self.grown_up_stop = self.grown_up_stop or grown_up

    @rule(grown_up=st.booleans())
    def somebody_goes_on(self, grown_up: bool) -> None:
        """Resume by a deliberate push."""
        held = self.rig.control.decision.latches.hold
        self.rig.control.resume(grown_up)
        if held is not None and (grown_up or not self.grown_up_stop):
            self.need_neutral, self.grown_up_stop = True, False
            self.need_push = self.fault

    @rule(lost=st.booleans())
    def the_driver_goes(self, lost: bool) -> None:
        """Close the driver's socket or give the wheel away."""
        self.rig.control.clear_wish(lost)
        self._lose()

    @rule()
    def somebody_else_sits_down(self) -> None:
        """Seat a new driver with a new socket and a new clock."""
        self.rig.control.handover()
        self.fresh, self.seq = Freshness(PROFILE.gate.stale_s, PROFILE.gate.late_s), 0
        self._lose()

    @rule(fault=st.sampled_from(["absent", "hung", "pins"]))
    def something_breaks(self, fault: str) -> None:
        """Break the wheels or their pins."""
        self.fault = self.need_push = True
        if fault == "pins":
            self.rig.answer(Status.REFUSED, WheelsReason.PINS_SILENT)
        else:
            self.rig.control.wheels_state(fault)
        self.rig.control.step()

    @rule(reason=st.sampled_from([WheelsReason.DEADLINE, WheelsReason.BAD_MESSAGE]))
    def the_wheels_stop_by_themselves(self, reason: WheelsReason) -> None:
        """Let `wheels` stop and report the reason."""
        self.need_push = True
        self.rig.answer(Status.STOPPED, reason)

    @precondition(lambda self: self.fault)
    @rule()
    def it_is_mended(self) -> None:
        self.fault = False
        self.rig.answer(Status.APPLIED)

    @rule(blind=st.booleans())
    def the_picture_comes_and_goes(self, blind: bool) -> None:
        """Change the picture's age; the profile has blind = "stop"."""
        self.blind = blind
        self.rig.picture_age_s = 9.0 if blind else 0.03
        self.rig.control.step()

    @invariant()
    def it_stands_when_it_must(self) -> None:
        """Check the second model's verdict and the invariants."""
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
