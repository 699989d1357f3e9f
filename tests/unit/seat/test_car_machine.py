"""Decisions of the car as one machine on a clock under control.

    browsers (clocks of their own) -> Session -> Hub -> Control: gate, mixing
        -> packets, late or not -> Wheels: lease, bridges -> fake pins, dead man

All parts are the real ones, wired as in app.py; sockets, time and metal are not. In any order
browsers join, drop, drive, flood, replay; processes hang, die and come back; the picture and the
pin daemon go; walls come near, and their sensors fail. After every 5 ms and at every change of a
pin:

1. a bridge never has both inputs on except to brake;
2. each movement was wished, fresh and in that direction, by the holder of the seat, at most
   0.3 s before - or, if a process or the daemon failed in between, since then;
3. an e-stop holds until a push by a person with the right, a grown-up's over a new `run`, too;
4. a car that stands reports the reason;
5. with the guard on "limit" the car does not drive at a wall seen nearer than allowed.
"""

from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from testkit.hub import CODES, PROFILE
from testkit.machine import MS, WAYS, Fresh, WiredCar

from fpvcar.access.codes import Rights
from fpvcar.config import GuardMode
from fpvcar.drive.gate import Cause
from fpvcar.http.text_session import SessionClosed
from fpvcar.seat.drive_socket import Session
from fpvcar.wire import up
from fpvcar.wire.settings import Guard

NAMES = ("Ann", "Bob", "Mum")
WHO = st.sampled_from([0, 0, 0, 1, 2])


@dataclass
class Page:
    """Browser with its socket, clock, numbers, and sent wishes."""

    name: str
    ahead_ms: float
    session: Session | None = None
    seq: int = 0
    clock_was_set: bool = False
    sent: list[up.Drive] = field(default_factory=list)


