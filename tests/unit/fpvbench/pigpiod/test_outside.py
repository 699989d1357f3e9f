"""Surroundings of the chip: wires, levels driven from outside, and the HC-SR04."""

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from testkit.pins.pigpiod import START_US, Core, make_core, words

from fpvbench import outside
from fpvbench import soc as chip
from fpvbench.outside import drive
from fpvbench.pigpiod.daemon import Ultrasonic
from fpvbench.pigpiod.nets import Nets
from fpvbench.pigpiod.parts import echo_us
from fpvbench.pigpiod.protocol import Cmd

WIRED = [(22, 27)]

T0 = START_US
INPUT, OUTPUT = 0, 1
OFF, DOWN, UP = 0, 1, 2


def test_pulls_after_a_reset(core: Core) -> None:
    """Pulls of BCM2835 ARM Peripherals, table 6-31."""
    high = {*range(9), 34, 35, 36, *range(46, 54)}
    assert {gpio for gpio in range(54) if core(Cmd.READ, gpio)} == high


def test_board_pulls_hold_i2c_pins_up(core: Core) -> None:
    for gpio in (2, 3):
        assert core(Cmd.PUD, gpio, DOWN) == 0
        assert core(Cmd.READ, gpio) == 1


def test_output_drives_the_pin_wired_to_it(core: Core) -> None:
    reader = core.reader(1 << 22)
    for number in range(4):
        core.run(100)
        core(Cmd.WRITE, 27, number % 2)
        assert core(Cmd.READ, 22) == number % 2
        assert core(Cmd.BR1) >> 22 & 1 == number % 2
    core.run(2000)
    assert reader.edges(22) == [(T0 + 200, 1), (T0 + 300, 0), (T0 + 400, 1)]
    core(Cmd.MODES, 27, INPUT)
    core.run(2000)
    assert [level for _, level in reader.edges(22)] == [0]


def test_wires_carry_both_ways_and_over_three_pins(tmp_path: Path) -> None:
    core = make_core(tmp_path, wires=[(22, 27), (5, 22)])
    reader = core.reader(1 << 5 | 1 << 27)
    core(Cmd.WRITE, 22, 1)
    core.run(2000)
    (report,) = reader.take()
    assert report.levels >> 5 & 1 and report.levels >> 27 & 1


def test_pwm_is_seen_at_the_other_end(core: Core) -> None:
    reader = core.reader(1 << 22)
    core(Cmd.PWM, 27, 51)
    core.run(1250 - core.now_us % 1250)
    reader.take()
    core.run(5000)
    phases = [(tick % 1250, level) for tick, level in reader.edges(22)]
    assert len(phases) >= 7 and set(phases) == {(0, 1), (250, 0)}


def test_trigger_is_seen_at_the_other_end(core: Core) -> None:
    core(Cmd.WRITE, 27, 0)
    reader = core.reader(1 << 22)
    core(Cmd.TRIG, 27, 50, words(1))
    core.run(2000)
    assert reader.edges(22) == [(T0, 1), (T0 + 50, 0)]


def test_ultrasonic_sensor_hears_a_trigger_over_a_wire(tmp_path: Path) -> None:
    core = make_core(tmp_path, ultrasonics=[Ultrasonic(20, 21, 0)], wires=[(20, 26)])
    core.soc.world.range_m[0] = 1.0
    core(Cmd.WRITE, 26, 0)
    reader = core.reader(1 << 21)
    core(Cmd.TRIG, 26, 10, words(1))
    core.run(60_000)
    assert len(reader.edges(21)) == 2


@pytest.mark.parametrize(
    "range_m,high_us", [(1.0, 5831), (0.001, 117), (3.99, 23265), (4.01, 38000), (math.inf, 38000)]
)
def test_ultrasonic_echo(range_m: float, high_us: int) -> None:
    assert echo_us(range_m) == high_us


def test_ultrasonic_answers_a_trigger(tmp_path: Path) -> None:
    core = make_core(tmp_path, ultrasonics=[Ultrasonic(20, 21, 3)])
    core.soc.world.range_m[3] = 0.5
    core(Cmd.WRITE, 20, 0)
    reader = core.reader(1 << 21)
    core(Cmd.TRIG, 20, 10, words(1))
    core.run(1000)
    assert core(Cmd.READ, 21) == 1
    core(Cmd.TRIG, 20, 10, words(1))  # busy: no second echo
    core.run(60_000)
    (rise, _), (fall, level) = reader.edges(21)
    assert rise == T0 + 10 + 450
    assert fall - rise == pytest.approx(2915, abs=5) and level == 0


