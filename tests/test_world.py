"""The emulated car: does it drive, stop, steer and sag as a toy car does?"""

import math
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fpvcar import config
from fpvcar.bench import scene, soc
from fpvcar.bench.world import Duties, Wiring, World, publish
from fpvcar.bench.world_motor import Battery, Motor, Rack, bridge

PROFILE = Path(__file__).parents[1] / "hardware" / "bench.toml"
NOWHERE = scene.Ramp(0.0, 9.0)
EMPTY = scene.Layout((), NOWHERE)
FULL = 0.4
"""3 V of 7.5 V: what a profile with max_volts = 3 lets through."""
DIAGONAL = math.atan2(4.0, 5.0)


def empty_room(x: float = 0.0, y: float = 0.0, yaw: float = 0.0) -> World:
    world = World(1, place=EMPTY)
    world.put(x, y, yaw)
    return world


def drive(world: World, duties: Duties, ticks: int) -> World:
    for _ in range(ticks):
        world.step(duties)
    return world


def way_m(world: World, duties: list[Duties], last: Duties) -> float:
    """Metres until it stands."""
    start, ticks = world.pose, 0
    while abs(world.speed_mps) > 0.01:
        world.step(duties[ticks] if ticks < len(duties) else last)
        ticks += 1
        assert ticks < 1000, "does not stop"
    return math.dist(start[:2], world.pose[:2])


def at_full_speed() -> World:
    return drive(empty_room(-2.2, -1.7, DIAGONAL), Duties(FULL), 180)


# --- parts ---------------------------------------------------------------------


def test_bridge_states() -> None:
    assert bridge(0, 0) == (0, 0, 1)
    assert bridge(0.4, 0) == (0.4, 0, 0.6)
    assert bridge(0, 1) == (-1, 0, 0)
    assert bridge(1, 1) == (0, 1, 0)
    drive_share, brake, coast = bridge(1.0, 0.6)
    assert (drive_share, brake, coast) == pytest.approx((0.4, 0.6, 0.0))


def test_motor_current_follows_voltage_and_speed() -> None:
    motor = Motor()
    assert motor.current_a(bridge(1, 0), 3.0, 0.0) == pytest.approx(3.0 / motor.ohm)
    turning = motor.current_a(bridge(1, 0), 3.0, 1000.0)
    assert turning == pytest.approx((3.0 - 1.3) / motor.ohm)
    assert motor.current_a(bridge(0, 1), 3.0, 0.0) == pytest.approx(-3.0 / motor.ohm)


def test_motor_runs_free_when_it_is_faster_than_its_voltage() -> None:
    motor = Motor()
    assert motor.current_a(bridge(0.1, 0), 7.5, 1500.0) == 0.0
    assert motor.current_a(bridge(0, 0.1), 7.5, -1500.0) == 0.0
    assert motor.current_a(bridge(0, 0), 7.5, 1500.0) == 0.0
    assert motor.current_a(bridge(1, 1), 7.5, 1500.0) < -0.5


def test_battery_sags_and_empties() -> None:
    pack = Battery(8.4, 7.5, 6.2)
    pack.charge = 1.0
    assert pack.volts == pytest.approx(8.4)
    pack.draw(3.0, 0.01)
    assert pack.volts == pytest.approx(8.4 - 3.0 * pack.ohm, abs=0.01)
    pack.charge = 0.5
    assert pack.open_v == pytest.approx(7.5)
    pack.draw(0.0, 1.0)
    pack.draw(2.0, 3600.0)
    assert pack.charge == 0.0
    assert pack.open_v == pytest.approx(6.2)


@pytest.mark.parametrize("side", [1, -1])
def test_rack_turns_to_its_stop_and_springs_back(side: int) -> None:
    rack = Rack()
    left, right = (FULL, 0.0) if side > 0 else (0.0, FULL)
    angles = []
    for _ in range(40):
        rack.step(bridge(left, right), 7.5, 0.01)
        angles.append(rack.angle * side)
    assert angles == sorted(angles)
    assert angles[-1] == rack.end_rad
    assert angles[3] < rack.end_rad
    for _ in range(60):
        rack.step(bridge(0, 0), 7.5, 0.01)
    assert rack.angle == 0.0


def test_rack_has_a_dead_band_and_holds_in_between() -> None:
    def angle(duty: float) -> float:
        rack = Rack()
        for _ in range(100):
            rack.step(bridge(duty, 0), 7.5, 0.01)
        return rack.angle

    assert angle(20 / 255) == 0.0
    assert 0.0 < angle(0.15) < angle(0.2) < angle(0.25) < Rack.end_rad


# --- the room --------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_the_car_never_stands_in_a_box(seed: int) -> None:
    place = scene.layout(seed)
    assert place == scene.layout(seed)
    assert len(place.boxes) >= 6
    for box in place.boxes:
        reach = math.hypot(box.half[0], box.half[1])
        away = math.dist((box.x, box.y), (scene.START_X_M, scene.START_Y_M))
        assert away > reach + 0.25
        assert abs(box.x) + box.half[0] < scene.ROOM_X_M / 2 + 0.1
        assert abs(box.y) + box.half[1] < scene.ROOM_Y_M / 2 + 0.1


