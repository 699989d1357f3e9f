"""The wheels' core on fake pins: leases, latch, dead man, faults of the pins."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpvcar import config, wire
from fpvcar.config import Profile
from fpvcar.devices.fake_pins import FakeBoard, FakePins
from fpvcar.devices.pins import PinsFault, PinsLost, PinsSilent
from fpvcar.wheels import RETRY_NS, SILENT_TRIES, Wheels
from fpvcar.wire import Answer, Setpoint, Status, WheelsReason

MS = 1_000_000
PROFILE = config.parse(
    {
        "car": {"name": "Test"},
        "motors": {
            "drive": {"forward": 17, "reverse": 27, "brake_s": 0.1},
            "steer": {"forward": 24, "reverse": 23},
        },
    }
)
PINS = PROFILE.motor_pins()
MOST = 3.0 / 6.2


class Car:
    """The core with fake pins and a clock that is turned by hand."""

    def __init__(self, profile: Profile = PROFILE) -> None:
        self.now_ns = 1_000_000 * MS
        self.pins = FakePins(lambda _: self.watch())
        self.board: FakeBoard | None = None
        self.alarms = 0
        self.refuse: PinsFault | None = None
        self.wheels = Wheels(profile, self._connect, self._alarm)
        self.seq = 0
        self.wheels.tick(self.now_ns)

    def watch(self) -> None:
        """Called after every change of a pin."""

    def _alarm(self) -> None:
        self.alarms += 1

    def _connect(self) -> FakeBoard:
        if self.refuse is not None:
            raise self.refuse
        self.pins.fault = None
        self.board = FakeBoard(self.pins, PINS, self.now_ns / 1e9)
        return self.board

    def packet(self, drive: float, ahead_ms: float = 100, steer: float = 0.0) -> bytes:
        self.seq += 1
        deadline_ns = self.now_ns + int(ahead_ms * MS)
        return wire.pack_setpoint(Setpoint(self.seq, deadline_ns, (drive, steer)))

    def send(self, *packets: bytes) -> list[Answer]:
        return self.wheels.receive(packets, self.now_ns)

    def drive(self, drive: float, ahead_ms: float = 100) -> Answer:
        return self.send(self.packet(drive, ahead_ms))[-1]

    def skip(self, ms: float) -> None:
        """Time passes and nobody of ours runs; the daemon's script does."""
        self.now_ns += int(ms * MS)
        if self.board is not None:
            self.board.dead_man.pass_to(self.now_ns / 1e9)

    def wait(self, ms: float) -> list[Answer]:
        """Time passes; the process does whatever is due."""
        until_ns, answers = self.now_ns + int(ms * MS), []
        while self.now_ns < until_ns:
            due_ns = self.wheels.due_ns or until_ns
            step_ns = max(min(due_ns, until_ns, self.now_ns + 20 * MS), self.now_ns + 1)
            self.skip((step_ns - self.now_ns) / MS)
            answers += self.wheels.tick(self.now_ns)
        return answers

    def ready(self) -> "Car":
        """Zero has been had, and the dead man is awake."""
        for _ in range(3):
            assert self.drive(0.0).status == Status.APPLIED
            self.wait(20)
        return self

    def driving(self, drive: float = 0.3) -> "Car":
        assert self.ready().drive(drive).status == Status.APPLIED
        return self

    @property
    def powered(self) -> bool:
        """True when a motor is driven (braked does not count)."""
        duties = [self.pins.duty(gpio) for gpio in PINS]
        return duties[0] != duties[1] or duties[2] != duties[3]


def why(answer: Answer) -> tuple[Status, WheelsReason]:
    return answer.status, answer.reason


def test_nothing_moves_before_a_zero() -> None:
    car = Car()
    assert why(car.drive(0.3)) == (Status.REFUSED, WheelsReason.ZERO_FIRST)
    assert car.drive(0.0).status == Status.APPLIED
    assert not car.powered


def test_nothing_moves_before_the_dead_man_is_awake() -> None:
    car = Car()
    assert car.drive(0.0).status == Status.APPLIED
    assert why(car.drive(0.3)) == (Status.REFUSED, WheelsReason.ZERO_FIRST)
    car.wait(25)
    assert car.drive(0.3).status == Status.APPLIED
    assert car.pins.duty(17) == pytest.approx(0.3)


def test_client_is_told_why_the_car_stands() -> None:
    car = Car()
    told = car.wheels.connected(car.now_ns)
    assert [why(answer) for answer in told] == [(Status.STOPPED, WheelsReason.START)]


def test_passed_deadline_stops_and_latches() -> None:
    car = Car().driving()
    assert car.wait(99) == [] and car.powered
    stopped = car.wait(2)
    assert [why(one) for one in stopped] == [(Status.STOPPED, WheelsReason.DEADLINE)]
    assert stopped[0].seq == car.seq
    assert not car.powered
    assert why(car.drive(0.3)) == (Status.REFUSED, WheelsReason.ZERO_FIRST)