def test_ultrasonic_ignores_a_short_pulse(tmp_path: Path) -> None:
    core = make_core(tmp_path, ultrasonics=[Ultrasonic(20, 21, 0)])
    core(Cmd.WRITE, 20, 0)
    reader = core.reader(1 << 21)
    core(Cmd.TRIG, 20, 9, words(1))
    core.run(60_000)
    assert reader.take() == []


def test_ultrasonic_takes_a_pulse_by_write(tmp_path: Path) -> None:
    core = make_core(tmp_path, ultrasonics=[Ultrasonic(20, 21, 0)])
    core.soc.world.range_m[0] = math.inf
    core(Cmd.WRITE, 20, 0)
    core(Cmd.WRITE, 20, 1)
    core.run(30)
    core(Cmd.WRITE, 20, 0)
    core.run(500)  # no client watches; a READ sees the level all the same
    assert core(Cmd.READ, 21) == 1
    core.run(38_000)
    assert core(Cmd.READ, 21) == 0


@pytest.mark.parametrize(
    "pulls,level",
    [((UP, OFF), 1), ((OFF, UP), 1), ((DOWN, OFF), 0), ((OFF, OFF), 0), ((UP, DOWN), 0)],
)
def test_pulls_on_a_wire(core: Core, pulls: tuple[int, int], level: int) -> None:
    core(Cmd.PUD, 22, pulls[0])
    core(Cmd.PUD, 27, pulls[1])
    assert (core(Cmd.READ, 22), core(Cmd.READ, 27)) == (level, level)


def test_outside_drives_both_ends(core: Core) -> None:
    drive(core.soc, 22, 1, core.now_us)
    assert (core(Cmd.READ, 22), core(Cmd.READ, 27)) == (1, 1)
    core(Cmd.WRITE, 27, 0)  # a short: low wins
    assert (core(Cmd.READ, 22), core(Cmd.READ, 27)) == (0, 0)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12))
def test_nets_are_the_reachable_pins(wires: list[tuple[int, int]]) -> None:
    nets = Nets(wires)
    for gpio, net in nets.members.items():
        reached = {gpio}
        for _ in wires:
            for one, other in wires:
                if reached & {one, other}:
                    reached |= {one, other}
        assert set(net) == reached
        assert nets.bits[gpio] == sum(1 << member for member in reached)


def test_change_after_the_batch_comes_with_the_next(core: Core) -> None:
    reader = core.reader(1 << 22)
    core.run(1000)
    drive(core.soc, 22, 1, T0 + 1500)
    core.run(999)
    assert reader.take() == []
    core.run(1)
    assert reader.edges(22) == [(T0 + 1500, 1)]


def test_outside_does_not_move_an_output(core: Core) -> None:
    core(Cmd.WRITE, 5, 0)
    reader = core.reader(1 << 5)
    drive(core.soc, 5, 1, core.now_us)
    core.run(2000)
    assert (reader.take(), core(Cmd.READ, 5)) == ([], 0)


def test_change_before_the_reader_is_no_edge(core: Core) -> None:
    drive(core.soc, 22, 1, T0 - 10)
    reader = core.reader(1 << 22)
    core.run(2000)
    assert reader.take() == []


def test_more_changes_than_the_ring_holds(core: Core) -> None:
    reader = core.reader(1 << 22)
    core.run(100)
    for number in range(outside.SIZE + 101):
        drive(core.soc, 22, (number + 1) % 2, T0 + 100 + number // 20)
    core.run(2000)
    assert reader.edges(22)[-1][1] == 1
    assert core(Cmd.READ, 22) == 1


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 2)), max_size=30).map(
        lambda entries: sorted(entries, key=lambda entry: entry[0])
    ),
    st.booleans(),
)
def test_outside_is_sampled_like_a_pin(
    tmp_path_factory: pytest.TempPathFactory, entries: list[tuple[int, int]], wired: bool
) -> None:
    wires = [(22, 27)] if wired else []
    core = make_core(tmp_path_factory.getbasetemp(), wires=wires)
    gpio = 27 if wired else 22
    reader = core.reader(1 << gpio)
    core.run(1)
    level, wanted = 0, []
    for at_us, external in entries:
        drive(core.soc, 22, external, T0 + 1 + at_us)
        now = 0 if external == chip.FLOATING else external
        if now != level:
            wanted.append((-(-(T0 + 1 + at_us) // 5) * 5, now))
        level = now
    core.run(5000)
    seen: list[tuple[int, int]] = []
    for time_us, now in wanted:  # changes on one sample are one level
        if seen and seen[-1][0] == time_us:
            seen[-1] = (time_us, now)
        else:
            seen.append((time_us, now))
    changes = [
        entry
        for number, entry in enumerate(seen)
        if entry[1] != (seen[number - 1][1] if number else 0)
    ]
    assert reader.edges(gpio) == changes
