"""Battery, bridge, motor and rack of the emulated car; the room's layout."""

import math
from typing import Any

import mujoco
import numpy as np
import pytest
from testkit.world import inputs

from fpvbench.world import looks, scene
from fpvbench.world.bridge import CHIPS, l298n, mx1508, tb6612
from fpvbench.world.motor import Battery, Motor, Rack
from fpvbench.world.process import World
from fpvcar.config import L298n, MotorHat, Mx1508

FULL = 0.4


# --- parts ---------------------------------------------------------------------


def test_bridge_states() -> None:
    assert mx1508(0, 0) == (0, 0, 1)
    assert mx1508(0.4, 0) == (0.4, 0, 0.6)
    assert mx1508(0, 1) == (-1, 0, 0)
    assert mx1508(1, 1) == (0, 1, 0)
    drive_share, brake, coast = mx1508(1.0, 0.6)
    assert (drive_share, brake, coast) == pytest.approx((0.4, 0.6, 0.0))


def test_l298n_is_off_without_its_enable() -> None:
    assert l298n(0, 1, 0) == (0, 0, 1)
    assert l298n(0.4, 1, 0) == (0.4, 0, 0.6)
    assert l298n(0.4, 0, 1) == (-0.4, 0, 0.6)
    assert l298n(1, 0, 0) == l298n(1, 1, 1) == (0, 1, 0)
    assert l298n(0.3, 0, 0) == (0, 0.3, 0.7)


def test_l298n_drops_its_part_of_the_voltage() -> None:
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
def test_start_is_clear_of_boxes_and_boxes_are_in_the_room(seed: int) -> None:
    place = scene.layout(seed)
    assert place == scene.layout(seed)
    assert len(place.boxes) >= 6
    for solid in place.solids:
        away = math.dist((solid.x, solid.y), (scene.START_X_M, scene.START_Y_M))
        assert away > solid.reach + 0.25
    for box in place.boxes:
        assert abs(box.x) + box.half[0] < scene.ROOM_X_M / 2 + 0.1
        assert abs(box.y) + box.half[1] < scene.ROOM_Y_M / 2 + 0.1


@pytest.mark.parametrize("seed", range(6))
def test_first_metre_is_free(seed: int) -> None:
    world = World(seed)
    for _ in range(120):
        world.step(inputs(FULL))
    assert world.pose[0] > scene.START_X_M + 0.8
    assert world.contact_mps == 0.0


SENSOR_Z_M = scene.WHEEL_R_M + 0.035
"""Height of the range sensors, with the car on the floor."""
ROOM_HALF = np.array([scene.ROOM_X_M / 2, scene.ROOM_Y_M / 2, math.inf])


@pytest.mark.parametrize("seed", range(40))
def test_furniture_reaches_the_floor_and_is_broad_where_sensors_look(seed: int) -> None:
    furniture = scene.layout(seed).furniture
    assert {"teal", "books", "doors"} & {part.texture for part in furniture}
    for part in furniture:
        if part.bottom:
            under = [o for o in furniture if o.bottom < part.bottom]
            assert any(math.dist((o.x, o.y), (part.x, part.y)) < o.reach for o in under)
            assert part.bottom > SENSOR_Z_M + 0.1
        else:
            assert part.bottom + 2 * part.half[2] > SENSOR_Z_M + 0.1
            assert min(part.half[:2]) >= 0.08


