"""PWM, servo pulses, hardware PWM and clocks: tables, registers, exact edges."""

import random
from pathlib import Path

import pytest
from testkit.pins.pigpiod import START_US, Core, Reader, make_core, words

from fpvbench.pigpiod import pwm
from fpvbench.pigpiod.daemon import AttachedDevices
from fpvbench.pigpiod.protocol import Cmd

FREQUENCIES = (
    *(8000, 4000, 2000, 1600, 1000, 800, 500, 400, 320, 250, 200, 160),
    *(100, 80, 50, 40, 20, 10),
)
REAL = (
    *(25, 50, 100, 125, 200, 250, 400, 500, 625, 800, 1000, 1250),
    *(2000, 2500, 4000, 5000, 10000, 20000),
)


def edges(core: Core, reader: Reader, gpio: int) -> list[tuple[int, int]]:
    core.run(1000)
    return reader.edges(gpio)


def test_tables(core: Core) -> None:
    assert pwm.FREQUENCIES == FREQUENCIES
    assert pwm.REAL_RANGES == REAL
    for hz, real in zip(FREQUENCIES, REAL, strict=True):
        assert core(Cmd.PFS, 17, hz) == hz
        assert (core(Cmd.PFG, 17), core(Cmd.PRRG, 17)) == (hz, real)


@pytest.mark.parametrize(
    "asked,chosen",
    [(0, 10), (9, 10), (15, 20), (16, 20), (650, 800), (649, 500), (6000, 8000)]
    + [(5999, 4000), (99999, 8000), (360, 400), (2**32 - 1, 8000)],
)
def test_nearest_frequency(core: Core, asked: int, chosen: int) -> None:
    assert core(Cmd.PFS, 17, asked) == chosen


@pytest.mark.parametrize("duty,on_us", [(1, 0), (2, 5), (64, 310), (128, 625), (254, 1245)])
def test_on_time_is_floored(core: Core, duty: int, on_us: int) -> None:
    core(Cmd.PWM, 17, duty)
    assert core.soc.pin[17].pwm == (on_us << 32 | 1250 if on_us else 0)
    assert core(Cmd.GDC, 17) == duty


def test_full_duty_is_a_steady_level(core: Core) -> None:
    core(Cmd.PWM, 17, 255)
    assert (core.soc.pin[17].pwm, core.soc.pin[17].duty()) == (0, 1.0)
    core(Cmd.PWM, 17, 0)
    assert (core.soc.pin[17].pwm, core.soc.pin[17].duty()) == (0, 0.0)
    assert core(Cmd.GDC, 17) == 0


def test_range_scales_a_running_duty(core: Core) -> None:
    core(Cmd.PWM, 17, 51)
    assert core(Cmd.PRS, 17, 1000) == 250
    assert (core(Cmd.GDC, 17), core(Cmd.PRG, 17)) == (200, 1000)
    assert core.soc.pin[17].duty() == pytest.approx(0.2)
    assert core(Cmd.PWM, 17, 1000) == 0


def test_frequency_keeps_a_running_duty(core: Core) -> None:
    core(Cmd.PWM, 17, 51)
    core(Cmd.PFS, 17, 100)
    assert core.soc.pin[17].pwm == 2000 << 32 | 10_000


def test_write_pwm_and_servo_cancel_each_other(core: Core) -> None:
    core(Cmd.PWM, 17, 51)
    core(Cmd.WRITE, 17, 1)
    assert (core(Cmd.GDC, 17), core.soc.pin[17].duty()) == (-92, 1.0)
    core(Cmd.PWM, 17, 0)
    assert (core(Cmd.GDC, 17), core.soc.pin[17].duty()) == (0, 0.0)
    core(Cmd.SERVO, 17, 1500)
    assert (core(Cmd.GDC, 17), core(Cmd.GPW, 17)) == (-92, 1500)
    assert core.soc.pin[17].pwm == 1500 << 32 | 20_000
    core(Cmd.PWM, 17, 51)
    assert (core(Cmd.GPW, 17), core(Cmd.GDC, 17)) == (-93, 51)


def test_pwm_edges_are_exact(core: Core) -> None:
    reader = core.reader(1 << 17)
    core.run(137)
    core(Cmd.PWM, 17, 64)
    core.run(5000)
    seen = reader.edges(17)
    first = START_US // 1250 * 1250 + 1250
    wanted = []
    for number in range(4):
        start = first + 1250 * number
        wanted += [(start, 1), (start + 310, 0)]
    assert seen[: len(wanted)] == wanted[: len(seen)]
    assert len(seen) >= 6


def test_two_waves_share_one_time_base(core: Core) -> None:
    reader = core.reader(1 << 17 | 1 << 27)
    core(Cmd.PWM, 17, 64)
    core.run(333)
    core(Cmd.PWM, 27, 128)
    core.run(10_000)
    rises = [(r.tick, r.levels >> 17 & 1, r.levels >> 27 & 1) for r in reader.take()]
    together = [entry for entry in rises if entry[0] % 1250 == 0][1:]
    assert together and all(entry[1:] == (1, 1) for entry in together)


def test_unwatched_wave_shows_in_the_levels(core: Core) -> None:
    core(Cmd.PWM, 17, 128)
    reader = core.reader(1 << 5)
    core.run(1250 - core.now_us % 1250 + 100)
    core(Cmd.WRITE, 5, 0)
    core.run(800)
    core(Cmd.WRITE, 5, 1)
    core.run(2000)
    assert [r.levels >> 17 & 1 for r in reader.take()] == [1, 0]