@pytest.mark.parametrize("seed", range(6))
def test_the_first_metre_is_free(seed: int) -> None:
    world = drive(World(seed), Duties(FULL), 120)
    assert world.pose[0] > scene.START_X_M + 0.8
    assert world.contact_mps == 0.0


def test_rooms_differ_by_seed() -> None:
    assert scene.layout(1) != scene.layout(2)


# --- driving ---------------------------------------------------------------------


def test_same_seed_and_pins_same_run() -> None:
    def run() -> tuple[list[float], list[float], float]:
        dice, world = random.Random(7), World(3)
        for _ in range(400):
            duties = [dice.choice((0.0, 0.2, FULL, 1.0)) for _ in range(4)]
            for _ in range(3):
                world.step(Duties(*duties))
        return world.data.qpos.tolist(), world.ranges_m, world.battery.charge

    assert run() == run()


def test_much_faster_than_real_time() -> None:
    world = World(1)
    start_s = time.process_time()
    drive(world, Duties(0.3, 0, 0.2, 0), 1000)
    assert time.process_time() - start_s < 2.0  # 10 s of driving


def test_stands_still_when_left_alone() -> None:
    world = empty_room()
    drive(world, Duties(), 300)
    assert world.pose == pytest.approx((0, 0, 0), abs=0.002)
    assert world.speed_mps == pytest.approx(0.0, abs=0.001)


def test_dead_band_is_30_to_40_of_255() -> None:
    still = drive(empty_room(), Duties(30 / 255), 200)
    assert abs(still.pose[0]) < 0.002
    moving = drive(empty_room(), Duties(40 / 255), 200)
    assert moving.pose[0] > 0.1


def test_the_profile_s_dead_band_moves_the_car() -> None:
    profile = config.load(PROFILE)
    smallest = profile.motors.drive.dead_band
    world = drive(empty_room(), Duties(smallest + 0.005), 300)
    assert world.pose[0] > 0.05


def test_top_speed_and_start() -> None:
    world = drive(empty_room(-2.2, -1.7, DIAGONAL), Duties(FULL), 100)
    after_1_s = world.speed_mps
    drive(world, Duties(FULL), 180)
    assert 1.2 < world.speed_mps < 1.8
    assert after_1_s > 0.65 * world.speed_mps


def test_backward() -> None:
    world = drive(empty_room(), Duties(reverse=FULL), 100)
    assert world.speed_mps < -0.8
    assert world.pose[0] < -0.3


def test_braking_is_shorter_than_coasting() -> None:
    coasting = way_m(at_full_speed(), [], Duties())
    braking = way_m(at_full_speed(), [], Duties(1, 1))
    profile_s = [Duties(1, 1)] * 20
    stop = way_m(at_full_speed(), profile_s, Duties())  # brake_s = 0.2, then let go
    assert 0.7 < coasting < 1.3
    assert braking < 0.65 * coasting
    assert braking < stop < 0.85 * coasting


@pytest.mark.parametrize("side", [1, -1])
def test_steers(side: int) -> None:
    left, right = (FULL, 0.0) if side > 0 else (0.0, FULL)
    world = drive(empty_room(), Duties(0.3, 0, left, right), 100)
    assert world.pose[1] * side > 0.1
    assert world.pose[2] * side > 0.5


def test_turning_circle_is_that_of_the_front_wheels() -> None:
    world = drive(empty_room(), Duties(0.25, 0, FULL, 0), 200)
    across = []
    for _ in range(400):
        world.step(Duties(0.25, 0, FULL, 0))
        across.append(world.pose[1])
    radius = scene.WHEELBASE_M / math.tan(Rack.end_rad)
    assert (max(across) - min(across)) / 2 == pytest.approx(radius, rel=0.1)


def test_a_wall_stops_the_car_and_is_felt() -> None:
    world = empty_room(1.2)
    hardest = 0.0
    for _ in range(300):
        world.step(Duties(FULL))
        hardest = max(hardest, world.contact_mps)
    assert hardest > 0.5
    assert abs(world.speed_mps) < 0.05
    assert world.pose[0] < scene.ROOM_X_M / 2 - 0.1
    drive(world, Duties(reverse=FULL), 60)
    assert world.contact_mps == 0.0


def test_a_box_stops_the_car() -> None:
    box = scene.Box(0.8, 0.0, 0.3, (0.2, 0.15, 0.2), "red")
    world = World(1, place=scene.Layout((box,), NOWHERE))
    world.put(0.0, 0.0, 0.0)
    drive(world, Duties(FULL), 300)
    assert world.pose[0] < 0.75
    assert world.ranges_m[0] < 0.2


