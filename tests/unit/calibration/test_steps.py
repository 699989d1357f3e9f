"""What people say to a step, what it wishes, and what it refuses."""

import itertools
from typing import Any

import pytest

from fpvcar.calibration.floor import Ends, Speed, Straight
from fpvcar.calibration.motors import DeadBand, Direction
from fpvcar.calibration.steps import Refused, Seen, Step, Wish, wish_for
from fpvcar.calibration.still import CURVES, Distance, Pack
from fpvcar.drive import mixing
from fpvcar.status import Range
from tests.rigs.profiles import profile_of

BENCH, SIDES = profile_of("bench"), profile_of("differential")
SERVO = profile_of("mx1508-servo")


def play(step: Step, seconds: float, *duties: float, start_s: float = 0.0) -> None:
    """The car does this for so long."""
    for tick in range(round(seconds / 0.02)):
        moves = duties[0] if duties else 0.0
        step.see(Seen(start_s + tick * 0.02, moves, 0.0, duties or (0.0, 0.0)))


def test_a_motor_that_turns_the_wrong_way_is_turned_round() -> None:
    step = Direction(BENCH.motors, "drive")
    with pytest.raises(Refused, match="hold the button first"):
        step.say("backward", [])
    gentle = step.wish(1.0, 7.5).throttle
    play(step, 2.0, 0.2, 0.0)
    assert step.wish(1.0, 7.5).throttle > gentle > 0.0
    play(step, 0.1, start_s=2.0)
    assert step.phase == "asks"
    with pytest.raises(Refused, match="expected one of forward, backward, nothing"):
        step.say("left", [])
    step.say("forward", [])
    assert step.phase == "right" and not step.found
    step.say("backward", [])
    assert step.found == {"motors.drive.invert": True}
    step.say("nothing", [])
    assert step.phase == "hold" and not step.found
    assert Direction(BENCH.motors, "steer").figures()["words"][0] == "left"


@pytest.mark.parametrize("name", ["left", "right"])
@pytest.mark.parametrize("limit", [1.0, 0.5])
def test_one_side_turns_alone(name: str, limit: float) -> None:
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


def test_a_dead_band_that_is_never_left_ends() -> None:
    step = DeadBand(BENCH.motors, "drive")
    now_s = itertools.count(0.0, 0.02)
    while step.phase == "coarse":
        step.see(Seen(next(now_s), 0.1, 0.0, (1.0, 0.0)))
    assert step.phase == "never" and step.wish(1.0, 7.5) == Wish()


def test_a_duty_that_does_not_arrive_climbs_no_step() -> None:
    """As with a guard, or a speed limit, that holds the car."""
    step = DeadBand(BENCH.motors, "drive")
    for tick in range(500):
        step.see(Seen(tick * 0.02, 0.1, 0.0, (0.01, 0.0)))
    assert step.level == 0.02 and not step.figures()["reached"]


def test_a_fine_step_that_turns_at_once_begins_lower() -> None:
    step = DeadBand(BENCH.motors, "drive")
    play(step, 6.0, 0.5, 0.0)
    step.say("turns", [])
    coarse = step.level
    assert step.phase == "rest" and step.wish(1.0, 7.5) == Wish()
    play(step, 1.2, start_s=6.0)
    assert step.phase == "fine"
    play(step, 0.3, 0.5, 0.0, start_s=7.2)
    step.say("moves", [])
    assert step.phase == "rest" and step.level < coarse
    with pytest.raises(Refused, match="hold the button first"):
        step.say("turns", [])


def test_no_servo_has_a_dead_band() -> None:
    with pytest.raises(Refused, match="expected one of drive"):
        DeadBand(SERVO.motors, "steer")


def test_a_spring_that_centres_is_not_set_here() -> None:
    with pytest.raises(Refused, match="its spring centres it"):
        Straight(BENCH)
    with pytest.raises(Refused, match="no servo steers"):
        Ends(BENCH)


