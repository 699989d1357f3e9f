"""The wheels' core on fake pins: leases, latch, dead man, faults of the pins."""

import logging
from itertools import pairwise

import pytest

from fpvcar import config, paths
from fpvcar.config import profiles
from fpvcar.devices.fake import FakeBoard, FakeDeadMan, FakePins
from fpvcar.devices.pins import PinsLost, PinsSilent
from fpvcar.wheels.core import CHECKED_NS, FED_NS, RETRY_NS, SILENT_TRIES, Wheels
from fpvcar.wire.wheels import SETPOINT, Setpoint, Status, WheelsReason, pack_setpoint
from tests.rigs.wheels_car import MOST, MS, Car, at_each_line, why


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
    answers = car.wheels.connected(car.now_ns)
    assert [why(answer) for answer in answers] == [(Status.STOPPED, WheelsReason.START)]


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
    assert [duty for gpio, duty in car.pins.history if duty] == pytest.approx([0.3])


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
    pack_setpoint(Setpoint(1, 2**63, (0.0,))),
    SETPOINT.pack(1, 1, 2, 1, 2**40, float("nan"), 0.0, 0.0, 0.0),
    SETPOINT.pack(1, 1, 2, 1, 2**40, MOST + 0.01, 0.0, 0.0, 0.0),
    SETPOINT.pack(2, 1, 2, 1, 2**40, 0.0, 0.0, 0.0, 0.0),
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
    answers = car.wheels.connected(car.now_ns)
    assert why(answers[0]) == (Status.STOPPED, WheelsReason.CLOSED)


def test_exit_brakes_lets_go_and_takes_the_dead_man_away() -> None:
    car = Car().driving()
    answers = car.wheels.stop(WheelsReason.EXIT, car.now_ns)
    assert [why(one) for one in answers] == [(Status.STOPPED, WheelsReason.EXIT)]
    assert car.wheels.braking and car.pins.duty(17) == car.pins.duty(27) == 1.0
    car.wait(99)
    assert car.wheels.braking
    car.wait(2)
    assert not car.wheels.braking and car.pins.duty(17) == 0.0
    car.wheels.close()
    assert car.board and car.board.dead_man.removed and car.board.closed


def test_it_ends_although_the_daemon_is_gone() -> None:
    car = Car().driving()
    car.pins.cut()
    car.wheels.close()
    assert car.board and car.board.closed and not car.board.dead_man.removed


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


def test_daemon_that_hangs_at_start_is_reported_at_once() -> None:
    """A `wheels` that has just started cannot know what the pins do."""
    car = Car()
    car.refuse = PinsSilent("no answer")
    car.pins.cut()
    car.drive(0.0)
    assert car.alarms == 0, "gone is not silent: its unit has let go of the pins"
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


def test_pin_that_may_not_be_used_is_tried_again() -> None:
    # parse() would refuse GPIO 1; a daemon may refuse others, by its own mask.
    drive = config.Mx1508(forward=1, reverse=27)
    steer = config.Mx1508(forward=24, reverse=23)
    profile = config.Profile(config.Car("Test"), config.Motors(drive, steer))
    wheels = Wheels(profile, lambda: FakeBoard(profile, FakePins(), 0.0), lambda: None)
    wheels.tick(0)
    assert wheels.due_ns == RETRY_NS


def test_the_times_of_the_wheels() -> None:
    """FED_NS is shorter than the dead man's patience: nothing drives into it."""
    assert (RETRY_NS, SILENT_TRIES, CHECKED_NS) == (250 * MS, 8, 1000 * MS)
    assert FED_NS == 150 * MS < FakeDeadMan.TICK_S * FakeDeadMan.PATIENCE_TICKS * 1e9


def test_an_applied_zero_brakes_for_its_time_and_lets_go() -> None:
    car = Car().driving()
    assert car.drive(0.0, ahead_ms=150).status == Status.APPLIED
    assert car.pins.duty(17) == car.pins.duty(27) == 1.0
    car.wait(99)
    assert car.wheels.braking
    car.wait(2)
    assert car.pins.duty(17) == car.pins.duty(27) == 0.0


def test_a_bad_message_alone_stops() -> None:
    car = Car().driving()
    car.send(b"?")
    assert not car.powered


def test_it_is_due_for_whatever_comes_first() -> None:
    car = Car().driving()
    assert car.wheels.due_ns == car.now_ns + 100 * MS, "the deadline"
    car.drive(0.0, ahead_ms=50)
    assert car.wheels.due_ns == car.now_ns + 50 * MS, "not yet the brake's end"
    car.drive(0.0, ahead_ms=150)
    due_ns = car.wheels.due_ns
    assert due_ns and abs(due_ns - car.now_ns - 100 * MS) < 1000, "the brake's end"
    car.refuse = PinsLost("connection refused")
    car.pins.cut()
    car.drive(0.0)
    assert car.wheels.due_ns == car.now_ns + RETRY_NS, "not before"


