"""Each step on the bench's physics, compared with the true values there."""

import pytest
from testkit.calibrated import BENT_US, PlayedCar
from testkit.profiles import profile_of

from fpvbench.world import scene
from fpvbench.world.bridge import Bridges, mx1508
from fpvcar.calibration.driving_steps import Speed
from fpvcar.calibration.steps import Step


@pytest.fixture(scope="module")
def true_dead_band() -> float:
    """Return the least duty at which the world's car starts to move, by trying each."""
    car = PlayedCar(profile_of("bench"))
    charge = car.world.battery.charge
    for thousandths in range(125, 160):
        car.put()
        car.world.battery.charge = charge
        start_m = car.world.pose[0]
        drive = mx1508(thousandths / 1000, 0.0)
        for _ in range(100):
            car.world.step(Bridges(drive))
        if car.world.pose[0] - start_m > 0.01:
            return thousandths / 1000
    raise AssertionError("it never moves")


@pytest.mark.parametrize("by", ["sensor", "turns"])
@pytest.mark.parametrize("limit", [1.0, 0.6])
def test_dead_band_is_found_within_5_percent(by: str, limit: float, true_dead_band: float) -> None:
    car = PlayedCar(profile_of("bench"), limit=limit)
    car.put()
    car.tuner.begin("dead_band", "drive", car.now_s)
    step = car.tuner.step
    assert step is not None
    while step.phase != "done":
        if by == "turns":
            car.seen_m = 0.0
            assert car.hold(30.0, lambda: abs(car.world.speed_mps) > 0.03)
            car.tuner.answer("turns", [])
        else:
            assert car.hold(30.0, lambda: step.phase in ("rest", "done"))
        car.go(1.0)
    found = step.found["motors.drive.dead_band"]
    assert found == pytest.approx(true_dead_band, rel=0.05)
    car.tuner.keep(0.0)
    assert car.profile.motors.drive is not None
    assert car.tuner.history.values == {"motors.drive.dead_band": found}


def straightened(car: PlayedCar) -> Step:
    """Measure straight runs until the step is done, at most six; return the step."""
    car.tuner.begin("straight", "", car.now_s)
    step = car.tuner.step
    assert step is not None
    for _ in range(6):
        car.put()
        car.hold(1.8)
        x_m, y_m, _ = car.world.pose
        car.tuner.answer("aside", [x_m - scene.START_X_M, y_m * 100.0])
        if step.phase == "done":
            break
    return step


@pytest.mark.parametrize("side", [1, -1])
def test_two_sides_are_balanced_within_5_percent(side: int) -> None:
    true = 0.08 * side
    weaker = (max(-true, 0.0), max(true, 0.0))
    alike = [
        f"motors.{name}.{line}"
        for name in ("left", "right")
        for line in ("dead_band = 0.14", "max_volts = 3.0")
    ]
    car = PlayedCar(profile_of("differential", *alike), weaker=weaker)
    step = straightened(car)
    assert step.phase == "done"
    assert step.found["motors.balance"] == pytest.approx(true, rel=0.05)


def true_top_mps(car: PlayedCar) -> float:
    """Return the final speed at full throttle, across the whole room."""
    car.put(-2.2)
    car.tuner.answer("throttle", [1.0])
    car.finger = True
    car.go(3.0)
    car.finger = False
    return car.world.speed_mps


def test_speeds_are_found_within_10_percent() -> None:
    car = PlayedCar(profile_of("bench"))
    car.tuner.begin("speed", "", car.now_s)
    step = car.tuner.step
    assert isinstance(step, Speed)
    for throttle in (0.3, 0.6):
        car.put()
        car.tuner.answer("throttle", [throttle])
        car.hold(2.0)
    assert step.phase == "done", step.figures()
    top = step.found["guard.top_mps"]
    assert top == pytest.approx(true_top_mps(car), rel=0.10)
    shares = step.figures()["shares"]
    for name, mps in (("small_child", 0.4), ("child", 0.8)):
        car.put()
        car.tuner.answer("throttle", [max(0.1, shares[name])])
        car.finger = True
        car.go(2.4)
        assert car.world.speed_mps == pytest.approx(mps, rel=0.10)
        car.finger = False
        car.go(1.0)


def test_bent_servo_horn_is_centred_within_5_percent() -> None:
    """The world's horn is straight at 1540 us: 40 more than the profile's centre."""
    car = PlayedCar(profile_of("mx1508-servo"))
    step = straightened(car)
    found = step.found["motors.steer.centre_us"]
    assert isinstance(found, float)
    assert found - 1500.0 == pytest.approx(BENT_US, rel=0.05)
