"""Real car on a clock under control, for test_car_machine.py: its parts, wired as in app.py, and
the invariants after every 5 ms and at every change of a pin."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from fpvcar.drive.control import Control
from fpvcar.drive.saved import SavedSettings
from fpvcar.runtime.texts import State, Text
from fpvcar.wheels.client import LEASE_NS, REST_LEASE_NS
from fpvcar.wheels.controller import Wheels
from fpvcar.wire import telemetry
from fpvcar.wire.wheels import Answer, Setpoint, WheelsReason, pack_setpoint
from testkit.control import PlayedInputs, PlayedSaver, PlayedWheels
from testkit.hub import PROFILE, House
from testkit.pins.fake_pins import FakeBoard, FakePins, PlayedAccess

PINS = PROFILE.motor_pins()
MS = 1_000_000
STEP_NS = 5 * MS
STATE_NS = 20 * MS
OFF_NS = 300 * MS
RANGE_AGE_S = 0.03
WAYS = {"front": 1.0, "rear": -1.0}
"""Range sensors, and the sign of the throttle that drives in their direction."""


@dataclass
class Sensor:
    """Range sensor: range of its obstacle, start of the time too near to drive at, and start of
    its silence; None if not so."""

    range_m: float | None = None
    near_ns: int | None = None
    silent_ns: int | None = None

    def measured(self, name: str, now_ns: int) -> telemetry.Range:
        """Return the range; a silent sensor repeats its last one."""
        silent_s = 0.0 if self.silent_ns is None else (now_ns - self.silent_ns) / 1e9
        bearing_deg = 0.0 if WAYS[name] > 0.0 else 180.0
        state: State = "ok" if self.silent_ns is None else Text("silent", "no answer")
        return telemetry.Range(name, bearing_deg, self.range_m, RANGE_AGE_S + silent_s, state)


@dataclass(frozen=True)
class Fresh:
    """Wish that may move the car: its number, time, and the signs of throttle and steer."""

    number: int
    at_ns: int
    throttle: float
    steer: float


class WiredCar:
    """Parts `run`, `wheels`, pins and picture; drivers and faults are added by subclasses."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ns = 10_000 * MS
        self.pins = FakePins(lambda _: self.no_bridge_is_shorted())
        self.board: FakeBoard | None = None
        self.queue: list[tuple[int, bytes]] = []
        self.answers: list[Answer] = []
        self.delay_ns = self.latest_ns = 0
        self.connected = False
        self.picture_ns: int | None = self.now_ns
        self.sees = True
        self.run_until_ns = self.wheels_until_ns = 0  # hung until these times
        self.daemon_hangs = False
        self.failed_ns = -(10**12)
        self.fresh: list[Fresh] = []
        self.wishes = 0
        self.voided = (0, 0)
        self.sensors = {name: Sensor() for name in WAYS}
        self.saved = SavedSettings()
        self.seq = 0
        self.start_wheels()
        self.start_run()

    # --- the parts ---

    def start_run(self) -> None:
        self.queue.clear()
        self.control = Control(
            PROFILE,
            PlayedWheels(self.send),
            PlayedInputs(self.picture_age_s, lambda _: 7.5, self.ranges),
            asyncio.Event(),
            clock_ns=lambda: self.now_ns,
            saver=PlayedSaver(self.saved, self.save),
        )
        self.hub = House(control=self.control, clock_s=lambda: self.now_ns / 1e9).hub
        self.connected = True
        self.hear(self.wheels.connected(self.now_ns))
        self.next_state_ns = self.now_ns

    def start_wheels(self) -> None:
        self.wheels = Wheels(PROFILE, PlayedAccess(self.connect, self.helper))

    def connect(self) -> FakeBoard:
        if self.daemon_hangs:
            self.pins.hang()
            raise self.pins.fault or AssertionError
        self.pins.fault = None
        self.board = FakeBoard(PROFILE, self.pins, self.now_ns / 1e9)
        return self.board

    def helper(self) -> None:
        """Act as the root helper: make the pins inputs, and restart the daemon."""
        self.pins.levels.clear()
        self.pins.cut()
        self.daemon_hangs = False
        if self.board is not None:
            self.board.dead_man.running = False

    def picture_age_s(self, now_s: float) -> float | None:
        if self.sees:
            self.picture_ns = self.now_ns
        return None if self.picture_ns is None else now_s - self.picture_ns / 1e9

    def ranges(self, now_s: float) -> tuple[telemetry.Range, ...]:
        return tuple(one.measured(name, self.now_ns) for name, one in self.sensors.items())

    def save(self, saved: SavedSettings) -> None:
        self.saved = saved

    def send(self, duties: tuple[float, ...], now_ns: int) -> bool:
        if not self.connected:
            return False
        self.seq += 1
        lease_ns = LEASE_NS if any(duties) else REST_LEASE_NS
        packet = pack_setpoint(Setpoint(self.seq, now_ns + lease_ns, duties))
        before_ns = self.queue[-1][0] if self.queue else 0  # no packet overtakes
        self.queue.append((max(now_ns + self.delay_ns, before_ns), packet))
        if self.delay_ns == 0:
            self.deliver()
        return True

    def deliver(self) -> None:
        """Deliver the arrived packets, if `wheels` can read. Answers come later."""
        if self.now_ns < self.wheels_until_ns:
            return
        come = [packet for at_ns, packet in self.queue if at_ns <= self.now_ns]
        self.queue = [one for one in self.queue if one[0] > self.now_ns]
        if come:
            self.answers += self.wheels.receive(come, self.now_ns)

    def hear(self, answers: list[Answer]) -> None:
        """Pass answers to `run` on its loop, never from within `send`."""
        heard, self.answers = [*self.answers, *answers], []
        if self.connected:
            for answer in heard:
                self.control.wheels_answer(answer)

    def pass_time(self, ms: int) -> None:
        """Advance 5 ms at a time; all parts that do not hang do their due work."""
        until_ns = self.now_ns + ms * MS
        while self.now_ns < until_ns:
            self.now_ns += STEP_NS
            if self.board is not None and not self.daemon_hangs:
                self.board.dead_man.pass_to(self.now_ns / 1e9)
            if self.now_ns >= self.wheels_until_ns:
                self.deliver()
                self.answers += self.wheels.tick(self.now_ns)
            if self.now_ns >= self.run_until_ns:
                self.hear([])
                self.control.tick()
                if self.now_ns >= self.next_state_ns:
                    self.next_state_ns = self.now_ns + STATE_NS
                    self.hub.broadcast()
            self.whatever_moves_was_wished()
            self.no_wall_is_driven_at()

    @property
    def off_ns(self) -> int:
        """Return the longest time of a stop; late packets are a failure of their own."""
        return OFF_NS + self.latest_ns

    def void(self) -> None:
        """Void all wishes so far, once their packets have arrived."""
        arrives_ns = [at_ns for at_ns, _ in self.queue]
        arrives_ns.append(self.now_ns + self.delay_ns)  # the zero that follows
        ends_ns = max([self.failed_ns + self.off_ns, *arrives_ns]) + STEP_NS
        self.voided = (self.wishes, ends_ns)

    def fail(self) -> None:
        """Allow 0.3 s from now, also for a message still on its way."""
        self.failed_ns = self.now_ns
        last, ends_ns = self.voided
        if self.now_ns < ends_ns:
            self.voided = (last, self.now_ns + self.off_ns + STEP_NS)

    def run_is_deaf(self) -> bool:
        return self.now_ns < self.run_until_ns

    # --- failing processes ---

    def kill_run(self) -> None:
        """Kill `run`; its unit starts it again."""
        self.connected = False
        self.queue.clear()
        if self.now_ns >= self.wheels_until_ns:
            self.wheels.stop(WheelsReason.CLOSED, self.now_ns)
        self.answers, self.failed_ns = [], self.now_ns
        self.pass_time(100)
        self.start_run()

    def hang_run(self, ms: int) -> None:
        """Hang `run`: its loop is blocked, or it was stopped."""
        self.fail()
        self.run_until_ns = self.now_ns + ms * MS

    def hang_wheels(self, ms: int, hears: bool = True) -> None:
        """Stop and continue `wheels`; `run` notices if it `hears`."""
        self.fail()
        self.wheels_until_ns = self.now_ns + ms * MS
        if hears and ms > 150:
            self.control.wheels_state("hung")

    def kill_wheels(self, live: Callable[[int], None]) -> None:
        """Kill `wheels`: the dead man stops the car; the new process accepts only zero."""
        self.fail()
        self.connected = False
        self.queue.clear()
        self.answers = []
        self.control.wheels_state("absent")
        self.wheels_until_ns = self.now_ns + 200 * MS
        live(200)
        self.start_wheels()
        self.connected = True
        self.pass_time(5)
        self.hear(self.wheels.connected(self.now_ns))

    def fail_daemon(self, hangs: bool) -> None:
        """Fail the pin daemon. Killed: its unit lets go of the pins. Hung: `wheels` call the
        helper."""
        self.fail()
        if hangs:
            self.pins.hang()
            self.daemon_hangs = True
        else:
            self.helper()

    # --- invariants of every step ---

    @property
    def moves(self) -> tuple[float, float]:
        """Return the signs of (drive, steering) at the pins; 0 during a brake."""
        duty = [self.pins.duty(gpio) for gpio in PINS]
        return duty[0] - duty[1], duty[2] - duty[3]

    def no_bridge_is_shorted(self) -> None:
        """Check the bridges at every change of a pin."""
        for forward, reverse in (PINS[:2], PINS[2:]):
            duties = self.pins.duty(forward), self.pins.duty(reverse)
            assert 0.0 in duties or duties == (1.0, 1.0), f"both inputs on: {duties}"

    def whatever_moves_was_wished(self) -> None:
        """Check the machine's second rule: no movement later than 0.3 s after its wish."""
        drive, steer = self.moves
        since_ns = self.now_ns - self.off_ns
        if self.failed_ns > since_ns:  # a failure has its own 0.3 s, in addition
            since_ns = self.failed_ns - self.off_ns
        last, ends_ns = self.voided
        if self.now_ns >= ends_ns:
            self.fresh = [one for one in self.fresh if one.number > last]
        wishes = [one for one in self.fresh if one.at_ns >= since_ns]
        if drive:
            assert any(one.throttle * drive > 0 for one in wishes), self.words()
        if steer:
            assert any(one.steer * steer > 0 for one in wishes), self.words()

    def no_wall_is_driven_at(self) -> None:
        """Check that walls seen too near for long enough are not driven at; a failure adds its
        time."""
        for name, sensor in self.sensors.items():
            near = (
                self.control.guard_mode == "limit"
                and sensor.silent_ns is None
                and sensor.range_m is not None
                and sensor.range_m <= PROFILE.guard.stop_m
            )
            if not near:
                sensor.near_ns = None
                continue
            if sensor.near_ns is None:
                sensor.near_ns = self.now_ns
            since_ns = max(sensor.near_ns, self.failed_ns)
            if self.now_ns > since_ns + self.off_ns:
                assert self.moves[0] * WAYS[name] <= 0.0, f"{name}: {self.words()}"

    def words(self) -> str:
        """Return a description for the message of a failed check."""
        decision = self.control.decision
        return f"moves {self.moves}, {decision}, last {self.fresh[-1:]}"
