"""Calibration steps: user input, the step's wishes, refused input."""

import itertools
from typing import Any

import pytest
from testkit.profiles import profile_of

from fpvcar.calibration.driving_steps import Speed, SteeringEnds, StraightLine
from fpvcar.calibration.motors import DeadBand, Direction
from fpvcar.calibration.static_steps import CURVES, BatteryPack, Distance
from fpvcar.calibration.steps import CarState, Step, Wish, wish_for
from fpvcar.drive import mixing
from fpvcar.wire.telemetry import Range

BENCH, SIDES = profile_of("bench"), profile_of("differential")
SERVO = profile_of("mx1508-servo")


def play(step: Step, seconds: float, *duties: float, start_s: float = 0.0) -> None:
    """Show the step a car that drives like this for `seconds`."""
    for tick in range(round(seconds / 0.02)):
        moves = duties[0] if duties else 0.0
        step.update(CarState(start_s + tick * 0.02, moves, 0.0, duties or (0.0, 0.0)))


def test_backward_motor_is_inverted() -> None:
    step = Direction(BENCH.motors, "drive")
    with pytest.raises(ValueError, match="Hold the button first"):
        step.answer("backward", [])
    gentle = step.wish(1.0, 7.5).throttle
    play(step, 2.0, 0.2, 0.0)
    assert step.wish(1.0, 7.5).throttle > gentle > 0.0
    play(step, 0.1, start_s=2.0)
    assert step.phase == "asks"
    with pytest.raises(ValueError, match="expected one of forward, backward, nothing"):
        step.answer("left", [])
    step.answer("forward", [])
    assert step.phase == "right" and not step.found
    step.answer("backward", [])
    assert step.found == {"motors.drive.invert": True}
    step.answer("nothing", [])
    assert step.phase == "hold" and not step.found
    assert Direction(BENCH.motors, "steer").figures()["words"][0] == "left"


@pytest.mark.parametrize("name", ["left", "right"])
@pytest.mark.parametrize("limit", [1.0, 0.5])
def test_wish_for_a_side_leaves_the_other_at_rest(name: str, limit: float) -> None:
    wish, trial = wish_for(SIDES.motors, name, 0.4, limit)
    motors = profile_of("differential", "motors.turn = 1.0").motors
    assert trial == {"motors.turn": 1.0}
    slew, duties = mixing.Slew(), tuple[float, ...]()
    for tick in range(50):
        duties, slew = mixing.mix(
            wish.throttle * limit, wish.steer, motors, 7.5, slew, 1.0 + tick * 0.02
        )
    turned, stands = duties if name == "left" else reversed(duties)
    assert turned > 0.0 and stands == pytest.approx(0.0, abs=1e-9)


def test_dead_band_step_ends_if_the_motor_never_turns() -> None:
    step = DeadBand(BENCH.motors, "drive")
    now_s = itertools.count(0.0, 0.02)
    while step.phase == "coarse":
        step.update(CarState(next(now_s), 0.1, 0.0, (1.0, 0.0)))
    assert step.phase == "never" and step.wish(1.0, 7.5) == Wish()


def test_dead_band_level_waits_until_its_duty_arrives() -> None:
    """A guard or a speed limit that holds the car has this effect."""
    step = DeadBand(BENCH.motors, "drive")
    for tick in range(500):
        step.update(CarState(tick * 0.02, 0.1, 0.0, (0.01, 0.0)))
    assert step.level == 0.02


def test_fine_step_that_turns_at_once_begins_lower() -> None:
    step = DeadBand(BENCH.motors, "drive")
    play(step, 6.0, 0.5, 0.0)
    step.answer("turns", [])
    coarse = step.level
    assert step.phase == "rest" and step.wish(1.0, 7.5) == Wish()
    play(step, 1.2, start_s=6.0)
    assert step.phase == "fine"
    play(step, 0.3, 0.5, 0.0, start_s=7.2)
    step.answer("moves", [])
    assert step.phase == "rest" and step.level < coarse
    with pytest.raises(ValueError, match="Hold the button first"):
        step.answer("turns", [])


def test_servo_has_no_dead_band() -> None:
    with pytest.raises(ValueError, match="expected one of drive"):
        DeadBand(SERVO.motors, "steer")


def test_spring_centred_steering_is_refused() -> None:
    with pytest.raises(ValueError, match="a spring centres it"):
        StraightLine(BENCH)
    with pytest.raises(ValueError, match="no steering servo"):
        SteeringEnds(BENCH)


