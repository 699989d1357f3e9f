"""Core of the wheels when pins, dead man or daemon fail: it stops, and retries."""

import logging
from itertools import pairwise

import pytest
from testkit.pins.fake_pins import FakeBoard, FakePins, PlayedAccess
from testkit.pins.wheels_car import MS, Car, at_each_line, why

from fpvcar import config
from fpvcar.config import profiles
from fpvcar.devices.pins import PinsLost, PinsRefused, PinsSilent
from fpvcar.runtime import paths
from fpvcar.runtime.texts import Text
from fpvcar.wheels.controller import CHECKED_NS, RETRY_NS, SILENT_TRIES, Wheels
from fpvcar.wire.wheels import Status, WheelsReason

REFUSED = Text("os_econnrefused", "Connection refused")


@pytest.fixture
def car() -> Car:
    return Car().driving()


def test_wheels_close_although_the_daemon_is_gone(car: Car) -> None:
    car.pins.cut()
    car.wheels.close(car.now_ns)
    assert car.board and car.board.closed and not car.board.dead_man.removed


def test_killed_process_is_stopped_by_the_dead_man(car: Car) -> None:
    car.skip(199)
    assert car.powered
    car.skip(41)
    assert not car.powered


def test_dead_man_that_is_gone_is_noticed(car: Car) -> None:
    assert car.board
    car.board.dead_man.running = False
    answers = []
    for _ in range(60):
        car.wait(20)
        answers.append(why(car.drive(0.3)))
    assert (Status.REFUSED, WheelsReason.PINS_LOST) in answers


@pytest.mark.parametrize("silent", [True, False])
def test_lost_pins_are_reported_and_reconnected(silent: bool, car: Car) -> None:
    reason = WheelsReason.PINS_SILENT if silent else WheelsReason.PINS_LOST
    car.refuse = PinsLost(REFUSED)
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
    assert car.freed == 1, "it runs already: it does not wait for a program to start"
    assert car.board and car.board.closed
    car.wait(1000)
    assert why(car.drive(0.0)) == (Status.REFUSED, WheelsReason.PINS_LOST)
    assert car.wheels.why == REFUSED
    car.refuse = None
    car.wait(RETRY_NS / MS + 1)
    assert not car.powered
    assert car.wheels.why is None
    assert why(car.drive(0.3)) == (Status.REFUSED, WheelsReason.ZERO_FIRST)
    car.driving()


def test_pins_of_a_daemon_that_refuses_are_not_freed_behind_its_back(car: Car) -> None:
    car.pins.fault = PinsRefused("bad PWM")
    car.drive(0.3)
    assert car.freed == 0


def test_pins_that_could_not_be_freed_are_named(caplog: pytest.LogCaptureFixture, car: Car) -> None:
    car.held = "/dev/gpiomem: not allowed"
    car.pins.cut()
    car.drive(0.3)
    assert caplog.messages[-1].endswith(": /dev/gpiomem: not allowed")


def test_daemon_that_hangs_at_start_is_reported_at_its_second_silence() -> None:
    """A single silent try may be a machine under load."""
    car = Car()
    car.refuse = PinsSilent("no answer")
    car.pins.cut()
    car.drive(0.0)
    assert car.alarms == 0, "gone is not silent: its unit has let go of the pins"
    before = car.freed
    car.wait(RETRY_NS / MS)
    assert car.alarms == 0 and car.freed == before + 1
    car.wait(RETRY_NS / MS)
    assert car.alarms == 1 and car.freed == before + 2


def test_fault_while_switching_off_is_a_fault_too(car: Car) -> None:
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
    wheels = Wheels(profile, PlayedAccess(lambda: FakeBoard(profile, FakePins(), 0.0)))
    wheels.tick(0)
    assert wheels.due_ns == RETRY_NS


def test_wheels_close_without_pins(car: Car) -> None:
    car.refuse = PinsLost(REFUSED)
    car.pins.cut()
    car.drive(0.3)
    stopped = car.wheels.stop(WheelsReason.CLOSED, car.now_ns)
    assert [one.reason for one in stopped] == [WheelsReason.CLOSED]
    car.wheels.close(car.now_ns)
    assert car.board and not car.board.dead_man.removed


def test_tripped_dead_man_must_wake_before_the_car_moves(car: Car) -> None:
    """The dead man was awake a moment ago; that no longer counts."""
    car.skip(240)
    assert car.drive(0.0).status == Status.APPLIED
    assert why(car.drive(0.3)) == (Status.REFUSED, WheelsReason.ZERO_FIRST)


