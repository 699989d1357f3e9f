"""Filters as commands, and the HC-SR04 that answers a trigger."""

import math
from pathlib import Path

import pytest
from testkit.pins.pigpiod import START_US, Core, make_core, words

from fpvbench.pigpiod.daemon import Ultrasonic
from fpvbench.pigpiod.parts import echo_us
from fpvbench.pigpiod.protocol import Cmd

T0 = START_US


def test_glitch_filter_set_long_before_reports_no_edge(core: Core) -> None:
    core(Cmd.FG, 22, 1000)
    core.run(5000)
    reader = core.reader(1 << 22)
    core.run(5000)
    assert reader.take() == []


def test_glitch_filter_switched_off_shows_the_level_again(core: Core) -> None:
    core(Cmd.FG, 22, 100_000)
    core.run(200_000)
    reader = core.reader(1 << 22)
    core.daemon.lines.play(22, [(core.now_us + 1000, 1)])
    core.run(5000)
    assert reader.take() == []
    core(Cmd.FG, 22, 0)
    core.run(5000)
    assert [level for _, level in reader.edges(22)] == [1]


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