def test_passed_deadline_of_a_standing_car_is_no_stop() -> None:
    car = Car().ready()
    assert car.wait(500) == []
    assert why(car.drive(0.3)) == (Status.REFUSED, WheelsReason.ZERO_FIRST)


def test_newest_of_several_is_applied_and_each_is_answered() -> None:
    car = Car().ready()
    answers = car.send(car.packet(0.1), car.packet(0.2), car.packet(0.3))
    assert [why(answer) for answer in answers] == [
        (Status.REFUSED, WheelsReason.SUPERSEDED),
        (Status.REFUSED, WheelsReason.SUPERSEDED),
        (Status.APPLIED, WheelsReason.NONE),
    ]
    assert [answer.seq for answer in answers] == [car.seq - 2, car.seq - 1, car.seq]
    assert (17, pytest.approx(0.1)) not in car.pins.history


def test_superseded_zero_does_not_unlatch() -> None:
    car = Car()
    answer = car.send(car.packet(0.0), car.packet(0.3))[-1]
    assert why(answer) == (Status.REFUSED, WheelsReason.ZERO_FIRST)


@pytest.mark.parametrize(
    ("ahead_ms", "reason"),
    [
        (0, WheelsReason.PAST),
        (-1000, WheelsReason.PAST),
        (151, WheelsReason.TOO_FAR_AHEAD),
        (1e9, WheelsReason.TOO_FAR_AHEAD),
    ],
)
def test_deadlines_that_are_refused(ahead_ms: float, reason: WheelsReason) -> None:
    car = Car().ready()
    assert why(car.drive(0.3, ahead_ms)) == (Status.REFUSED, reason)
    assert not car.powered
    assert car.drive(0.3, 150).status == Status.APPLIED


def test_after_a_stall_nothing_queued_moves() -> None:
    car = Car().driving()
    queue = []
    for _ in range(100):  # the client goes on while the process is stopped
        car.skip(20)
        queue.append(car.packet(0.3))
    answers = car.send(*queue)
    assert why(answers[0]) == (Status.STOPPED, WheelsReason.DEADLINE)
    assert why(answers[-1]) == (Status.REFUSED, WheelsReason.ZERO_FIRST)
    assert not car.powered


BAD = [
    b"",
    b"\0" * 32,
    b"x" * 31,
    b"x" * 64,
    wire.pack_setpoint(Setpoint(1, 2**63, (0.0,))),
    wire.SETPOINT.pack(1, 1, 2, 1, 2**40, float("nan"), 0.0, 0.0, 0.0),
    wire.SETPOINT.pack(1, 1, 2, 1, 2**40, MOST + 0.01, 0.0, 0.0, 0.0),
    wire.SETPOINT.pack(2, 1, 2, 1, 2**40, 0.0, 0.0, 0.0, 0.0),
]


@pytest.mark.parametrize("packet", BAD)
def test_bad_message_stops(packet: bytes) -> None:
    car = Car().driving()
    answers = car.send(packet, car.packet(0.3))
    assert [why(answer) for answer in answers] == [
        (Status.STOPPED, WheelsReason.BAD_MESSAGE),
        (Status.REFUSED, WheelsReason.ZERO_FIRST),
    ]
    assert not car.powered


def test_largest_duty_of_an_empty_battery_is_taken() -> None:
    assert Car().ready().drive(MOST).status == Status.APPLIED


def test_closed_socket_stops() -> None:
    car = Car().driving()
    car.wheels.stop(WheelsReason.CLOSED, car.now_ns)
    assert not car.powered
    told = car.wheels.connected(car.now_ns)
    assert why(told[0]) == (Status.STOPPED, WheelsReason.CLOSED)


def test_exit_brakes_lets_go_and_takes_the_dead_man_away() -> None:
    car = Car().driving()
    car.wheels.stop(WheelsReason.EXIT, car.now_ns)
    assert car.wheels.braking and car.pins.duty(17) == car.pins.duty(27) == 1.0
    car.wait(101)
    assert not car.wheels.braking and car.pins.duty(17) == 0.0
    car.wheels.close()
    assert car.board and car.board.dead_man.removed and car.board.closed


def test_killed_process_leaves_the_car_to_the_dead_man() -> None:
    car = Car().driving()
    car.skip(199)
    assert car.powered
    car.skip(41)
    assert not car.powered


def test_only_applied_setpoints_feed() -> None:
    car = Car().driving()
    assert car.board
    before = car.board.dead_man.feedings
    car.drive(0.3, ahead_ms=0)
    car.send(b"nonsense")
    assert car.board.dead_man.feedings == before


def test_dead_man_that_is_gone_is_noticed() -> None:
    car = Car().driving()
    assert car.board
    car.board.dead_man.running = False
    answers = []
    for _ in range(60):
        car.wait(20)
        answers.append(why(car.drive(0.3)))
    assert (Status.REFUSED, WheelsReason.PINS_LOST) in answers


