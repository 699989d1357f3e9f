"""The emulated car's battery, bridge, motor and rack; the room's layout."""

import math

import pytest

from fpvcar.bench.world import scene
from fpvcar.bench.world.bridge import CHIPS, l298n, mx1508
from fpvcar.bench.world.motor import Battery, Motor, Rack
from fpvcar.bench.world.process import World
from fpvcar.config import L298n
from tests.rigs.world import inputs

FULL = 0.4


# --- parts ---------------------------------------------------------------------


def test_bridge_states() -> None:
    assert mx1508(0, 0) == (0, 0, 1)
    assert mx1508(0.4, 0) == (0.4, 0, 0.6)
    assert mx1508(0, 1) == (-1, 0, 0)
    assert mx1508(1, 1) == (0, 1, 0)
    drive_share, brake, coast = mx1508(1.0, 0.6)
    assert (drive_share, brake, coast) == pytest.approx((0.4, 0.6, 0.0))


def test_an_l298n_is_off_without_its_enable() -> None:
    assert l298n(0, 1, 0) == (0, 0, 1)
    assert l298n(0.4, 1, 0) == (0.4, 0, 0.6)
    assert l298n(0.4, 0, 1) == (-0.4, 0, 0.6)
    assert l298n(1, 0, 0) == l298n(1, 1, 1) == (0, 1, 0)
    assert l298n(0.3, 0, 0) == (0, 0.3, 0.7)


def test_an_l298n_takes_its_part_of_the_voltage() -> None:
    """Data sheet: typically 1.8 V at 1 A; a motor that is slow is not braked."""
    motor = Motor(losses=CHIPS[L298n].losses)
    amps = 1.0
    across_v = 1.8 + amps * motor.motor_ohm
    assert motor.current_a(l298n(1, 1, 0), across_v, 0.0) == pytest.approx(amps)
    assert motor.current_a(l298n(1, 1, 0), 0.9, 0.0) == 0.0
    assert motor.current_a(l298n(1, 0, 0), 7.5, 700.0) == 0.0
    assert motor.current_a(l298n(1, 0, 0), 7.5, 1500.0) < -0.5
    assert motor.current_a(l298n(1, 0, 0), 7.5, -1500.0) > 0.5
    rack = Rack(drop_v=1.0)
    rack.step(l298n(1, 1, 0), 1.6, 0.01)
    assert rack.angle == 0.0, "it stays within its dead band"
    assert motor.friction_nm(100.0) == Motor().friction_nm(100.0)


def test_motor_current_follows_voltage_and_speed() -> None:
    motor = Motor()
    assert motor.current_a(mx1508(1, 0), 3.0, 0.0) == pytest.approx(3.0 / motor.ohm)
    turning = motor.current_a(mx1508(1, 0), 3.0, 1000.0)
    assert turning == pytest.approx((3.0 - 1.3) / motor.ohm)
    assert motor.current_a(mx1508(0, 1), 3.0, 0.0) == pytest.approx(-3.0 / motor.ohm)


def test_motor_runs_free_when_it_is_faster_than_its_voltage() -> None:
    motor = Motor()
    assert motor.current_a(mx1508(0.1, 0), 7.5, 1500.0) == 0.0
    assert motor.current_a(mx1508(0, 0.1), 7.5, -1500.0) == 0.0
    assert motor.current_a(mx1508(0, 0), 7.5, 1500.0) == 0.0
    assert motor.current_a(mx1508(1, 1), 7.5, 1500.0) < -0.5


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
        rack.step(mx1508(left, right), 7.5, 0.01)
        angles.append(rack.angle * side)
    assert angles == sorted(angles)
    assert angles[-1] == rack.end_rad
    assert angles[3] < rack.end_rad
    for _ in range(60):
        rack.step(mx1508(0, 0), 7.5, 0.01)
    assert rack.angle == 0.0


def test_rack_has_a_dead_band_and_holds_in_between() -> None:
    def angle(duty: float) -> float:
        rack = Rack()
        for _ in range(100):
            rack.step(mx1508(duty, 0), 7.5, 0.01)
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
    world = World(seed)
    for _ in range(120):
        world.step(inputs(FULL))
    assert world.pose[0] > scene.START_X_M + 0.8
    assert world.contact_mps == 0.0


def test_rooms_differ_by_seed() -> None:
    assert scene.layout(1) != scene.layout(2)
