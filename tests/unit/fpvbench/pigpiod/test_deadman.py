"""Script of the dead man: motors off 200-220 ms after the last heartbeat."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from testkit.pins.pigpiod import Core, Emulator, emulator, words
from testkit.pins.wheels import START_S, until

from fpvbench.pigpiod.protocol import Cmd
from tests.unit.fpvbench.pigpiod.test_scripts import status, store

PINS = (17, 27, 24, 23)
TICKS, TICK_US = 9, 20_000
SCRIPT = (
    "tag 0 mils 20 lda p0 cmp v0 jz 1 sta v0 ld v1 p1 ld p8 0 jmp 0 tag 1 dcr v1 jp 0 "
    + "".join(f"p {pin} 0 w {pin} 0 " for pin in PINS)
    + "ld v1 0 ld p8 1 inr p9 jmp 0"
)


def started(core: Core) -> int:
    script = store(core, SCRIPT)
    assert core(Cmd.PROCR, script, 0, words(0, TICKS)) == 0
    return script


def drive(core: Core, script: int, beats: int, first: int = 1) -> None:
    """Send heartbeats every 20 ms, with a duty each."""
    for beat in range(first, first + beats):
        core(Cmd.PWM, 17, 128)
        core(Cmd.PWM, 24, 255)
        core(Cmd.PROCU, script, 0, words(beat))
        core.run(20_000)


def duties(core: Core) -> list[float]:
    return [core.soc.pin[pin].duty() for pin in PINS]


def test_dead_man_starts_tripped(core: Core) -> None:
    script = started(core)
    core(Cmd.PWM, 17, 128)
    core.run(30_000)
    assert status(core, script)[9] == 1
    assert duties(core) == [0.0] * 4


@pytest.mark.parametrize("offset_us", range(0, 20_000, 1700))
def test_dead_man_stops_in_time(core: Core, offset_us: int) -> None:
    script = started(core)
    core.run(offset_us)
    drive(core, script, 20)
    assert status(core, script)[9] == 0
    assert duties(core)[0] > 0.4 and duties(core)[2] == 1.0
    last_us = core.now_us - 20_000
    while any(duties(core)):
        core.run(100)
        assert core.now_us - last_us < 300_000
    took_us = core.now_us - last_us
    assert (TICKS + 1) * TICK_US <= took_us <= (TICKS + 2) * TICK_US + 200
    assert status(core, script)[9] == 1


def test_dead_man_trips_each_tick_and_heartbeat_clears(core: Core) -> None:
    script = started(core)
    drive(core, script, 5)
    core.run(400_000)
    trips = status(core, script)[10]
    assert trips >= 9
    core(Cmd.PWM, 17, 128)  # a late command without a heartbeat
    core.run(25_000)
    assert duties(core) == [0.0] * 4
    drive(core, script, 3, first=100)
    assert status(core, script)[9] == 0
    assert duties(core)[0] > 0.4


def test_duty_after_a_trip_reads_as_no_pwm(core: Core) -> None:
    script = started(core)
    drive(core, script, 3)
    core.run(300_000)
    assert core(Cmd.GDC, 17) == -92
    assert [core(Cmd.MODEG, pin) for pin in PINS] == [1] * 4


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Emulator]:
    with emulator(tmp_path) as started_emulator:
        yield started_emulator


CLIENT = """
import sys, time, pigpio
pi = pigpio.pi("127.0.0.1", int(sys.argv[1]))
script = pi.store_script(sys.argv[2].encode())
while pi.script_status(script)[0] == 0:
    time.sleep(0.005)
pi.run_script(script, [0, 9])
beat = 0
while True:
    beat += 1
    pi.set_PWM_dutycycle(17, 128)
    pi.update_script(script, [beat])
    if beat == 10:
        print("driving", flush=True)
    time.sleep(0.02)
"""


def test_killed_client_is_stopped_in_real_time(running: Emulator) -> None:
    argv = [sys.executable, "-c", CLIENT, str(running.port), SCRIPT]
    client = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert client.stdout is not None
    assert client.stdout.readline() == "driving\n"
    client.kill()
    until(lambda: not running.soc.pin[17].duty(), START_S, "it runs on")
    client.wait(20.0)
    client.stdout.close()
    assert running.soc.pin[17].mode == 1