@pytest.mark.parametrize("silent", [True, False])
def test_lost_pins_are_said_and_connected_to_again(silent: bool) -> None:
    car = Car().driving()
    reason = WheelsReason.PINS_SILENT if silent else WheelsReason.PINS_LOST
    car.refuse = PinsLost("connection refused")
    if silent:
        car.pins.hang()
    else:
        car.pins.cut()
    answers = car.send(car.packet(0.3))
    assert [why(answer) for answer in answers] == [
        (Status.STOPPED, reason),
        (Status.REFUSED, reason),
    ]
    assert car.alarms == (1 if silent else 0)
    assert car.board and car.board.closed
    car.wait(1000)
    assert why(car.drive(0.0)) == (Status.REFUSED, WheelsReason.PINS_LOST)
    car.refuse = None
    car.wait(RETRY_NS / MS + 1)
    assert not car.powered
    assert why(car.drive(0.3)) == (Status.REFUSED, WheelsReason.ZERO_FIRST)
    car.driving()


def test_daemon_that_hangs_at_start_is_reported_after_some_tries() -> None:
    car = Car()
    car.refuse = PinsSilent("no answer")
    car.pins.cut()
    car.drive(0.0)
    car.wait(SILENT_TRIES * RETRY_NS / MS - 10)
    assert car.alarms == 0
    car.wait(RETRY_NS / MS)
    assert car.alarms == 1


def test_fault_while_switching_off_is_a_fault_too() -> None:
    car = Car().driving()
    car.pins.cut()
    answers = car.wait(101)
    assert [why(answer) for answer in answers] == [
        (Status.STOPPED, WheelsReason.DEADLINE),
        (Status.STOPPED, WheelsReason.PINS_LOST),
    ]


def test_pins_that_fail_between_connecting_and_first_use() -> None:
    car = Car()
    car.pins.cut()
    car.drive(0.0)
    assert car.board
    bad = {
        "drive": {"forward": 1, "reverse": 27},
        "steer": {"forward": 24, "reverse": 23},
    }
    other = Wheels(
        config.parse({"car": {"name": "Test"}, "motors": bad}),
        lambda: FakeBoard(FakePins(), (), 0.0),
        lambda: None,
    )
    other.tick(0)
    assert other.due_ns == RETRY_NS


# --- whatever comes, in whatever order ----------------------------------------

ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.sampled_from([0.0, 0.3, -0.3]), st.integers(-50, 200)),
        st.tuples(st.just("wait"), st.integers(1, 120), st.just(0)),
        st.tuples(st.just("hang"), st.integers(1, 2000), st.booleans()),
        st.tuples(st.just("bad"), st.just(0), st.just(0)),
        st.tuples(st.just("close"), st.just(0), st.just(0)),
        st.tuples(st.just("cut"), st.just(0), st.just(0)),
    ),
    max_size=40,
)  # fmt: skip


class Watched(Car):
    """Asserts what must hold after every change of a pin."""

    def __init__(self) -> None:
        self.zero_had = False
        self.lease_ns = 0
        super().__init__()

    def watch(self) -> None:
        for forward, reverse in (PINS[:2], PINS[2:]):
            duties = self.pins.duty(forward), self.pins.duty(reverse)
            assert 0.0 in duties or duties == (1.0, 1.0), "both inputs on"
        if self.powered:
            assert self.zero_had, "moved before a zero"

    def note(self, answers: list[Answer], sent: dict[int, tuple[float, int]]) -> None:
        for answer in answers:
            if answer.status == Status.STOPPED:
                self.zero_had = False
            elif answer.status == Status.APPLIED:
                duty, deadline_ns = sent[answer.seq]
                assert self.now_ns < deadline_ns <= self.now_ns + 150 * MS
                self.lease_ns = deadline_ns


@settings(max_examples=300, deadline=None)
@given(ACTS)
def test_whatever_comes_the_car_stops_in_time(
    acts: list[tuple[str, float, int]],
) -> None:
    car, sent = Watched(), {}
    for kind, value, extra in acts:
        if kind == "send":
            packet = car.packet(value, extra)
            sent[car.seq] = (value, car.now_ns + extra * MS)
            car.zero_had |= value == 0.0
            car.note(car.send(packet), sent)
        elif kind == "wait":
            car.note(car.wait(value), sent)
        elif kind == "hang":  # the process stands still; a client may go on meanwhile
            car.skip(value)
            if extra:
                packet = car.packet(0.3)
                sent[car.seq] = (0.3, car.now_ns + 100 * MS)
                car.note(car.send(packet), sent)
        elif kind == "bad":
            car.note(car.send(b"?"), sent)
        elif kind == "close":
            car.note(car.wheels.stop(WheelsReason.CLOSED, car.now_ns), sent)
        else:
            car.pins.cut()
            car.note(car.send(car.packet(0.0)), {car.seq: (0.0, car.now_ns + 100 * MS)})
        if car.powered and kind != "cut" and car.pins.fault is None:
            assert car.now_ns < car.lease_ns or kind == "hang"
    car.skip(300)
    assert not car.powered, "neither wheels nor dead man stopped it"