def test_new_dead_man_must_wake_before_the_car_moves(car: Car) -> None:
    car.pins.cut()
    car.drive(0.3)
    car.wait(RETRY_NS / MS + 1)
    assert car.drive(0.0).status == Status.APPLIED
    assert why(car.drive(0.3)) == (Status.REFUSED, WheelsReason.ZERO_FIRST)


def test_fed_dead_man_is_checked_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert [later - one for one, later in pairwise(looked_ns)] == [CHECKED_NS, CHECKED_NS]


class Refused:
    """Daemon that hangs from the start, with its tries and their messages."""

    def __init__(self) -> None:
        self.words, self.tries, self.alarms = "no answer", 0, 0
        profile = profiles.load(paths.HARDWARE / "bench.toml")
        self.wheels = Wheels(profile, PlayedAccess(self._connect, self._alarm))

    def _connect(self) -> FakeBoard:
        self.tries += 1
        raise PinsSilent(self.words)

    def _alarm(self) -> None:
        self.alarms += 1

    def try_once(self) -> None:
        self.wheels.tick(self.tries * RETRY_NS)


def test_helper_is_asked_again_every_eight_silent_tries() -> None:
    refused = Refused()
    for count in range(1, 4 * SILENT_TRIES + 1):
        refused.try_once()
        assert refused.tries == count
        assert refused.alarms == int(count >= 2) + count // SILENT_TRIES


def test_silent_tries_are_counted_anew_after_each_loss(car: Car) -> None:
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


def test_repeated_fault_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    refused = Refused()
    for words in ("no answer", "no answer", "refused", "refused", "no answer"):
        refused.words = words
        refused.try_once()
    logged = [one.getMessage() for one in caplog.records]
    assert len(logged) == 3, logged


def test_helper_is_asked_before_the_fault_is_logged() -> None:
    refused = Refused()
    with at_each_line(lambda: refused.alarms) as asked:
        for number in range(SILENT_TRIES):
            refused.words = f"no answer to number {number}"
            refused.try_once()
    assert asked == [0] + [1] * (SILENT_TRIES - 2) + [2]


def test_dead_man_is_told_at_each_stop_of_the_motors(car: Car) -> None:
    """Otherwise a guardian would take the silence of standing wheels for that of hanging ones."""
    assert car.board is not None and car.board.dead_man.rests == 0
    car.wait(150)
    assert car.board.dead_man.rests == 1, "the deadline passed while it moved"
    car.ready()
    car.wait(150)
    assert car.board.dead_man.rests == 2, "it passed while the car stood"
    car.driving()
    car.wheels.stop(WheelsReason.CLOSED, car.now_ns)
    assert car.board.dead_man.rests == 3
    assert why(car.drive(0.3)) == (Status.REFUSED, WheelsReason.ZERO_FIRST)


def test_dead_man_lost_while_standing_closes_the_board(car: Car) -> None:
    board = car.board
    car.wait(60)
    car.pins.hang()
    assert car.wheels.stop(WheelsReason.CLOSED, car.now_ns)[-1].reason == (WheelsReason.PINS_SILENT)
    assert board is not None and board.closed


def _refuses(*_: object) -> None:
    raise PinsLost("I2C bus 1: no answer")


def test_dead_man_that_refuses_rest_is_lost(monkeypatch: pytest.MonkeyPatch, car: Car) -> None:
    assert car.board is not None
    monkeypatch.setattr(car.board.dead_man, "rest", _refuses)
    stopped = car.wheels.stop(WheelsReason.CLOSED, car.now_ns)
    assert [one.reason for one in stopped] == [WheelsReason.CLOSED, WheelsReason.PINS_LOST]
    assert car.board.closed


def test_motor_that_refuses_a_stop_is_lost(monkeypatch: pytest.MonkeyPatch, car: Car) -> None:
    """The dead man does not rest: the motor may still turn."""
    assert car.board is not None
    monkeypatch.setattr(car.board.drivers[0], "drive", _refuses)
    stopped = car.wheels.stop(WheelsReason.CLOSED, car.now_ns)
    assert [one.reason for one in stopped] == [WheelsReason.CLOSED, WheelsReason.PINS_LOST]
    assert car.board.closed and car.board.dead_man.rests == 0


def test_after_a_stop_the_dead_man_must_wake_anew(
    monkeypatch: pytest.MonkeyPatch, car: Car
) -> None:
    """The dead man was awake a moment ago, and may have gone to sleep while it rested."""
    car.wheels.stop(WheelsReason.CLOSED, car.now_ns)
    assert car.board is not None
    monkeypatch.setattr(car.board.dead_man, "awake", lambda: False)
    assert car.drive(0.0).status == Status.APPLIED
    assert why(car.drive(0.3)) == (Status.REFUSED, WheelsReason.ZERO_FIRST)