def test_a_stop_of_a_moving_car_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    car = Car().ready()
    car.wheels.stop(WheelsReason.CLOSED, car.now_ns)
    assert not caplog.records
    car.driving().wheels.stop(WheelsReason.CLOSED, car.now_ns)
    assert [one.getMessage() for one in caplog.records] == ["stopped: closed"]


def test_it_ends_without_pins_too() -> None:
    car = Car().driving()
    car.refuse = PinsLost("connection refused")
    car.pins.cut()
    car.drive(0.3)
    car.wheels.close()
    assert car.board and not car.board.dead_man.removed


def test_a_dead_man_that_tripped_must_wake_before_anything_moves() -> None:
    """He was seen awake a moment ago; that no longer counts."""
    car = Car().driving()
    car.skip(240)
    assert car.drive(0.0).status == Status.APPLIED
    assert why(car.drive(0.3)) == (Status.REFUSED, WheelsReason.ZERO_FIRST)


def test_nor_does_it_count_that_the_one_before_was_awake() -> None:
    car = Car().driving()
    car.pins.cut()
    car.drive(0.3)
    car.wait(RETRY_NS / MS + 1)
    assert car.drive(0.0).status == Status.APPLIED
    assert why(car.drive(0.3)) == (Status.REFUSED, WheelsReason.ZERO_FIRST)


def test_a_dead_man_that_is_fed_is_looked_at_once_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    car, looked_ns = Car().driving(), []
    assert car.board
    awake = car.board.dead_man.awake

    def counted() -> bool:
        looked_ns.append(car.now_ns)
        return awake()

    monkeypatch.setattr(car.board.dead_man, "awake", counted)
    for _ in range(150):
        car.wait(20)
        assert car.drive(0.3).status == Status.APPLIED
    assert [later - one for one, later in pairwise(looked_ns)] == [
        CHECKED_NS, CHECKED_NS,
    ]  # fmt: skip


class Refused:
    """A daemon that hangs from the start; its tries, and what they said."""

    def __init__(self) -> None:
        self.words, self.tries, self.alarms = "no answer", 0, 0
        profile = profiles.load(paths.HARDWARE / "bench.toml")
        self.wheels = Wheels(profile, self._connect, self._alarm)

    def _connect(self) -> FakeBoard:
        self.tries += 1
        raise PinsSilent(self.words)

    def _alarm(self) -> None:
        self.alarms += 1

    def try_once(self) -> None:
        self.wheels.tick(self.tries * RETRY_NS)


def test_the_helper_is_asked_again_and_again() -> None:
    house = Refused()
    for count in range(1, 4 * SILENT_TRIES + 1):
        house.try_once()
        assert house.tries == count
        assert house.alarms == min(count, 2) + count // SILENT_TRIES


def test_silent_tries_are_counted_anew_after_each_loss() -> None:
    car = Car().driving()
    car.pins.cut()
    car.refuse = PinsSilent("no answer")
    car.drive(0.3)
    car.wait(5 * RETRY_NS / MS + 1)
    car.refuse = None
    car.wait(RETRY_NS / MS)
    car.driving()
    before = car.alarms
    car.pins.hang()
    car.refuse = PinsSilent("no answer")
    car.drive(0.3)
    assert car.alarms == before + 1
    car.wait(RETRY_NS / MS + 1)
    assert car.alarms == before + 2


def test_what_is_wrong_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    house = Refused()
    for words in ("no answer", "no answer", "refused", "refused", "no answer"):
        house.words = words
        house.try_once()
    logged = [one.getMessage() for one in caplog.records]
    assert len(logged) == 3, logged


def test_it_stops_and_then_says_so() -> None:
    car = Car().driving()
    with at_each_line(lambda: car.powered) as powered:
        car.wait(101)
    assert powered == [False]
    car.driving()
    with at_each_line(lambda: car.powered) as powered:
        car.wheels.stop(WheelsReason.CLOSED, car.now_ns)
    assert powered == [False]


def test_the_helper_is_asked_before_a_word_is_said() -> None:
    house = Refused()
    with at_each_line(lambda: house.alarms) as asked:
        for number in range(SILENT_TRIES):
            house.words = f"no answer to number {number}"
            house.try_once()
    assert asked == [1] + [2] * (SILENT_TRIES - 2) + [3]
