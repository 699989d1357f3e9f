"""Emulated car that drives, stops, steers and sags like a toy car."""

import math
import random
import time
from pathlib import Path

import pytest
from testkit.profiles import mx1508s
from testkit.world import inputs

from fpvbench.world import scene
from fpvbench.world.bridge import Bridges
from fpvbench.world.furniture import Solid
from fpvbench.world.motor import Rack
from fpvbench.world.process import World
from fpvcar.config import profiles

PROFILE = Path(__file__).parents[3] / "hardware" / "bench.toml"
NOWHERE = scene.Ramp(0.0, 9.0)
EMPTY = scene.Layout((), NOWHERE)
FULL = 0.4
"""Duty of 3 V from 7.5 V, the maximum of a profile with max_volts = 3."""
DIAGONAL = math.atan2(4.0, 5.0)


def empty_room(x: float = 0.0, y: float = 0.0, yaw: float = 0.0) -> World:
    world = World(1, place=EMPTY)
    world.put(x, y, yaw)
    return world


def drive(world: World, bridges: Bridges, ticks: int) -> World:
    for _ in range(ticks):
        world.step(bridges)
    return world


def way_m(world: World, duties: list[Bridges], last: Bridges) -> float:
    """Return the metres until the car stands."""
    start, ticks = world.pose, 0
    while abs(world.speed_mps) > 0.01:
        world.step(duties[ticks] if ticks < len(duties) else last)
        ticks += 1
        assert ticks < 1000, "does not stop"
    return math.dist(start[:2], world.pose[:2])


def at_full_speed() -> World:
    return drive(empty_room(-2.2, -1.7, DIAGONAL), inputs(FULL), 180)


# --- driving ---------------------------------------------------------------------


def test_same_seed_and_pins_same_run() -> None:
    def run() -> tuple[list[float], list[float], float]:
        dice, world = random.Random(7), World(3)
        for _ in range(400):
            duties = [dice.choice((0.0, 0.2, FULL, 1.0)) for _ in range(4)]
            for _ in range(3):
                world.step(inputs(*duties))
        return world.data.qpos.tolist(), world.ranges_m, world.battery.charge

    assert run() == run()


def test_world_runs_much_faster_than_real_time() -> None:
    world = World(1)
    start_s = time.process_time()
    drive(world, inputs(0.3, 0, 0.2, 0), 1000)
    assert time.process_time() - start_s < 2.0  # 10 s of driving


def test_stands_still_when_left_alone() -> None:
    world = empty_room()
    drive(world, inputs(), 300)
    assert world.pose == pytest.approx((0, 0, 0), abs=0.002)
    assert world.speed_mps == pytest.approx(0.0, abs=0.001)


def test_dead_band_is_30_to_40_of_255() -> None:
    still = drive(empty_room(), inputs(30 / 255), 200)
    assert abs(still.pose[0]) < 0.002
    moving = drive(empty_room(), inputs(40 / 255), 200)
    assert moving.pose[0] > 0.1


def test_profile_dead_band_moves_the_car() -> None:
    profile = profiles.load(PROFILE)
    smallest = mx1508s(profile)[0].dead_band
    world = drive(empty_room(), inputs(smallest + 0.005), 300)
    assert world.pose[0] > 0.05


def test_top_speed_and_start() -> None:
    world = drive(empty_room(-2.2, -1.7, DIAGONAL), inputs(FULL), 100)
    after_1_s = world.speed_mps
    drive(world, inputs(FULL), 180)
    assert 1.2 < world.speed_mps < 1.8
    assert after_1_s > 0.65 * world.speed_mps


def test_backward() -> None:
    world = drive(empty_room(), inputs(reverse=FULL), 100)
    assert world.speed_mps < -0.8
    assert world.pose[0] < -0.3


def test_braking_is_shorter_than_coasting() -> None:
    coasting = way_m(at_full_speed(), [], inputs())
    braking = way_m(at_full_speed(), [], inputs(1, 1))
    profile_s = [inputs(1, 1)] * 20
    stop = way_m(at_full_speed(), profile_s, inputs())  # brake_s = 0.2, then coast
    assert 0.7 < coasting < 1.3
    assert braking < 0.65 * coasting
    assert braking < stop < 0.85 * coasting


@pytest.mark.parametrize("side", [1, -1])
def test_steers(side: int) -> None:
    left, right = (FULL, 0.0) if side > 0 else (0.0, FULL)
    world = drive(empty_room(), inputs(0.3, 0, left, right), 100)
    assert world.pose[1] * side > 0.1
    assert world.pose[2] * side > 0.5


def test_turning_circle_is_that_of_the_front_wheels() -> None:
    world = drive(empty_room(), inputs(0.25, 0, FULL, 0), 200)
    across = []
    for _ in range(400):
        world.step(inputs(0.25, 0, FULL, 0))
        across.append(world.pose[1])
    radius = scene.WHEELBASE_M / math.tan(Rack.end_rad)
    assert (max(across) - min(across)) / 2 == pytest.approx(radius, rel=0.1)