def test_shorter_duty_lets_the_pulse_end(core: Core) -> None:
    core(Cmd.PWM, 17, 250)
    reader = core.reader(1 << 17)
    core.run(3 * 1250 - core.now_us % 1250 + 600)
    core(Cmd.PWM, 17, 25)
    core.run(1000)
    assert reader.edges(17)[-2][0] % 1250 == 1225  # the old end; then a new start


def test_stop_and_start_in_mid_period(core: Core) -> None:
    core(Cmd.PWM, 17, 128)
    core.run(1250 - core.now_us % 1250 + 100)
    reader = core.reader(1 << 17)
    core(Cmd.PWM, 17, 0)
    at_us = core.now_us
    assert edges(core, reader, 17) == [(at_us, 0)]
    core(Cmd.PWM, 17, 128)
    core.run(3000)
    assert reader.edges(17)[0][0] % 1250 == 0


def test_servo_pulses(core: Core) -> None:
    reader = core.reader(1 << 18)
    core(Cmd.SERVO, 18, 1503)
    core.run(50_000)
    seen = reader.edges(18)
    assert [tick % 20_000 for tick, _ in seen[:4]] == [0, 1500, 0, 1500]
    assert seen[2][0] - seen[0][0] == 20_000


def test_servo_command_repeated_within_a_pulse_leaves_its_edges(core: Core) -> None:
    core(Cmd.SERVO, 4, 1500)
    reader, dice = core.reader(1 << 4), random.Random(1)
    for _ in range(300):
        core.run(dice.randrange(100, 3000))
        core(Cmd.SERVO, 4, 1500)
    edges = reader.edges(4)
    rises = [tick for tick, level in edges if level]
    falls = [tick for tick, level in edges if not level and tick > rises[0]]
    assert {fall - rise for rise, fall in zip(rises, falls, strict=False)} == {1500}


def test_servo_off_lets_the_pulse_end(core: Core) -> None:
    reader = core.reader(1 << 18)
    core(Cmd.SERVO, 18, 2000)
    core.run(20_000 - core.now_us % 20_000 + 1000)
    assert core(Cmd.SERVO, 18, 0) == 0
    assert core.now_us % 20_000 == 2000
    core.run(50_000)
    assert [tick % 20_000 for tick, _ in reader.edges(18)][-1] == 2000
    assert core.soc.pin[18].duty() == 0.0
    assert core(Cmd.GPW, 18) == 0


def test_hardware_pwm(core: Core) -> None:
    assert core(Cmd.HP, 18, 25_000, words(250_000)) == 0
    assert (core(Cmd.MODEG, 18), core.soc.pin[18].mode) == (2, 2)
    assert core.soc.pin[18].duty() == pytest.approx(0.25, abs=1e-3)
    assert (core(Cmd.GDC, 18), core(Cmd.PRG, 18)) == (250_000, 1_000_000)
    assert (core(Cmd.PFG, 18), core(Cmd.PRRG, 18)) == (25_000, 10_000)
    core(Cmd.HP, 12, 1000, words(500_000))  # the same channel
    assert core(Cmd.GDC, 18) == 500_000
    assert core.soc.pin[18].duty() == pytest.approx(0.5)
    core(Cmd.HP, 18, 0, words(0))
    assert (core(Cmd.GDC, 18), core.soc.pin[18].duty()) == (-92, 0.0)


def test_write_ends_hardware_pwm(core: Core) -> None:
    core(Cmd.HP, 13, 1000, words(500_000))
    core(Cmd.WRITE, 13, 0)
    assert (core.soc.pin[13].duty(), core.soc.pin[13].mode) == (0.0, 1)


def test_hardware_pwm_edges(core: Core) -> None:
    reader = core.reader(1 << 19)
    core(Cmd.HP, 19, 1000, words(300_000))
    core.run(5000)
    assert [tick % 1000 for tick, _ in reader.edges(19)][:4] == [0, 300, 0, 300]


def test_clock(core: Core) -> None:
    assert core(Cmd.HC, 4, 1_000_000) == 0
    assert (core(Cmd.MODEG, 4), core(Cmd.PFG, 4)) == (4, 1_000_000)
    assert (core(Cmd.GDC, 4), core(Cmd.PRRG, 4)) == (500_000, 1_000_000)
    core(Cmd.HC, 4, 0)
    assert core(Cmd.GDC, 4) == -92


def test_restarted_daemon_finds_modes_and_levels(tmp_path: Path) -> None:
    core = make_core(tmp_path)
    core(Cmd.WRITE, 5, 1)
    core(Cmd.PWM, 17, 128)
    core(Cmd.HP, 18, 1000, words(500_000))
    assert core.soc.pin[17].pwm
    core = Core(core.soc, AttachedDevices())  # as if the old daemon was killed
    assert (core(Cmd.READ, 5), core(Cmd.MODEG, 17), core.soc.pin[17].pwm) == (1, 1, 0)
    assert core(Cmd.GDC, 17) == -92
    assert core.soc.pin[18].duty() == pytest.approx(0.5)  # the PWM hardware continues


def test_end_of_the_daemon_freezes_the_wave(core: Core) -> None:
    core(Cmd.PWM, 17, 128)
    core.run(1250 - core.now_us % 1250 + 100)
    core.daemon.close(core.now_us)
    assert (core.soc.pin[17].pwm, core.soc.pin[17].duty()) == (0, 1.0)


def test_restart_forgets_the_wave_of_a_released_pin(core: Core) -> None:
    core(Cmd.PWM, 17, 128)
    core.soc.pin[17].mode, core.soc.pin[17].pull = 0, 1  # ExecStopPost's pinctrl
    core.run(1250 - core.now_us % 1250 + 700)  # a low part of the wave
    again = Core(core.soc, AttachedDevices())
    again.now_us = core.now_us
    again(Cmd.MODES, 17, 1)
    assert core.soc.pin[17].pwm == 0