def test_drift_to_the_right_is_corrected_to_the_left() -> None:
    step = StraightLine(SERVO)
    with pytest.raises(ValueError, match="Drive first, then enter"):
        step.answer("aside", [1.0, -10.0])
    play(step, 1.0, 0.3, 0.0)
    play(step, 0.1, start_s=1.0)
    assert step.phase == "asks"
    with pytest.raises(ValueError, match="expected 0.2 to 5 m"):
        step.answer("aside", [0.1, -10.0])
    with pytest.raises(ValueError, match="1 numbers refused"):
        step.answer("aside", [1.0])
    step.answer("aside", [1.0, -10.0])
    assert step.phase == "again"
    first = step.found["motors.steer.centre_us"]
    assert isinstance(first, float) and 1500.0 < first < 1600.0
    play(step, 1.0, 0.3, 0.0, start_s=2.0)
    step.answer("aside", [1.0, 2.0])
    assert step.phase == "done"
    second = step.found["motors.steer.centre_us"]
    assert isinstance(second, float) and 1500.0 < second < first


def test_servo_ends_move_by_steps() -> None:
    step = SteeringEnds(SERVO)
    step.answer("less", [])
    step.answer("right", [])
    assert step.wish(1.0, 7.5).steer == -1.0
    step.answer("less", [])
    step.answer("centre", [])
    assert 0.0 < step.wish(1.0, 7.5).steer < 0.01
    step.answer("more", [])
    servo: Any = SERVO.motors.pair[1]
    assert step.found == {
        "motors.steer.left_deg": servo.left_deg - 1.0,
        "motors.steer.right_deg": servo.right_deg - 1.0,
        "motors.steer.centre_us": servo.centre_us + 10.0,
    }
    with pytest.raises(ValueError, match="expected one of left, right, centre"):
        step.answer("up", [])


def test_speeds_may_be_measured_by_hand() -> None:
    step = Speed(BENCH)
    for share, took_s in ((0.3, 2.0), (0.8, 1.0)):
        step.answer("throttle", [share])
        step.answer("measured", [1.0, took_s])
    assert step.phase == "done"
    assert step.found == {"guard.top_mps": 1.2, "speeds.least_mps": 0.2}
    assert step.figures()["shares"] == {"small_child": 0.2, "child": 0.6}
    step.answer("forget", [])
    assert step.phase == "again" and not step.found
    for word, figures in (
        ("throttle", [0.05]),
        ("throttle", []),
        ("measured", [0.0, 1.0]),
        ("fast", []),
        ("throttle", [float("nan")]),
    ):
        with pytest.raises(ValueError, match="expected"):
            step.answer(word, figures)


def test_short_speed_run_is_not_measured() -> None:
    step = Speed(BENCH)
    play(step, 0.2, 0.35, 0.0)
    play(step, 0.2, start_s=0.2)
    assert step.phase == "short" and not step.figures()["runs"]


def test_tape_measure_sets_the_sensor_offset() -> None:
    step = Distance(BENCH, "rear")
    with pytest.raises(ValueError, match="measures no distance"):
        step.answer("tape", [0.5])
    see_wall(step, 0.46)
    assert step.phase == "asks" and step.figures()["range_m"] == 0.46
    step.answer("tape", [0.5])
    assert step.found == {OFFSET: 0.04} and step.phase == "done"
    for word, figures in (("tape", [3.0]), ("tape", []), ("rule", [0.5])):
        with pytest.raises(ValueError, match="expected"):
            step.answer(word, figures)
    with pytest.raises(ValueError, match="this car has front, rear"):
        Distance(BENCH, "left")


OFFSET = "sensors.ultrasound.rear.offset_m"


def see_wall(step: Distance, range_m: float) -> None:
    step.update(CarState(1.0, 0.0, 0.0, (0.0, 0.0), (Range("rear", 180.0, range_m, 0.01),)))


@pytest.mark.parametrize("tape_m", [0.657, 1.0, 1.9])
def test_distance_that_is_far_off_offers_no_offset(tape_m: float) -> None:
    """An offset of 0.343 m, once offered, let the car touch a wall before the guard stopped it."""
    step = Distance(BENCH, "rear")
    see_wall(step, tape_m - 0.343)
    for _ in range(2):
        with pytest.raises(ValueError, match=r"0.34 m was refused: expected at most 0.15"):
            step.answer("tape", [tape_m])
        assert not step.found


def test_wall_is_near_at_half_a_metre_and_further_for_a_second_measurement() -> None:
    step = Distance(BENCH, "rear")
    assert step.figures()["target_m"] == 0.5 and not step.figures()["near"]
    for range_m, near in ((0.8, False), (0.74, True), (0.35, True), (0.2, False), (0.42, True)):
        for _ in range(30):
            see_wall(step, range_m)
        assert step.figures()["near"] is near, range_m
    step.answer("tape", [0.5])
    assert step.phase == "again" and step.figures()["target_m"] == 0.95
    see_wall(step, 0.42)
    assert not step.figures()["near"]
    for _ in range(60):
        see_wall(step, 0.87)
    assert step.figures()["near"]