def test_wall_stops_the_car_and_contact_is_kept() -> None:
    world = empty_room(1.2)
    hardest = 0.0
    for _ in range(300):
        world.step(inputs(FULL))
        hardest = max(hardest, world.contact_mps)
    assert hardest > 0.5
    assert abs(world.speed_mps) < 0.05
    assert world.pose[0] < scene.ROOM_X_M / 2 - 0.1
    drive(world, inputs(reverse=FULL), 60)
    assert world.contact_mps == 0.0
    assert world.hardest_mps == hardest, "it is kept when it is over"


def test_box_stops_the_car() -> None:
    box = Solid(0.8, 0.0, 0.3, (0.2, 0.15, 0.2), "red")
    world = World(1, place=scene.Layout((box,), NOWHERE))
    world.put(0.0, 0.0, 0.0)
    drive(world, inputs(FULL), 300)
    assert world.pose[0] < 0.75
    assert world.ranges_m[0] < 0.2


def test_climbs_the_ramp() -> None:
    world = World(1, place=scene.Layout((), scene.Ramp(0.3, 0.0)))
    highest = 0.0
    for _ in range(400):
        world.step(inputs(FULL))
        highest = max(highest, float(world.data.qpos[2]))
    assert highest > 0.9 * scene.RAMP_RISE_M + scene.WHEEL_R_M
    assert world.pose[0] > 1.2
    assert world.rescues == 0


def test_ranges_match_the_room() -> None:
    world = drive(empty_room(0.5, 0.3), inputs(), 20)
    front = scene.ROOM_X_M / 2 - 0.5 - 0.115
    assert world.ranges_m[0] == pytest.approx(front, abs=0.01)
    aside = front / math.cos(math.radians(35))
    left = min(aside, (scene.ROOM_Y_M / 2 - 0.3) / math.sin(math.radians(35)))
    assert world.ranges_m[1] == pytest.approx(left, abs=0.02)
    assert world.ranges_m[2] == pytest.approx(aside, abs=0.02)
    assert world.ranges_m[3] == pytest.approx(scene.ROOM_X_M / 2 + 0.5 - 0.115, abs=0.01)


def test_range_beyond_4_m_is_infinite() -> None:
    world = drive(empty_room(-2.2), inputs(), 5)
    assert world.ranges_m[0] == math.inf


@pytest.mark.parametrize(("seed", "most"), [(3, 1.0), (6, 1.0), (23, FULL)])
def test_wild_driving_breaks_nothing(seed: int, most: float) -> None:
    dice, world, still = random.Random(seed), World(seed), 0
    for _ in range(80):
        pedal, side = dice.choice((most, most, 0.3)), dice.choice((0.0, FULL))
        ahead, left = dice.random() < 0.6, dice.random() < 0.5
        duties = inputs(pedal * ahead, pedal * (not ahead), side * left, side * (not left))
        for _ in range(dice.randint(20, 150)):
            world.step(duties)
            still = 0 if abs(world.speed_mps) > 0.05 else still + 1
            assert still < 2500, f"hangs at {world.pose}"
            assert abs(world.pose[0]) < 2.5 and abs(world.pose[1]) < 2.0
    assert not any(warning.number for warning in world.data.warning)


def test_load_makes_the_pack_sag() -> None:
    world = drive(empty_room(2.3), inputs(), 20)
    idle_v = world.battery.volts
    drive(world, inputs(1.0), 30)  # against the wall
    assert world.battery.volts < idle_v - 0.4


def test_put_back_on_its_wheels_after_3_s() -> None:
    world = empty_room(0.0, 1.0)
    world.data.qpos[2:7] = 0.1, 0, 1, 0, 0
    drive(world, inputs(), 250)
    assert world.rescues == 0
    drive(world, inputs(), 100)
    assert world.rescues == 1
    assert world.pose[:2] == pytest.approx((scene.START_X_M, scene.START_Y_M), abs=0.01)


def test_put_back_when_it_has_left_the_room() -> None:
    world = empty_room()
    world.data.qpos[0] = 2.9
    drive(world, inputs(), 400)
    assert world.rescues == 1


def sides(left: float, right: float) -> Bridges:
    """Return the bridges of a car with one motor per side."""
    made = inputs(max(left, 0.0), max(-left, 0.0), max(right, 0.0), max(-right, 0.0))
    return made._replace(differential=True)


def test_two_side_motors_go_straight_bend_and_turn_in_place() -> None:
    straight = drive(empty_room(), sides(0.4, 0.4), 150)
    assert straight.speed_mps > 0.4 and abs(straight.pose[2]) < 0.02
    left = drive(empty_room(), sides(0.25, 0.4), 150)
    assert left.pose[2] > 0.3 and left.pose[0] > 0.1
    for way in (1.0, -1.0):
        turned = drive(empty_room(), sides(-0.4 * way, 0.4 * way), 40)
        assert turned.pose[2] * way > 0.3, turned.pose
        assert math.hypot(*turned.pose[:2]) < 0.3
    back = drive(empty_room(), sides(-0.3, -0.3), 100)
    assert back.pose[0] < -0.1