def test_climbs_the_ramp() -> None:
    world = World(1, place=scene.Layout((), scene.Ramp(0.3, 0.0)))
    highest = 0.0
    for _ in range(400):
        world.step(Duties(FULL))
        highest = max(highest, float(world.data.qpos[2]))
    assert highest > 0.9 * scene.RAMP_RISE_M + scene.WHEEL_R_M
    assert world.pose[0] > 1.2
    assert world.rescues == 0


def test_ranges_are_the_room_s() -> None:
    world = drive(empty_room(0.5, 0.3), Duties(), 20)
    front = scene.ROOM_X_M / 2 - 0.5 - 0.115
    assert world.ranges_m[0] == pytest.approx(front, abs=0.01)
    aside = front / math.cos(math.radians(35))
    left = min(aside, (scene.ROOM_Y_M / 2 - 0.3) / math.sin(math.radians(35)))
    assert world.ranges_m[1] == pytest.approx(left, abs=0.02)
    assert world.ranges_m[2] == pytest.approx(aside, abs=0.02)
    assert world.ranges_m[3] == pytest.approx(
        scene.ROOM_X_M / 2 + 0.5 - 0.115, abs=0.01
    )


def test_no_range_beyond_4_m() -> None:
    world = drive(empty_room(-2.2), Duties(), 5)
    assert world.ranges_m[0] == math.inf


def test_a_load_makes_the_pack_sag() -> None:
    world = drive(empty_room(2.3), Duties(), 20)
    idle_v = world.battery.volts
    drive(world, Duties(1.0), 30)  # against the wall
    assert world.battery.volts < idle_v - 0.4


def test_put_back_on_its_wheels_after_3_s() -> None:
    world = empty_room(0.0, 1.0)
    world.data.qpos[2:7] = 0.1, 0, 1, 0, 0
    drive(world, Duties(), 250)
    assert world.rescues == 0
    drive(world, Duties(), 100)
    assert world.rescues == 1
    assert world.pose[:2] == pytest.approx((scene.START_X_M, scene.START_Y_M), abs=0.01)


def test_put_back_when_it_has_left_the_room() -> None:
    world = empty_room()
    world.data.qpos[0] = 2.9
    drive(world, Duties(), 400)
    assert world.rescues == 1


# --- the chip --------------------------------------------------------------------


@pytest.fixture
def chip(tmp_path: Path) -> soc.Soc:
    soc.create(tmp_path / "soc")
    return soc.attach(tmp_path / "soc")


def output(chip: soc.Soc, gpio: int, duty: float) -> None:
    pin = chip.pin[gpio]
    pin.mode, pin.pwm = soc.MODE_OUTPUT, int(1250 * duty) << 32 | 1250


def test_wiring_reads_the_profile_s_pins(chip: soc.Soc) -> None:
    profile = config.load(PROFILE)
    output(chip, 17, 0.4)
    output(chip, 23, 0.2)
    assert Wiring(profile.motors).duties(chip) == pytest.approx((0.4, 0, 0, 0.2))
    chip.pin[17].mode = soc.MODE_INPUT
    assert Wiring(profile.motors).duties(chip).forward == 0.0


def test_an_inverted_motor_has_swapped_leads(chip: soc.Soc) -> None:
    motor = config.Motor(forward=17, reverse=27, invert=True)
    output(chip, 17, 0.4)
    same = config.Motor(forward=24, reverse=23)
    assert Wiring(config.Motors(motor, same)).duties(chip).reverse == 0.4


def test_publish(chip: soc.Soc) -> None:
    world = drive(World(5), Duties(0.3), 50)
    publish(chip, world, 123)
    out = soc.read_world(chip)
    assert (out.time_ns, out.tick, out.seed) == (123, 50, 5)
    assert (out.x_m, out.y_m, out.yaw_rad) == world.pose
    assert out.speed_mps == world.speed_mps
    assert list(out.range_m[: out.ranges]) == world.ranges_m
    assert out.nq == 13
    assert list(out.qpos[:13]) == world.data.qpos.tolist()
    assert out.battery_v == pytest.approx(7.7, abs=0.3)


def test_a_world_that_died_while_it_wrote_hangs_nobody(chip: soc.Soc) -> None:
    chip.world.sequence = 7
    assert soc.peek_world(chip) is None


# --- the process -------------------------------------------------------------------


def start(path: Path, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "fpvcar.bench.world", f"--soc={path}", *more],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


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


def test_process_drives_from_the_pins(
    chip: soc.Soc, process: subprocess.Popen[str]
) -> None:
    assert process.stderr is not None
    assert process.stderr.readline() == "world: seed 2, 100 Hz\n"
    output(chip, 17, FULL)
    begin = soc.read_world(chip)
    state = until_tick(chip, begin.tick + 60)
    assert state.speed_mps > 0.3
    assert state.seed == 2
    assert state.time_ns <= time.monotonic_ns()
    process.send_signal(signal.SIGTERM)
    assert process.wait(5) == 0


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
