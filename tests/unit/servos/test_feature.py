"""Servos that do not steer, from a page's message to the angles for `wheels`."""

import math
import random
from collections.abc import Callable

import pytest
from testkit.hub import FakeSaver, House, Visitor

from fpvcar.access.codes import Rights
from fpvcar.config import profiles
from fpvcar.drive.gate import Cause, Hold, Latches
from fpvcar.drive.saved import LaterSettings
from fpvcar.runtime import paths
from fpvcar.runtime.texts import Text
from fpvcar.seat.feature import Core, Feature
from fpvcar.servos.feature import REST_S, ServoAims
from fpvcar.wire import up
from fpvcar.wire.servos import LetLook, Look
from fpvcar.wire.wheels import Answer, Status, WheelsReason

PROFILE = profiles.load(paths.HARDWARE / "pan-tilt.toml")
TICK_S = 0.02


class AimedCar(House):
    """Car with pan and tilt, on a clock by hand; `sent` are the angles for `wheels`."""

    aims: ServoAims

    def __init__(self, viewers_look: bool = False) -> None:
        self.viewers_look = viewers_look
        super().__init__(PROFILE, feature=self.feature)
        self.sent: list[tuple[float, ...]] = []
        self.control.aim = self.sent.append
        self.driver = self.visitor("driver")
        self.driver.say(up.Take())
        self.driver.drive(0.0)
        self.viewer = self.visitor("viewer", drive=False)
        self.grown_up = self.visitor("mother", drive=False)
        self.grown_up.session.rights = Rights(drive=True, grown_up=True)
        self.wait(0.1)

    def feature(self, core: Core) -> Feature:
        assert isinstance(core.saver, FakeSaver)
        core.saver.later = LaterSettings(self.viewers_look)
        self.aims = ServoAims(core, lambda: self.now_s)
        return Feature(name="servos", handlers=(self.aims,), state=self.aims.state)

    def look(self, visitor: Visitor, late_s: float = 0.0, **wish: object) -> None:
        seen = int((self.now_s - late_s) * 1e6)
        visitor.session.fresh.sent(seen, seen)
        visitor.say(Look(seen, **wish))  # type: ignore[arg-type]

    def wait(self, seconds: float, each: Callable[[], None] = lambda: None) -> None:
        for _ in range(round(seconds / TICK_S)):
            each()
            self.now_s += TICK_S
            self.control.step()
            self.aims.step()

    @property
    def angles(self) -> tuple[float, float]:
        pan, tilt = self.sent[-1]
        return round(pan, 1), round(tilt, 1)


@pytest.fixture
def car() -> AimedCar:
    return AimedCar()


def test_driver_turns_the_camera_until_the_wish_is_old(car: AimedCar) -> None:
    car.look(car.driver, turn={"pan": 1.0, "tilt": -0.5})
    car.wait(1.0)
    pan, tilt = car.angles
    assert 0.2 * 120 <= pan <= 0.3 * 120 and -0.3 * 45 <= tilt <= -0.2 * 45
    car.wait(0.5)
    assert car.angles == (pan, tilt), "it turns on without a wish"
    assert car.aims.step() == REST_S, "it wakes the loop while nothing moves"


def test_camera_stops_at_once_on_release_and_returns_on_rest(car: AimedCar) -> None:
    car.wait(0.2, lambda: car.look(car.driver, turn={"pan": 1.0, "tilt": 1.0}))
    car.look(car.driver, turn={"pan": 0.0, "tilt": 0.0})
    car.aims.step()
    pan, tilt = car.angles
    assert pan > 20.0 and tilt > 15.0
    car.wait(0.5)
    assert car.angles == (pan, tilt)
    car.look(car.driver, rest=True)
    car.look(car.driver, turn={"pan": 0.0, "tilt": 0.0})
    car.wait(0.5)
    assert car.angles == (0.0, 0.0)