def test_distance_above_5_cm_takes_a_second_measurement_elsewhere() -> None:
    step = Distance(BENCH, "rear")
    see_wall(step, 0.45)
    step.answer("tape", [0.501])
    assert step.phase == "again" and not step.found
    assert step.figures()["range_m"] is None and step.figures()["offset_m"] == 0.051
    with pytest.raises(ValueError, match="measures no distance"):
        step.answer("tape", [0.9])
    see_wall(step, 0.6)
    with pytest.raises(ValueError, match="at least 0.2 m more or less"):
        step.answer("tape", [0.66])
    for _ in range(60):
        see_wall(step, 0.85)
    step.answer("tape", [0.93])
    assert step.phase == "again" and not step.found, "0.08 is not 0.051"
    for _ in range(60):
        see_wall(step, 0.4)
    step.answer("tape", [0.47])
    assert step.phase == "done" and step.found == {OFFSET: 0.07}
    assert step.figures()["offset_m"] is None
    step.answer("tape", [0.44])
    assert step.found == {OFFSET: 0.04}, "within 5 cm one measurement is enough"


def test_full_pack_sets_the_measured_full_voltage() -> None:
    step = BatteryPack(BENCH, BENCH.battery)
    with pytest.raises(ValueError, match="No voltage was measured"):
        step.answer("full", [])
    see_volts(step, 8.3)
    step.answer("full", [])
    assert step.found == {"battery.full_v": 8.3} and step.phase == "done"
    step.answer("lithium", [])
    assert step.found["battery.curve"] == CURVES["lithium"]
    with pytest.raises(ValueError, match="expected one of full, empty"):
        step.answer("half", [])
    with pytest.raises(ValueError, match="this car has no meter"):
        BatteryPack(SIDES, SIDES.battery)


def see_volts(step: BatteryPack, volts: float) -> None:
    for _ in range(40):
        step.update(CarState(1.0, 0.0, 0.0, (0.0, 0.0), (), volts))


def test_pack_far_from_its_chemistry_is_kept_only_if_a_person_is_sure() -> None:
    step = BatteryPack(BENCH, BENCH.battery)
    see_volts(step, 7.68)
    with pytest.raises(ValueError, match="expected one of full, empty"):
        step.answer("sure", [])
    step.answer("full", [])
    assert step.phase == "odd_full" and not step.found
    assert step.figures() == {"volts": 7.68, "expected_v": 8.4}
    step.answer("unsure", [])
    assert step.phase == "asks" and not step.found
    step.answer("full", [])
    step.answer("sure", [])
    assert step.phase == "done" and step.found == {"battery.full_v": 7.68}
    see_volts(step, 5.9)
    step.answer("empty", [])
    assert step.phase == "odd_empty" and step.figures()["expected_v"] == 6.2
    step.answer("unsure", [])
    assert step.phase == "done" and step.found == {"battery.full_v": 7.68}
    with pytest.raises(ValueError, match="expected one of full, empty"):
        step.answer("sure", [])


@pytest.mark.parametrize(
    ("kind", "word", "volts", "odd"),
    [
        ("nimh", "full", 8.2, False),
        ("nimh", "full", 7.68, True),
        ("nimh", "empty", 6.1, False),
        ("nimh", "empty", 6.2, True),
        ("lithium", "full", 8.15, False),
        ("lithium", "full", 8.14, True),
        ("lithium", "empty", 6.38, False),
        ("lithium", "empty", 6.39, True),
        ("line", "full", 8.66, True),
    ],
)
def test_pack_is_compared_with_the_cells_of_its_kind(
    kind: str, word: str, volts: float, odd: bool
) -> None:
    """Two lithium cells or six of NiMH have 8.4 V when they are full."""
    step = BatteryPack(BENCH, BENCH.battery)
    step.answer(kind, [])
    see_volts(step, volts)
    step.answer(word, [])
    assert (step.phase == f"odd_{word}") is odd
    assert (f"battery.{word}_v" in step.found) is not odd


def test_pack_with_nominal_outside_full_and_empty_moves_it_between() -> None:
    step = BatteryPack(BENCH, BENCH.battery)
    see_volts(step, 7.1)
    step.answer("full", [])
    step.answer("sure", [])
    assert step.found == {"battery.full_v": 7.1, "battery.nominal_v": 6.65}