def test_a_car_that_runs_to_the_right_is_put_to_the_left() -> None:
    step = Straight(SERVO)
    with pytest.raises(Refused, match="drive, then say"):
        step.say("aside", [1.0, -10.0])
    play(step, 1.0, 0.3, 0.0)
    play(step, 0.1, start_s=1.0)
    assert step.phase == "asks"
    with pytest.raises(Refused, match="expected 0.2 to 5 m"):
        step.say("aside", [0.1, -10.0])
    with pytest.raises(Refused, match="1 figures refused"):
        step.say("aside", [1.0])
    step.say("aside", [1.0, -10.0])
    assert step.phase == "again"
    first = step.found["motors.steer.centre_us"]
    assert isinstance(first, float) and 1500.0 < first < 1600.0
    play(step, 1.0, 0.3, 0.0, start_s=2.0)
    step.say("aside", [1.0, 2.0])
    assert step.phase == "done"
    second = step.found["motors.steer.centre_us"]
    assert isinstance(second, float) and 1500.0 < second < first


def test_the_ends_of_a_servo_move_by_steps() -> None:
    step = Ends(SERVO)
    step.say("less", [])
    step.say("right", [])
    assert step.wish(1.0, 7.5).steer == -1.0
    step.say("less", [])
    step.say("centre", [])
    assert 0.0 < step.wish(1.0, 7.5).steer < 0.01
    step.say("more", [])
    servo: Any = SERVO.motors.pair[1]
    assert step.found == {
        "motors.steer.left_deg": servo.left_deg - 1.0,
        "motors.steer.right_deg": servo.right_deg - 1.0,
        "motors.steer.centre_us": servo.centre_us + 10.0,
    }
    with pytest.raises(Refused, match="expected one of left, right, centre"):
        step.say("up", [])


def test_speeds_may_be_measured_by_hand() -> None:
    step = Speed(BENCH)
    for share, took_s in ((0.3, 2.0), (0.8, 1.0)):
        step.say("throttle", [share])
        step.say("measured", [1.0, took_s])
    assert step.phase == "done"
    assert step.found == {"guard.top_mps": 1.2, "speeds.least_mps": 0.2}
    assert step.figures()["shares"] == {"small_child": 0.2, "child": 0.6}
    step.say("forget", [])
    assert step.phase == "again" and not step.found
    for word, figures in (
        ("throttle", [0.05]), ("throttle", []), ("measured", [0.0, 1.0]), ("fast", []),
        ("throttle", [float("nan")]),
    ):  # fmt: skip
        with pytest.raises(Refused, match="expected"):
            step.say(word, figures)


def test_a_run_that_is_too_short_tells_nothing() -> None:
    step = Speed(BENCH)
    play(step, 0.2, 0.35, 0.0)
    play(step, 0.2, start_s=0.2)
    assert step.phase == "short" and not step.figures()["runs"]


def test_a_sensor_is_set_by_a_tape_measure() -> None:
    step = Distance(BENCH, "rear")
    with pytest.raises(Refused, match="sees nothing"):
        step.say("tape", [0.5])
    step.see(Seen(1.0, 0.0, 0.0, (0.0, 0.0), (Range("rear", 180.0, 0.46, 0.01),)))
    assert step.phase == "asks" and step.figures() == {"range_m": 0.46}
    step.say("tape", [0.5])
    assert step.found == {"sensors.ultrasound.rear.offset_m": 0.04}
    for word, figures in (("tape", [3.0]), ("tape", []), ("rule", [0.5])):
        with pytest.raises(Refused, match="expected"):
            step.say(word, figures)
    with pytest.raises(Refused, match="does it see the wall"):
        step.say("tape", [1.5])
    with pytest.raises(Refused, match="this car has front, rear"):
        Distance(BENCH, "left")


def test_a_full_pack_is_what_it_measures() -> None:
    step = Pack(BENCH)
    with pytest.raises(Refused, match="nothing measures"):
        step.say("full", [])
    step.see(Seen(1.0, 0.0, 0.0, (0.0, 0.0), (), 7.1))
    step.say("full", [])
    assert step.found == {"battery.full_v": 7.1, "battery.nominal_v": 6.65}
    step.say("lithium", [])
    assert step.found["battery.curve"] == CURVES["lithium"]
    with pytest.raises(Refused, match="expected one of full, empty"):
        step.say("half", [])
    with pytest.raises(Refused, match="nothing measures it"):
        Pack(SIDES)
