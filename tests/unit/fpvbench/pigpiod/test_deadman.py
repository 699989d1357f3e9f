"""Script of the dead man: motors off 200-220 ms after the last heartbeat."""

import pytest
from testkit.pins.pigpiod import Core, words

from fpvbench.pigpiod.protocol import Cmd
from fpvcar.devices.pigpio.dead_man import PATIENCE_TICKS, TICK_MS, script
from tests.unit.fpvbench.pigpiod.test_scripts import status, store

PINS = (17, 27, 24, 23)
SERVO = 13
TICK_US = TICK_MS * 1000


def started(core: Core) -> int:
    number = store(core, script(PINS))
    assert core(Cmd.PROCR, number, 0, words(0, PATIENCE_TICKS)) == 0
    return number


def drive(core: Core, number: int, beats: int, first: int = 1) -> None:
    """Send heartbeats every 20 ms, with a duty each."""
    for beat in range(first, first + beats):
        core(Cmd.PWM, 17, 128)
        core(Cmd.PWM, 24, 255)
        core(Cmd.PROCU, number, 0, words(beat))
        core.run(20_000)


def duties(core: Core) -> list[float]:
    return [core.soc.pin[pin].duty() for pin in PINS]


def test_dead_man_starts_tripped(core: Core) -> None:
    number = started(core)
    core(Cmd.PWM, 17, 128)
    core.run(30_000)
    assert status(core, number)[9] == 1
    assert duties(core) == [0.0] * 4


@pytest.mark.parametrize("offset_us", range(0, 20_000, 1700))
def test_dead_man_stops_in_time(core: Core, offset_us: int) -> None:
    number = started(core)
    core.run(offset_us)
    drive(core, number, 20)
    assert status(core, number)[9] == 0
    assert duties(core)[0] > 0.4 and duties(core)[2] == 1.0
    last_us = core.now_us - 20_000
    while any(duties(core)):
        core.run(100)
        assert core.now_us - last_us < 300_000
    took_us = core.now_us - last_us
    assert (PATIENCE_TICKS + 1) * TICK_US <= took_us <= (PATIENCE_TICKS + 2) * TICK_US + 200
    assert status(core, number)[9] == 1


def test_dead_man_trips_each_tick_and_heartbeat_clears(core: Core) -> None:
    number = started(core)
    drive(core, number, 5)
    core.run(400_000)
    trips = status(core, number)[10]
    assert trips >= 9
    core(Cmd.PWM, 17, 128)  # a late command without a heartbeat
    core.run(25_000)
    assert duties(core) == [0.0] * 4
    drive(core, number, 3, first=100)
    assert status(core, number)[9] == 0
    assert duties(core)[0] > 0.4


@pytest.mark.parametrize("offset_us", range(0, 20_000, 700))
def test_dead_man_ends_a_servo_with_a_whole_pulse(core: Core, offset_us: int) -> None:
    """Offsets put the end of the patience at each moment of a pulse and of the pause after it."""
    reader = core.reader(1 << SERVO)
    number = store(core, script(PINS[:2], servos=(SERVO,)))
    assert core(Cmd.PROCR, number, 0, words(0, PATIENCE_TICKS)) == 0
    core.run(offset_us)
    core(Cmd.PWM, 17, 128)
    core(Cmd.PROCU, number, 0, words(1))
    core(Cmd.SERVO, SERVO, 2500)
    core.run(400_000)
    edges = reader.edges(SERVO)
    widths = [fall - rise for (rise, _), (fall, _) in zip(edges[::2], edges[1::2], strict=True)]
    assert [level for _, level in edges[:2]] == [1, 0]
    assert set(widths) == {2500} and 8 <= len(widths) <= 11
    assert (core.soc.pin[SERVO].duty(), core.soc.pin[17].duty()) == (0.0, 0.0)


def test_duty_after_a_trip_reads_as_no_pwm(core: Core) -> None:
    number = started(core)
    drive(core, number, 3)
    core.run(300_000)
    assert core(Cmd.GDC, 17) == -92
    assert [core(Cmd.MODEG, pin) for pin in PINS] == [1] * 4
