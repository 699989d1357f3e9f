"""Core of the wheels on fake pins: leases, latch, messages, order of events."""

import pytest
from testkit.pins.fake_pins import FakeDeadMan
from testkit.pins.wheels_car import MOST, MS, PINS, Car, at_each_line, why
from testkit.profiles import profile_of

from fpvcar.devices.pins import PinsLost
from fpvcar.wheels.controller import CHECKED_NS, FED_NS, RETRY_NS, SILENT_TRIES
from fpvcar.wire.wheels import SETPOINT, EscPulses, Setpoint, Status, WheelsReason, pack_setpoint


def test_car_does_not_move_before_a_zero() -> None:
    car = Car()
    assert why(car.drive(0.3)) == (Status.REFUSED, WheelsReason.ZERO_FIRST)
    assert car.drive(0.0).status == Status.APPLIED
    assert not car.powered


def test_car_does_not_move_before_the_dead_man_is_awake() -> None:
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


@pytest.fixture
def car() -> Car:
    return Car().driving()


def test_passed_deadline_stops_and_latches(car: Car) -> None:
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
def test_past_or_far_deadline_is_refused(ahead_ms: float, reason: WheelsReason) -> None:
    car = Car().ready()
    assert why(car.drive(0.3, ahead_ms)) == (Status.REFUSED, reason)
    assert not car.powered
    assert car.drive(0.3, 150).status == Status.APPLIED


def test_queued_packets_after_a_stall_move_nothing(car: Car) -> None:
    queue = []
    for _ in range(100):  # the client continues while the process is stopped
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
def test_bad_message_stops(packet: bytes, car: Car) -> None:
    answers = car.send(packet, car.packet(0.3))
    assert [why(answer) for answer in answers] == [
        (Status.STOPPED, WheelsReason.BAD_MESSAGE),
        (Status.REFUSED, WheelsReason.ZERO_FIRST),
    ]
    assert not car.powered


def test_largest_duty_of_an_empty_battery_is_taken() -> None:
    assert Car().ready().drive(MOST).status == Status.APPLIED


def test_closed_socket_stops(car: Car) -> None:
    car.wheels.stop(WheelsReason.CLOSED, car.now_ns)
    assert not car.powered
    answers = car.wheels.connected(car.now_ns)
    assert why(answers[0]) == (Status.STOPPED, WheelsReason.CLOSED)


def test_exit_brakes_lets_go_and_takes_the_dead_man_away(car: Car) -> None:
    answers = car.wheels.stop(WheelsReason.EXIT, car.now_ns)
    assert [why(one) for one in answers] == [(Status.STOPPED, WheelsReason.EXIT)]
    assert car.wheels.braking and car.pins.duty(17) == car.pins.duty(27) == 1.0
    car.wait(99)
    assert car.wheels.braking
    car.wait(2)
    assert not car.wheels.braking and car.pins.duty(17) == 0.0
    car.wheels.close(car.now_ns)
    assert car.board and car.board.dead_man.removed and car.board.closed


@pytest.mark.parametrize("duty", [0.3, -0.3])
def test_close_of_a_moving_car_switches_every_pin_off(duty: float) -> None:
    car = Car().driving(duty)
    car.wheels.close(car.now_ns)
    assert [car.pins.duty(gpio) for gpio in PINS] == [0.0] * len(PINS)
    assert car.board and car.board.dead_man.removed and not car.wheels.braking


def test_close_of_a_braking_car_switches_every_pin_off(car: Car) -> None:
    car.wheels.stop(WheelsReason.EXIT, car.now_ns)
    car.wheels.close(car.now_ns)
    assert [car.pins.duty(gpio) for gpio in PINS] == [0.0] * len(PINS)


def test_close_while_the_pins_are_silent_leaves_the_dead_man(car: Car) -> None:
    car.pins.hang()
    car.wheels.close(car.now_ns)
    assert car.board and not car.board.dead_man.removed and car.freed == 1
    car.skip(240)
    assert not car.powered


def test_dead_man_is_fed_by_applied_setpoints_alone(car: Car) -> None:
    assert car.board
    before = car.board.dead_man.feedings
    car.drive(0.3, ahead_ms=0)
    car.send(b"nonsense")
    assert car.board.dead_man.feedings == before