class Car(WiredCar, RuleBasedStateMachine):
    """Machine of the module's docstring; testkit/machine.py has the parts and the pins."""

    def __init__(self) -> None:
        super().__init__()
        self.held_by: str | None = None
        self.pages = [Page(name, ahead) for name, ahead in zip(NAMES, (0, 9e9, -5e3), strict=True)]

    # --- browsers ---

    @initialize()
    def the_car_has_started(self) -> None:
        """Drive off a moment after the start: most sequences need a driver."""
        self.pass_time(400)
        for who in range(len(NAMES)):
            self.somebody_joins(who)
        self.drives_off(0)

    @rule(who=WHO)
    def somebody_joins(self, who: int) -> None:
        """Open a new socket, also for a page that has one; numbers and clock restart."""
        page = self.pages[who]
        code = CODES.grown_up if page.name == "Mum" else ""
        if self.hub._seat.holds(page.name):
            self.void()
        page.session = Session("10.0.0.1", Rights(drive=True), PROFILE.gate)
        page.seq = 0
        self.say(page, up.Hello(1, page.name, page.name, code))

    @rule(who=WHO)
    def somebody_drops(self, who: int) -> None:
        page = self.pages[who]
        if page.session is not None:
            self.hub.leave(page.session)
        page.session = None

    def say(self, page: Page, message: up.Upward) -> None:
        if page.session is None:
            return
        try:
            self.hub.receive(page.session, message)
        except SessionClosed:
            page.session = None

    def drive(self, page: Page, throttle: float, steer: float, late_ms: float) -> None:
        page.seq += 1
        at_ms = self.now_ns / 1e6 + page.ahead_ms - late_ms
        seen_us = round(self.now_ns / 1e3 - late_ms * 1e3)
        if page.session is not None:
            page.session.fresh.sent(seen_us, seen_us)
        drive = up.Drive(page.seq, at_ms, throttle, steer, seen_us)
        page.sent.append(drive)
        if self.hub._seat.holds(page.name) and page.session is not None and late_ms == 0:
            self.wishes += 1
            self.fresh.append(Fresh(self.wishes, self.now_ns, throttle, steer))
        self.say(page, drive)

    @rule(who=WHO)
    def drives_off(self, who: int) -> None:
        """Release, wish, and hold the stick for a while."""
        self.drive(self.pages[who], 0.0, 0.0, 0.0)
        for _ in range(3):
            self.drive(self.pages[who], 1.0, -0.5, 0.0)
            self.pass_time(40)

    @rule(
        who=WHO,
        throttle=st.sampled_from([0.0, 0.0, 1.0, -1.0, 0.2]),
        steer=st.sampled_from([0.0, -1.0, 0.5]),
        late_ms=st.sampled_from([0, 0, 0, 210, 400, 5000]),
    )
    def somebody_wishes(self, who: int, throttle: float, steer: float, late_ms: int) -> None:
        """Send a wish, in time or late."""
        page = self.pages[who]
        if late_ms and not page.seq:  # the first one would be the reference itself
            self.drive(page, 0.0, 0.0, 0.0)
        if late_ms and page.clock_was_set:  # only its nonce tells that it is late
            late_ms = max(late_ms, 400)
        self.drive(page, throttle, steer, late_ms)

    @rule(
        who=WHO,
        back=st.integers(1, 40),
        count=st.integers(1, 300),
        after_ms=st.sampled_from([0, 20, 400]),
    )
    def a_flood_of_old_wishes(self, who: int, back: int, count: int, after_ms: int) -> None:
        """Resend old wishes, doubled and reordered; of the same socket only."""
        self.pass_time(after_ms)
        page = self.pages[who]
        old = [one for one in page.sent[-back:] if one.seq <= page.seq]
        for number in range(count if old else 0):
            self.say(page, old[number % len(old)])
        self.pass_time(20)

    @rule(who=WHO, word=st.sampled_from([up.Take(), up.Release()]))
    def the_wheel_changes_hands(self, who: int, word: up.Upward) -> None:
        """Take the wheel or give it away, or ask for it in vain."""
        page = self.pages[who]
        drove = self.hub._seat.holds(page.name)
        self.say(page, word)
        if self.hub._seat.holds(page.name) != drove:
            self.void()

    @rule(who=WHO, give=st.booleans())
    def the_driver_answers_a_request(self, who: int, give: bool) -> None:
        """Ask for the wheel; the driver, if it has a page, gives it or refuses."""
        asker = self.pages[who]
        before = [self.hub._seat.holds(page.name) for page in self.pages]
        self.say(asker, up.Ask())
        if asker.session is not None and True in before:
            driver = self.pages[before.index(True)]
            self.say(driver, up.Answer(asker.session.video, give))
        if [self.hub._seat.holds(page.name) for page in self.pages] != before:
            self.void()

    @rule(who=WHO)
    def somebody_stops(self, who: int) -> None:
        page = self.pages[who]
        if page.session is not None:
            self.say(page, up.Estop())
            if page.session is not None and self.held_by != "Mum":
                self.held_by = page.name

    @rule(who=WHO)
    def somebody_goes_on(self, who: int) -> None:
        """Push "go on" as the driver or a grown-up; only Mum clears her own stop."""
        page = self.pages[who]
        may = page.name == "Mum" or (self.hub._seat.holds(page.name) and self.held_by != "Mum")
        if may and page.session is not None:
            self.held_by = None
            if self.control.decision.latches.hold is not None:
                self.void()  # a neutral wish comes first
        self.say(page, up.Resume())

    @rule(by=st.integers(0, 2), who=st.integers(0, 2))
    def somebody_stops_and_somebody_goes_on(self, by: int, who: int) -> None:
        """Stop, then go on: the sequence that must not depend on chance."""
        self.somebody_stops(by)
        self.an_estop_holds()
        self.somebody_goes_on(who)

    @rule(who=WHO, by_ms=st.sampled_from([-5000.0, 50.0, 3.6e6]))
    def a_clock_is_set(self, who: int, by_ms: float) -> None:
        """Set the browser's clock; the car's own cannot be set. Wishes may look stale, or new as
        long as their nonce is."""
        self.pages[who].ahead_ms += by_ms
        self.pages[who].clock_was_set = True

    @rule(mode=st.sampled_from(["off", "warn", "limit", "limit"]))
    def the_grown_up_sets_the_guard(self, mode: GuardMode) -> None:
        """Set the guard's mode, also to one that the profile would not allow at a start."""
        self.say(self.pages[-1], Guard(mode))

    @rule(way=st.sampled_from(sorted(WAYS)), range_m=st.sampled_from([None, 0.05, 0.15, 0.4, 2.0]))
    def a_wall_comes_or_goes(self, way: str, range_m: float | None) -> None:
        """Place or remove a wall instantly: worse than any real one."""
        sensor = self.sensors[way]
        if sensor.silent_ns is None:
            sensor.range_m = range_m
        self.pass_time(30)

    @rule(way=st.sampled_from(sorted(WAYS)), at_m=st.sampled_from([0.05, 0.15]))
    def somebody_drives_at_a_wall(self, way: str, at_m: float) -> None:
        """Drive at a wall for longer than any stop takes, and without a silence."""
        self.a_wall_comes_or_goes(way, at_m)
        for page in self.pages:
            self.drive(page, 0.0, 0.0, 0.0)
        for _ in range(12):
            for page in self.pages:
                self.drive(page, WAYS[way], 0.0, 0.0)
            self.pass_time(40)

    # --- failures ---

    @rule(way=st.sampled_from(sorted(WAYS)), ms=st.sampled_from([50, 150, 500]))
    def a_range_sensor_is_silent(self, way: str, ms: int) -> None:
        """Silence a range sensor for a while."""
        self.sensors[way].silent_ns = self.now_ns
        self.pass_time(ms)
        self.sensors[way].silent_ns = None

    @rule(ms=st.integers(5, 400))
    def time_passes(self, ms: int) -> None:
        """Advance the time without messages."""
        self.pass_time(ms)

    @rule(ms=st.sampled_from([0, 0, 10, 60, 99, 150]))
    def packets_to_the_wheels_are_late(self, ms: int) -> None:
        """Delay packets like a busy machine: a failure besides, whose time is added to any
        other's."""
        self.delay_ns = ms * MS
        self.latest_ns = max(self.latest_ns, self.delay_ns)

    @rule(ms=st.sampled_from([30, 120, 400, 3000]))
    def run_hangs(self, ms: int) -> None:
        self.hang_run(ms)
        self.pass_time(ms)

    @rule()
    def run_is_killed(self) -> None:
        for page in self.pages:
            page.session = None
        if self.held_by != "Mum":
            self.held_by = None
        self.queue.clear()  # otherwise void() waits for its packets
        self.void()
        self.kill_run()

    @rule()
    def the_grown_up_stops_and_run_is_killed(self) -> None:
        """Check with any driver that Mum's stop outlives `run`."""
        self.somebody_joins(NAMES.index("Mum"))
        self.somebody_stops(NAMES.index("Mum"))
        self.run_is_killed()
        self.an_estop_holds()

    @precondition(lambda self: not self.daemon_hangs)  # no other part calls the helper
    @rule(ms=st.sampled_from([30, 120, 400, 3000]), hears=st.booleans())
    def wheels_hang(self, ms: int, hears: bool) -> None:
        self.hang_wheels(ms, hears)
        self.pass_time(ms)

    @precondition(lambda self: not self.daemon_hangs)
    @rule()
    def wheels_are_killed(self) -> None:
        self.kill_wheels(self.pass_time)

    @rule(hangs=st.booleans())
    def the_pin_daemon_fails(self, hangs: bool) -> None:
        self.fail_daemon(hangs)
        self.pass_time(50)

    @rule(sees=st.booleans())
    def the_picture_comes_and_goes(self, sees: bool) -> None:
        """Change the picture's age; the profile has blind = "stop"."""
        self.sees = sees

    # --- invariants ---

    @invariant()
    def an_estop_holds(self) -> None:
        """Check that an e-stop holds until a person with the right resumes."""
        if self.held_by is not None and not self.run_is_deaf():
            held = self.control.decision.latches.hold
            assert held is not None and self.control.duties == (0.0, 0.0)
            if self.held_by == "Mum":
                assert held.cause is Cause.ESTOP_GROWN_UP

    @invariant()
    def a_car_that_stands_says_why(self) -> None:
        """Check that each stop is reported to all pages."""
        decision, stop = self.control.decision, self.hub.stop()
        if decision.neutral:
            assert decision.reason in ("neutral", "nobody", "stopped", "guarded")
            assert decision.reason != "stopped" or stop is not None
        else:
            assert decision.reason in ("driving", "limited", "guarded")
            assert stop is None
        if not any(self.control.duties):
            assert decision.neutral

    @precondition(lambda self: self.control.decision.neutral)
    @invariant()
    def zero_is_zero(self) -> None:
        """Check that mixing adds no duty to a wish that the gate held back."""
        assert self.control.duties == (0.0, 0.0)

    def teardown(self) -> None:
        """Check that after complete silence the car stands within 0.3 s, from any state."""
        self.wheels_until_ns = self.run_until_ns = 0
        self.pass_time(600)
        assert self.moves == (0.0, 0.0), self.words()


@pytest.mark.soak
def test_car_invariants_hold_under_random_events(soaking: bool) -> None:
    run_state_machine_as_test(
        Car,
        settings=settings(
            max_examples=3000 if soaking else 100,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