def test_angle_is_reached_and_limited(car: AimedCar) -> None:
    car.look(car.driver, to={"pan": -170.0, "tilt": 20.0})
    car.wait(1.0)
    assert car.angles == (-70.0, 20.0)


def test_old_wish_unknown_servo_and_missing_nonce_turn_nothing(car: AimedCar) -> None:
    car.look(car.driver, late_s=0.5, turn={"pan": 1.0})
    car.driver.say(Look(0, {"pan": 1.0}))
    car.look(car.driver, turn={"grip": 1.0})
    car.wait(0.3)
    assert car.angles == (0.0, 0.0)
    assert car.driver.errors()[-1].limit == "one of pan, tilt"


def test_viewer_is_refused_until_a_grown_up_allows_it(car: AimedCar) -> None:
    car.look(car.viewer, turn={"pan": 1.0})
    car.driver.say(LetLook(True))
    car.wait(0.2)
    assert car.angles == (0.0, 0.0)
    assert car.viewer.errors()[-1].code == "not_driver"
    assert car.driver.errors()[-1].code == "grown_up_only"
    car.grown_up.say(LetLook(True))
    assert car.viewer.state.parts["servos"].viewers
    car.wait(0.2, lambda: car.look(car.viewer, turn={"pan": 1.0}))
    assert car.angles[0] > 20.0
    car.grown_up.say(LetLook(False))
    before = car.angles
    car.wait(0.3)
    car.look(car.viewer, turn={"pan": 1.0})
    car.wait(0.3)
    assert car.angles[0] < before[0] + 0.3 * 120
    assert isinstance(car.saver, FakeSaver) and car.saver.viewers_look == [True, False]


def test_viewers_turn_the_camera_after_a_restart_as_before() -> None:
    car = AimedCar(viewers_look=True)
    assert car.viewer.state.parts["servos"].viewers
    car.wait(0.2, lambda: car.look(car.viewer, turn={"pan": 1.0}))
    assert car.angles[0] > 20.0


def test_driver_takes_over_from_a_viewer_but_no_viewer_from_the_driver(car: AimedCar) -> None:
    car.grown_up.say(LetLook(True))
    car.wait(0.2, lambda: car.look(car.viewer, turn={"pan": 1.0}))
    car.look(car.driver, turn={"pan": -1.0})
    car.wait(0.1, lambda: car.look(car.viewer, turn={"pan": 1.0}))
    assert car.angles[0] < 20.0
    car.wait(0.3)
    car.wait(0.1, lambda: car.look(car.viewer, turn={"pan": 1.0}))
    assert car.angles[0] > 0.0, "the driver has let go"


def test_stop_turns_only_what_the_profile_centres(car: AimedCar) -> None:
    car.look(car.driver, to={"pan": 40.0, "tilt": 20.0})
    car.wait(1.0)
    car.look(car.driver, to={"pan": 60.0, "tilt": 40.0})
    car.wait(0.04)
    pan, _ = car.angles
    car.viewer.say(up.Estop())
    car.wait(1.0, lambda: car.look(car.driver, turn={"pan": 1.0, "tilt": 1.0}))
    assert car.angles == (pan, 0.0)
    car.driver.say(up.Resume())
    car.wait(0.1, lambda: car.look(car.driver, turn={"pan": 1.0}))
    assert car.angles[0] > pan, "it turns again after Resume"


def test_silent_driver_stops_the_car_and_centres_only_tilt(car: AimedCar) -> None:
    car.look(car.driver, to={"pan": 40.0, "tilt": 20.0})
    car.wait(1.0)
    car.driver.drive_off()
    car.wait(1.0)
    assert car.control.decision.latches.arm == Cause.SILENCE
    assert car.angles == (40.0, 0.0)