def test_wheels_times_are_the_designed_values() -> None:
    """FED_NS is shorter than the dead man's time-out: it never trips while driving."""
    assert (RETRY_NS, SILENT_TRIES, CHECKED_NS) == (250 * MS, 8, 1000 * MS)
    assert FED_NS == 150 * MS < FakeDeadMan.TICK_S * FakeDeadMan.PATIENCE_TICKS * 1e9


def test_applied_zero_brakes_for_its_time_and_lets_go(car: Car) -> None:
    assert car.drive(0.0, ahead_ms=150).status == Status.APPLIED
    assert car.pins.duty(17) == car.pins.duty(27) == 1.0
    car.wait(99)
    assert car.wheels.braking
    car.wait(2)
    assert car.pins.duty(17) == car.pins.duty(27) == 0.0


def test_bad_message_alone_stops(car: Car) -> None:
    car.send(b"?")
    assert not car.powered


def test_due_time_is_the_earliest_event(car: Car) -> None:
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


def test_stop_is_logged_if_the_car_moved(caplog: pytest.LogCaptureFixture) -> None:
    car = Car().ready()
    car.wheels.stop(WheelsReason.CLOSED, car.now_ns)
    assert not caplog.records
    car.driving().wheels.stop(WheelsReason.CLOSED, car.now_ns)
    assert [one.getMessage() for one in caplog.records] == ["stopped: closed"]


def test_car_stops_before_the_stop_is_logged(car: Car) -> None:
    with at_each_line(lambda: car.powered) as powered:
        car.wait(101)
    assert powered == [False]
    car.driving()
    with at_each_line(lambda: car.powered) as powered:
        car.wheels.stop(WheelsReason.CLOSED, car.now_ns)
    assert powered == [False]


# Calibrated pulses of an ESC


class EscCar(Car):
    """Car with an ESC on GPIO 18; `pulses` are those of its setpoints."""

    def __init__(self) -> None:
        super().__init__(profile_of("rc-esc", "motors.drive.esc_loss_s = 0.2"))

    @property
    def pulse_us(self) -> float:
        return round(20_000 * self.pins.duty(18), 2)

    def hold(self, drive: float, ms: int) -> None:
        for _ in range(ms // 20):
            assert self.drive(drive).status == Status.APPLIED
            self.wait(20)


def test_calibrated_neutral_is_sent_while_setpoints_have_it() -> None:
    car = EscCar()
    car.hold(0.0, 100)
    assert car.pulse_us == 1500.0
    car.pulses = EscPulses(1530.0, 60.0)
    car.hold(0.0, 100)
    assert car.pulse_us == 1530.0
    car.pulses = None
    car.hold(0.0, 20)
    assert car.pulse_us == 1500.0


def test_calibrated_pulses_wait_for_a_zero_while_the_car_moves() -> None:
    car = EscCar()
    car.hold(0.0, 1400)
    car.hold(0.1, 400)
    driven_us = car.pulse_us
    assert driven_us > 1550.0
    car.pulses = EscPulses(1450.0, 150.0)
    car.hold(0.1, 200)
    assert car.pulse_us == driven_us
    car.hold(0.0, 20)
    assert car.pulse_us == 1450.0


@pytest.mark.parametrize("drive", [0.0, 0.1])
def test_passed_deadline_returns_to_the_neutral_of_the_profile(drive: float) -> None:
    car = EscCar()
    car.pulses = EscPulses(1530.0, 60.0)
    car.hold(0.0, 1400)
    car.hold(drive, 400)
    car.wait(120)  # before the dead man ends the pulses
    assert car.pulse_us == 1500.0


def test_client_that_goes_leaves_the_neutral_of_the_profile() -> None:
    car = EscCar()
    car.pulses = EscPulses(1530.0, 60.0)
    car.hold(0.0, 100)
    car.wheels.stop(WheelsReason.CLOSED, car.now_ns)
    assert car.pulse_us == 1500.0


def test_pulses_far_from_the_profile_stop_the_car() -> None:
    car = EscCar()
    car.hold(0.0, 1400)
    car.hold(0.1, 400)
    car.pulses = EscPulses(1600.0, 60.0)
    assert car.drive(0.1).reason == WheelsReason.BAD_MESSAGE
    assert car.pulse_us == 1500.0
