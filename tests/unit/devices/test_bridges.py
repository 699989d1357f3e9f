"""Contract of all motor drivers: the state of each bridge, measured at the motor.

The meter is the bench's model of the chip. The model reads pins and is independent of the drivers.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from testkit.pins.fake_pins import FakeDeadMan, FakePins

from fpvbench.world.bridge import CHIPS, Bridge
from fpvcar.config import HAT_CHANNELS, DcMotor, L298n, MotorHat, Mx1508
from fpvcar.devices.motors.bridge import MotorDriver, motor_driver
from fpvcar.devices.pins import PinsLost

WIRED: dict[str, DcMotor] = {
    "mx1508": Mx1508(forward=17, reverse=27),
    "l298n": L298n(enable=18, forward=17, reverse=27),
    "motor-hat M1": MotorHat(port=1),
    "motor-hat M2": MotorHat(port=2),
    "motor-hat M3": MotorHat(port=3),
    "motor-hat M4": MotorHat(port=4),
}
BRAKE_S, REST_S = 0.2, 0.03
OFF, BRAKE = Bridge(0.0, 0.0, 1.0), Bridge(0.0, 1.0, 0.0)


def outputs(motor: DcMotor) -> tuple[int, ...]:
    """Return the pins of a motor; on a HAT those of its chip."""
    return HAT_CHANNELS[motor.port] if isinstance(motor, MotorHat) else motor.pins()


class Bench:
    """Driver on fake pins, with the state of its chip at every change of a pin."""

    def __init__(self, motor: DcMotor) -> None:
        self.motor = motor
        self.states = [OFF]
        self.pins = FakePins(lambda _: self.states.append(self.now))
        if isinstance(motor, MotorHat):  # the chip already has its frequency
            for channel in outputs(motor):
                self.pins.set_frequency(channel, 4000)
        self.driver: MotorDriver = motor_driver(motor, self.pins)
        self.states = [self.now]

    @property
    def now(self) -> Bridge:
        """Return the state of the chip for the current pins."""
        duties = (self.pins.duty(gpio) for gpio in outputs(self.motor))
        return CHIPS[type(self.motor)].bridge(*duties)


Make = Callable[..., Bench]


@pytest.fixture(params=WIRED)
def make(request: pytest.FixtureRequest) -> Make:
    motor = WIRED[request.param]

    def made(**changes: Any) -> Bench:
        settings = {"brake_s": BRAKE_S, "rest_s": REST_S} | changes
        return Bench(msgspec.structs.replace(motor, **settings))

    return made


def runs(bench: Bench, duty: float) -> Bridge:
    """Return the state of a bridge driven one way and released in between; a TB6612 brakes in
    between."""
    rest: Any = pytest.approx(1.0 - abs(duty))
    if isinstance(bench.motor, MotorHat):
        return Bridge(duty, rest, 0.0)
    return Bridge(duty, 0.0, rest)


def test_bridges_cover_all_motor_drivers() -> None:
    motors = set(DcMotor.__subclasses__())
    assert {type(motor) for motor in WIRED.values()} == motors == set(CHIPS)


def test_bridge_starts_off_though_pins_were_on(make: Make) -> None:
    motor, pins = make().motor, FakePins()
    gpios = outputs(motor)
    for gpio in gpios:
        pins.write(gpio, 1)
    motor_driver(motor, pins)
    assert [pins.duty(gpio) for gpio in gpios] == [0.0] * len(gpios)
    assert set(pins.frequency_hz.values()) <= {4000}


@pytest.mark.parametrize("duty", [0.3, -0.3, 1.0, -1.0])
def test_bridge_drives_both_ways(make: Make, duty: float) -> None:
    bench = make()
    bench.driver.drive(duty, 0.0)
    assert bench.now == runs(bench, duty) and bench.driver.due_s is None
    assert all(state in (OFF, runs(bench, duty)) for state in bench.states)


def test_motor_cut_by_dead_man_is_driven_again(make: Make) -> None:
    bench = make()
    bench.driver.drive(0.3, 0.0)
    for gpio in outputs(bench.motor):
        bench.pins.write(gpio, 0)
    bench.driver.drive(0.3, 0.02)
    assert bench.now == runs(bench, 0.3)


def test_stop_brakes_then_lets_go(make: Make) -> None:
    bench = make()
    bench.driver.drive(0.3, 0.0)
    bench.driver.drive(0.0, 1.0)
    assert bench.now == BRAKE and bench.driver.due_s == pytest.approx(1.2)
    bench.driver.drive(0.0, 1.1)
    bench.driver.tick(1.199)
    assert bench.now == BRAKE
    bench.driver.tick(1.2)
    assert bench.now == OFF and bench.driver.due_s is None


def test_stop_without_brake_only_lets_go(make: Make) -> None:
    bench = make(brake_s=0.0)
    bench.driver.drive(-0.3, 0.0)
    bench.driver.drive(0.0, 1.0)
    assert bench.now == OFF and BRAKE not in bench.states


def test_reversal_rests_first(make: Make) -> None:
    bench = make()
    bench.driver.drive(0.3, 0.0)
    bench.driver.drive(-0.3, 1.0)
    assert bench.now == OFF and bench.driver.due_s == pytest.approx(1.03)
    bench.driver.drive(-0.4, 1.02)
    assert bench.now == OFF
    bench.driver.tick(1.03)
    assert bench.now == runs(bench, -0.4)


def test_stop_during_rest_drops_the_wish(make: Make) -> None:
    bench = make()
    bench.driver.drive(0.3, 0.0)
    bench.driver.drive(-0.3, 1.0)
    bench.driver.drive(0.0, 1.01)
    bench.driver.tick(5.0)
    assert bench.now == OFF


def test_brake_gives_way_to_a_new_wish(make: Make) -> None:
    bench = make()
    bench.driver.drive(0.3, 0.0)
    bench.driver.drive(0.0, 1.0)
    bench.driver.drive(0.2, 1.05)
    assert bench.now == runs(bench, 0.2)
    bench.driver.drive(0.0, 1.1)
    bench.driver.drive(-0.2, 1.15)
    assert bench.now == OFF, "another direction rests first"
    bench.driver.tick(1.18)
    assert bench.now == runs(bench, -0.2)


def test_reversal_after_a_long_pause_needs_no_rest(make: Make) -> None:
    bench = make()
    bench.driver.drive(0.3, 0.0)
    bench.driver.drive(0.0, 1.0)
    bench.driver.tick(1.2)
    bench.driver.drive(-0.3, 2.0)
    assert bench.now == runs(bench, -0.3)


def test_motor_holds_with_less_after_its_kick(make: Make) -> None:
    """A motor held against its stop draws its stall current."""
    bench = make(kick_s=0.3, hold=0.5)
    for now_s in (0.0, 0.1, 0.29):
        bench.driver.drive(0.4, now_s)
        assert bench.now == runs(bench, 0.4)
    bench.driver.drive(0.4, 0.3)
    assert bench.now == runs(bench, 0.2)
    bench.driver.drive(0.42, 0.4)
    assert bench.now == runs(bench, 0.21), "a thumb that trembles is no new wish"
    bench.driver.drive(0.6, 0.5)
    assert bench.now == runs(bench, 0.6)
    bench.driver.drive(0.4, 0.9)
    assert bench.now == runs(bench, 0.2)
    bench.driver.drive(0.0, 1.0)
    bench.driver.drive(0.4, 1.02)
    assert bench.now == runs(bench, 0.4), "a new wish"


def test_lost_pins_raise_from_drive(make: Make) -> None:
    bench = make()
    bench.pins.cut()
    with pytest.raises(PinsLost):
        bench.driver.drive(0.3, 0.0)


@pytest.mark.parametrize("duties", [(0.3,), (-0.3,), (0.3, 0.0), (-0.3, 0.0)])
def test_dead_man_turns_off_without_other_drive_states(make: Make, duties: Sequence[float]) -> None:
    bench = make()
    dead_man = FakeDeadMan(bench.pins, outputs(bench.motor), 0.0)
    for duty in duties:
        bench.driver.drive(duty, 0.0)
    before = bench.now
    bench.states.clear()
    dead_man.pass_to(1.0)
    assert bench.now == OFF
    assert not any(bench.pins.duty(gpio) for gpio in outputs(bench.motor))
    for state in bench.states:
        assert state.drive in (0.0, before.drive), bench.states


STEPS = st.lists(
    st.tuples(st.sampled_from([0.0, 0.3, 1.0, -0.3, -1.0]), st.floats(0.0, 0.3)), max_size=40
)


@given(STEPS, st.sampled_from(sorted(WIRED)), st.sampled_from([0.0, BRAKE_S]))
def test_bridge_is_off_between_ways_and_brakes_in_full(
    steps: list[tuple[float, float]], name: str, brake_s: float
) -> None:
    """Check at every change of a pin, not only after a call."""
    motor = msgspec.structs.replace(WIRED[name], brake_s=brake_s)
    bench, now_s = Bench(motor), 0.0
    for duty, wait_s in steps:
        bench.driver.drive(duty, now_s)
        now_s += wait_s
        bench.driver.tick(now_s)
    for state in bench.states:
        whole = state == BRAKE or state.brake == 0.0
        assert whole or isinstance(motor, MotorHat), "both halves are on"
        assert brake_s or state != BRAKE
    for one, then in zip(bench.states, bench.states[1:], strict=False):
        ways = [kind_of(one), kind_of(then)]
        assert ways[0] == ways[1] or "off" in ways, ways


def kind_of(state: Bridge) -> str:
    """Return "off", "brake", or the direction of driving."""
    if state.brake == 1.0:
        return "brake"
    if not state.drive:
        return "off"
    return "forward" if state.drive > 0.0 else "reverse"
