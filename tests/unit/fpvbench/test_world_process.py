"""World between chip and clock: wiring, publishing, the process."""

import math
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from testkit.world import inputs

from fpvbench import soc
from fpvbench.world.bridge import Wiring
from fpvbench.world.process import World, looking, publish
from fpvcar import config
from fpvcar.config import profiles
from fpvcar.runtime import paths

PROFILE = Path(__file__).parents[3] / "hardware" / "bench.toml"
FULL = 0.4


# --- the chip --------------------------------------------------------------------


@pytest.fixture
def chip(tmp_path: Path) -> soc.Soc:
    soc.create(tmp_path / "soc")
    return soc.attach(tmp_path / "soc")


def output(chip: soc.Soc, gpio: int, duty: float) -> None:
    pin = chip.pin[gpio]
    pin.mode, pin.pwm = soc.MODE_OUTPUT, int(1250 * duty) << 32 | 1250


def test_wiring_reads_the_profile_s_pins(chip: soc.Soc) -> None:
    profile = profiles.load(PROFILE)
    output(chip, 17, 0.4)
    output(chip, 23, 0.2)
    drive, steer, *_ = Wiring(profile.motors).bridges(chip)
    assert drive == pytest.approx((0.4, 0, 0.6))
    assert steer == pytest.approx((-0.2, 0, 0.8))
    chip.pin[17].mode = soc.MODE_INPUT
    assert Wiring(profile.motors).bridges(chip).drive == (0.0, 0.0, 1.0)


def test_wiring_knows_the_chip_of_each_motor(chip: soc.Soc) -> None:
    wiring = Wiring(profiles.load(paths.HARDWARE / "l298n.toml").motors)
    output(chip, 18, 0.4)
    output(chip, 27, 1.0)
    drive, steer, *_ = wiring.bridges(chip)
    assert drive == pytest.approx((-0.4, 0, 0.6)) and steer == (0.0, 0.0, 1.0)
    assert [one.drop_v for one in wiring.losses] == [1.0, 1.0]
    world = World(1, losses=wiring.losses)
    for _ in range(60):
        world.step(wiring.bridges(chip))
    assert world.speed_mps < -0.1


def test_inverted_motor_has_swapped_leads(chip: soc.Soc) -> None:
    motor = config.Mx1508(forward=17, reverse=27, invert=True)
    output(chip, 17, 0.4)
    same = config.Mx1508(forward=24, reverse=23)
    assert Wiring(config.Motors(motor, same)).bridges(chip).drive.drive == -0.4


def test_world_state_is_published_to_the_chip(chip: soc.Soc) -> None:
    world = World(5)
    for _ in range(50):
        world.step(inputs(0.3))
    world.hardest_mps = 0.25
    publish(chip, world, 123)
    out = soc.read_world(chip)
    assert out.hardest_mps == 0.25
    assert (out.time_ns, out.tick, out.seed) == (123, 50, 5)
    assert (out.x_m, out.y_m, out.yaw_rad) == world.pose
    assert out.speed_mps == world.speed_mps
    assert list(out.range_m[: out.ranges]) == world.ranges_m
    assert out.nq == 13
    assert list(out.qpos[:13]) == world.data.qpos.tolist()
    assert out.battery_v == pytest.approx(7.7, abs=0.3)


def test_camera_follows_the_pulses_of_pan_and_tilt_and_stays_without(chip: soc.Soc) -> None:
    profile = profiles.load(paths.HARDWARE / "pan-tilt.toml")
    assert looking(chip, profile, (0.1, 0.2)) == (0.1, 0.2)
    for gpio, deg in ((12, 30.0), (13, -20.0)):
        chip.pin[gpio].mode = soc.MODE_OUTPUT
        chip.pin[gpio].pwm = round(1500 + 10 * deg) << 32 | 20_000
    pan, tilt = looking(chip, profile, (0.0, 0.0))
    assert (math.degrees(pan), math.degrees(tilt)) == pytest.approx((30.0, -20.0))
    world = World(5)
    world.look = pan, tilt
    publish(chip, world, 123)
    state = soc.read_world(chip)
    assert (state.pan_rad, state.tilt_rad) == world.look


def test_world_killed_in_mid_write_hangs_no_reader(chip: soc.Soc) -> None:
    chip.world.sequence = 7
    assert soc.peek_world(chip) is None


# --- the process -------------------------------------------------------------------


def start(path: Path, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "fpvbench.world.process", f"--soc={path}", *more],
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def process(tmp_path: Path, chip: soc.Soc) -> Iterator[subprocess.Popen[str]]:
    with start(tmp_path / "soc", f"--profile={PROFILE}", "--seed=2") as world:
        try:
            yield world
        finally:
            world.kill()


def until_tick(chip: soc.Soc, tick: int) -> soc.World:
    for _ in range(2000):
        state = soc.read_world(chip)
        if state.tick >= tick:
            return state
        time.sleep(0.01)
    raise AssertionError(f"no tick {tick}")


def test_process_drives_from_the_pins(chip: soc.Soc, process: subprocess.Popen[str]) -> None:
    assert process.stderr is not None
    assert process.stderr.readline() == "world: seed 2, 100 Hz\n"
    output(chip, 17, FULL)
    begin = soc.read_world(chip)
    state = until_tick(chip, begin.tick + 60)
    assert state.speed_mps > 0.3
    assert state.seed == 2
    assert state.time_ns <= time.monotonic_ns()
    process.send_signal(signal.SIGTERM)
    assert process.wait(20.0) == 0


def test_process_skips_the_time_it_was_stopped(
    chip: soc.Soc, process: subprocess.Popen[str]
) -> None:
    until_tick(chip, 5)
    process.send_signal(signal.SIGSTOP)
    before, start_s = chip.world.tick, time.monotonic()
    time.sleep(0.8)
    process.send_signal(signal.SIGCONT)
    time.sleep(0.2)
    ticks = chip.world.tick - before
    assert ticks <= (time.monotonic() - start_s - 0.8) * 100 + 20


def test_process_says_what_is_wrong(tmp_path: Path) -> None:
    with start(tmp_path / "absent", f"--profile={PROFILE}") as world:
        _, said = world.communicate(timeout=20)
        assert world.returncode == 2
        assert "absent" in said