def test_servos_keep_their_angle_while_wheels_are_absent(car: AimedCar) -> None:
    car.look(car.driver, to={"pan": 40.0, "tilt": 20.0})
    car.wait(1.0)
    car.control.wheels_state("absent")
    car.driver.drive(0.5)
    car.wait(1.0)
    assert car.control.decision.latches.stopped
    assert car.angles == (40.0, 20.0), "it would leap when the next wheels start"
    car.control.wheels_answer(Answer(Status.APPLIED, WheelsReason.NONE, 1, 0))
    car.wait(0.1)
    assert 5.0 < car.angles[1] < 20.0
    car.wait(1.0)
    assert car.angles == (40.0, 0.0)


@pytest.mark.parametrize("cause", [Cause.WHEELS_STOPPED, Cause.PINS])
def test_stop_by_wheels_is_followed_at_once(car: AimedCar, cause: Cause) -> None:
    """`wheels` turns the servo to its rest meanwhile; old angles would turn it back."""
    car.look(car.driver, to={"pan": 40.0, "tilt": 20.0})
    car.wait(1.0)
    car.control.step(Latches(hold=Hold(cause, "deadline")))
    car.aims.step()
    assert car.angles == (40.0, 0.0)


def test_stop_of_a_pause_is_followed_before_the_motion_goes_on(car: AimedCar) -> None:
    """After a hang of `run` the stop by `wheels` is still unread when the servos' time comes."""

    def read(to_end: bool = False) -> None:
        if to_end:
            car.control.wheels_answer(Answer(Status.STOPPED, WheelsReason.DEADLINE, 1, 0))

    car.look(car.driver, to={"pan": 40.0, "tilt": 20.0})
    car.wait(0.2)
    assert 0.0 < car.angles[1] < 20.0
    pan = car.angles[0]
    car.now_s += 3.0
    car.control.read_wheels = read
    car.aims.step()
    assert car.angles == (pan, 0.0)


def test_fault_of_the_pulses_is_in_the_state_and_leaves_the_car_driving(car: AimedCar) -> None:
    assert car.aims.faults() == () and car.aims.state().state == "ok"
    fault = Text("servo_fault", "servo {name}: {reason}", name="pan", reason="no chip")
    car.control.servo_state = lambda: fault
    assert car.aims.faults() == ("servos: servo pan: no chip",)
    car.wait(0.2)
    assert car.viewer.state.parts["servos"].state == fault
    car.driver.drive(0.5)
    assert car.control.decision.throttle > 0.0


@pytest.mark.parametrize("seed", range(20))
def test_no_series_of_messages_exceeds_limits_or_moves_a_held_pan(seed: int) -> None:
    dice, car = random.Random(seed), AimedCar()
    car.grown_up.say(LetLook(True))
    visitors = (car.driver, car.viewer, car.grown_up)
    held_pan: float | None = None
    for _ in range(600):
        act = dice.randrange(8)
        visitor, late_s = dice.choice(visitors), dice.choice((0.0, 0.0, 0.3, 0.6))
        if act < 4:
            turn = {"pan": dice.uniform(-1, 1), "tilt": dice.uniform(-1, 1)}
            car.look(visitor, late_s, turn=turn)
        elif act == 4:
            car.look(visitor, late_s, to={"pan": dice.uniform(-180, 180)}, rest=dice.random() < 0.3)
        elif act == 5 and dice.random() < 0.2:
            car.viewer.say(up.Estop())
        elif act == 6 and dice.random() < 0.2:
            car.driver.say(up.Resume())
        before = car.sent[-1]
        car.wait(TICK_S)
        now = car.sent[-1]
        for angle, last, servo in zip(now, before, PROFILE.servos.values(), strict=True):
            assert servo.least_deg <= angle <= servo.most_deg and math.isfinite(angle)
            assert abs(angle - last) <= servo.speed_deg_s * TICK_S + 1e-6
        held = car.control.decision.latches.hold is not None
        assert not (held and held_pan is not None) or now[0] == held_pan
        held_pan = now[0] if held else None