@pytest.mark.parametrize("seed", [1, 2, 9])
def test_drawn_surfaces_are_the_solid_surfaces(seed: int) -> None:
    """A ray at the sensors' height meets both in one place; at a wall, skirting board and door
    are drawn 15 mm before it."""
    model = looks.build(seed, 64, 64)
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    drawn, solid = np.eye(6, dtype=np.uint8)[[0, 3]]

    def meets(start: float, ahead: Any, groups: Any) -> Any:
        at = np.array([start, 0.0, SENSOR_Z_M])
        met = np.zeros(1, dtype=np.int32)
        return at + ahead * mujoco.mj_ray(model, data, at, ahead, groups, 1, -1, met)

    for degrees in range(0, 360, 2):
        turn = math.radians(degrees)
        ahead = np.array([math.cos(turn), math.sin(turn), 0.0])
        for start in (-1.9, 0.0, 1.5):
            hit, seen = meets(start, ahead, solid), meets(start, ahead, drawn)
            from_wall = np.minimum(ROOM_HALF - np.abs(hit), ROOM_HALF - np.abs(seen))
            near = from_wall.min() < 0.0151
            assert np.abs(hit - seen).max() < 1e-3 or near, (start, degrees)


def test_rooms_differ_by_seed() -> None:
    assert scene.layout(1) != scene.layout(2)


MX1508_BEARS_A = 2.5
"""Peak current for a moment; vendors differ from 2 to 2.5."""


@pytest.mark.parametrize(("hz", "bears"), [(800, False), (4000, True)])
def test_fast_pwm_spares_the_bridge_of_a_stalled_motor(hz: int, bears: bool) -> None:
    """Mean of 3 V from a pack of 7.5 V, and the stall current in each slow pulse."""
    motor = Motor(losses=CHIPS[Mx1508].losses._replace(pwm_hz=hz))
    assert motor.henry / motor.ohm == pytest.approx(0.15e-3, rel=0.01)
    stalled = motor.peak_a(mx1508(FULL, 0), 7.5, 0.0)
    assert (stalled < MX1508_BEARS_A) == bears, stalled
    assert motor.peak_a(mx1508(0, FULL), 7.5, 0.0) == pytest.approx(stalled)
    assert motor.peak_a(mx1508(FULL, 0), 7.5, 1000.0) < stalled


@pytest.mark.parametrize(("resistor_ohm", "seen_ohm"), [(0.0, 2.8), (2.2, 4.9)])
def test_battery_current_of_slow_pulses_shows_the_resistance(
    resistor_ohm: float, seen_ohm: float
) -> None:
    losses = CHIPS[Mx1508].losses
    motor = Motor(losses=losses._replace(pwm_hz=100, ohm=losses.ohm + resistor_ohm))
    for state in (mx1508(0.1, 0), mx1508(0, 0.1)):
        drawn_a = motor.drawn_a(state, 7.5, 0.0)
        assert 0.1 * 7.5 / drawn_a == pytest.approx(seen_ohm, rel=0.02)
    steps, coil_a, mean_a = 100_000, 0.0, 0.0
    for step in range(steps):  # one period, integrated
        volts = 7.5 if step < steps / 10 else -7.5
        coil_a = max(0.0, coil_a + (volts - motor.ohm * coil_a) / motor.henry * 0.01 / steps)
        mean_a += math.copysign(coil_a, volts) / steps
    assert motor.drawn_a(mx1508(0.1, 0), 7.5, 0.0) == pytest.approx(mean_a, rel=0.001)
    assert motor.drawn_a(mx1508(0.1, 0), 7.5, 1e4) == 0.0, "faster than its voltage"
    assert motor.drawn_a(mx1508(1.0, 0), 7.5, 0.0) == pytest.approx(7.5 / motor.ohm)


def test_at_the_frequency_of_servos_each_pulse_is_a_stall() -> None:
    stall_a = 7.5 / (0.68 + 0.5)
    for hz, least in ((50, 0.99), (1526, 0.4)):
        motor = Motor(losses=CHIPS[MotorHat].losses._replace(pwm_hz=hz))
        peak_a = motor.peak_a(tb6612(FULL, 1, 0), 7.5, 0.0)
        assert least * stall_a < peak_a <= stall_a
        mean_a = motor.current_a(tb6612(FULL, 1, 0), 7.5, 0.0)
        assert peak_a > mean_a
    assert motor.peak_a(tb6612(1, 1, 0), 7.5, 0.0) == pytest.approx(stall_a)
    assert motor.peak_a(tb6612(0, 0, 0), 7.5, 0.0) == 0.0
