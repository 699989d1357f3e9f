"""Steps for an ESC, on the bench's model of one; no step sends a pulse beyond the profile's."""

import random
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from testkit.calibrated import PlayedCar
from testkit.pins.fake_pins import FakePins
from testkit.profiles import profile_of

from fpvbench.world.bridge import Bridge, Bridges
from fpvbench.world.esc import EscModel
from fpvcar.calibration import export
from fpvcar.calibration.calibrator import Calibrator
from fpvcar.calibration.esc import DEAD_BAND_KEY, NEUTRAL_KEY, STEP_US
from fpvcar.calibration.motors import LATE_S
from fpvcar.calibration.steps import CarState
from fpvcar.calibration.store import History
from fpvcar.calibration.values import overridden
from fpvcar.config import ConfigError, EscMotor, Profile, profiles
from fpvcar.config.motors import NEUTRAL_OFF_US
from fpvcar.devices.motors.esc import EscDriver, pulse_of
from fpvcar.drive import mixing
from fpvcar.runtime.texts import Refusal

KINDS = ("direct", "brake-first", "forward-only")
TURNS = 0.005
"""Drive of the model from which the wheels, in the air, are seen to turn."""


def esc_of(profile: Profile) -> EscMotor:
    assert profile.motors.esc is not None
    return profile.motors.esc


class PlayedEsc(PlayedCar):
    """Car whose ESC differs from its profile by `true` keys; its wheels are in the air."""

    def __init__(self, *lines: str, true: dict[str, Any], limit: float = 1.0) -> None:
        super().__init__(profile_of("rc-esc", "motors.drive.esc_loss_s = 0.2", *lines), limit=limit)
        self.own = self.profile
        self.true = msgspec.structs.replace(esc_of(self.own), **true)
        self._pins = FakePins()
        self._driver, self._model = EscDriver(esc_of(self.own), self._pins), EscModel(self.true)
        self.drive = self._still_s = 0.0
        self.widths: list[float] = []
        self.go(3.0)

    def _tune(self, profile: Profile) -> None:
        """Send a setpoint at once, as the gate does."""
        super()._tune(profile)
        if hasattr(self, "_driver") and not self.finger:
            self._bridges((0.0, 0.0))

    def _bridges(self, duties: Sequence[float]) -> Bridges:
        self._driver.tune(mixing.pulses_apart(self.own.motors, self.profile.motors))
        self._driver.drive(duties[0], self.now_s)
        self.widths.append(round(20_000 * self._pins.duty(18), 3))
        self.drive = self._model.step(self.widths[-1], self.now_s).drive
        if not self.turns:
            self._still_s = self.now_s
        return Bridges(Bridge())

    @property
    def turns(self) -> bool:
        return abs(self.drive) > TURNS

    @property
    def turns_for_s(self) -> float:
        return self.now_s - self._still_s

    def within_limits(self) -> None:
        """Check that no pulse was beyond the share of full throttle that the profile permits."""
        esc = esc_of(self.own)
        ends = sorted(pulse_of(esc, share) for share in (esc.top, -esc.top))
        low_us, high_us = ends[0] - NEUTRAL_OFF_US, ends[1] + NEUTRAL_OFF_US
        assert low_us <= min(self.widths) and max(self.widths) <= high_us
        assert 1000.0 < min(self.widths) and max(self.widths) < 2000.0, "a full pulse"


def found_dead_band(car: PlayedEsc) -> dict[str, Any]:
    """Carry the step out, as a person who watches the wheels."""
    car.tuner.begin("dead_band_us", "drive", car.now_s)
    step = car.tuner.step
    assert step is not None
    while step.phase != "done":
        assert car.hold(60.0, lambda: car.turns_for_s >= LATE_S["turns"]), step.phase
        car.tuner.answer("turns", [])
        assert car.drive == 0.0
    assert step.phase == "done"
    return step.found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("invert", [False, True])
@pytest.mark.parametrize("limit", [1.0, 0.7])
def test_dead_band_and_neutral_are_found(kind: str, invert: bool, limit: float) -> None:
    if kind == "forward-only" and invert:
        pytest.skip("such a car has no forward")
    lines = f'motors.drive.reverse = "{kind}"', f"motors.drive.invert = {str(invert).lower()}"
    car = PlayedEsc(*lines, true={"neutral_us": 1515.0, "dead_band_us": 70.0}, limit=limit)
    found = found_dead_band(car)
    true_us = 60.0  # the model turns 10 us before its dead band
    if kind == "forward-only":
        assert found == {DEAD_BAND_KEY: pytest.approx(15.0 + true_us, abs=STEP_US)}
    else:
        assert found[NEUTRAL_KEY] == pytest.approx(1515.0, abs=STEP_US)
        assert found[DEAD_BAND_KEY] == pytest.approx(true_us, abs=STEP_US)
    car.within_limits()
    assert car._model.faults == set()
    car.tuner.keep(0.0)
    car.go(0.3)
    assert car.widths[-1] == found.get(NEUTRAL_KEY, 1500.0), "applied by the driver, not only saved"


def test_dead_band_larger_than_the_limit_ends_the_search() -> None:
    car = PlayedEsc("motors.drive.limit = 0.1", true={"dead_band_us": 140.0})
    car.tuner.begin("dead_band_us", "drive", car.now_s)
    step = car.tuner.step
    assert step is not None and car.hold(60.0, lambda: step.phase == "never")
    assert not step.found
    car.within_limits()


def test_finger_up_is_neutral_at_once() -> None:
    car = PlayedEsc(true={})
    car.tuner.begin("dead_band_us", "drive", car.now_s)
    assert car.hold(30.0, lambda: car.widths[-1] > 1520.0)
    assert car.widths[-1] == 1500.0


def test_answer_before_the_button_is_refused() -> None:
    car = PlayedEsc(true={})
    car.tuner.begin("dead_band_us", "drive", car.now_s)
    for word in ("turns", "moves"):
        with pytest.raises(Refusal, match="Hold the button"):
            car.tuner.answer(word, [])
    with pytest.raises(ValueError, match="turns, moves"):
        car.tuner.answer("jumps", [])


# Neutral


@pytest.mark.parametrize("lines", [(), ("motors.drive.invert = true",)])
@pytest.mark.parametrize("ends", [(2000.0, 1000.0), (1000.0, 2000.0)])
def test_neutral_moves_against_the_creep(lines: tuple[str, ...], ends: tuple[float, float]) -> None:
    """The model judges by the true neutral; the person reports the side to which it creeps."""
    forward_us, reverse_us = ends
    own = (
        'motors.drive.reverse = "direct"',
        f"motors.drive.forward_us = {forward_us}",
        f"motors.drive.reverse_us = {reverse_us}",
    )
    car = PlayedEsc(*lines, *own, true={"dead_band_us": 20.0})
    car._model = EscModel(msgspec.structs.replace(car.true, neutral_us=1535.0), armed=True)
    car.go(0.2)
    assert car.turns, "it creeps at the profile's neutral"
    car.tuner.begin("neutral", "drive", car.now_s)
    step = car.tuner.step
    assert step is not None
    for _ in range(12):
        if not car.turns:
            break
        ahead = (car.drive > 0.0) != car.true.invert
        car.tuner.answer("creeps_forward" if ahead else "creeps_backward", [])
        car.go(0.3)
    car.tuner.answer("still", [])
    (now_us,) = step.found.values()
    assert step.phase == "done" and now_us == pytest.approx(1535.0, abs=20.0)
    car.within_limits()
    car.tuner.keep(0.0)
    car.go(0.3)
    assert car.widths[-1] == now_us
    toml = export.written("[motors.drive]\nneutral_us = 1500\n", car.tuner.history.values)
    assert toml == f"[motors.drive]\nneutral_us = {now_us}\n"


def test_right_neutral_has_nothing_to_keep() -> None:
    car = PlayedEsc(true={})
    car.tuner.begin("neutral", "drive", car.now_s)
    car.tuner.answer("still", [])
    step = car.tuner.step
    assert step is not None and (step.phase, step.found) == ("right", {})
    with pytest.raises(ValueError, match="creeps_forward, creeps_backward, still"):
        car.tuner.answer("jumps", [])


def test_neutral_ends_at_its_distance_from_the_profile() -> None:
    car = PlayedEsc(true={})
    car.tuner.begin("neutral", "drive", car.now_s)
    for _ in range(15):
        car.tuner.answer("creeps_backward", [])
        car.go(0.1)
    step = car.tuner.step
    assert step is not None and step.phase == "far"
    assert max(car.widths) == 1500.0 + NEUTRAL_OFF_US


def test_stop_takes_the_trial_neutral_back() -> None:
    car = PlayedEsc(true={})
    car.tuner.begin("neutral", "drive", car.now_s)
    car.tuner.answer("creeps_backward", [])
    car.go(0.3)
    assert car.widths[-1] == 1505.0
    car.tuner.update(CarState(car.now_s, 0.0, 0.0, (0.0, 0.0), held=True))
    step = car.tuner.step
    assert step is not None and (step.phase, step.found) == ("stopped", {})
    car.go(0.1)
    assert car.widths[-1] == 1500.0
    car.tuner.answer("creeps_backward", [])
    assert step.phase == "asks", "after the stop the step goes on"


def test_page_that_has_gone_takes_the_trial_neutral_back() -> None:
    car = PlayedEsc(true={})
    car.tuner.begin("neutral", "drive", car.now_s)
    car.tuner.answer("creeps_backward", [])
    car.tuner.update(CarState(car.now_s + 60.0, 0.0, 0.0, (0.0, 0.0)))
    assert car.tuner.step is None
    car.go(0.1)
    assert car.widths[-1] == 1500.0


@pytest.mark.parametrize("seed", range(8))
def test_random_use_of_all_steps_sends_no_pulse_beyond_the_limits(seed: int) -> None:
    dice = random.Random(seed)
    kind = dice.choice(KINDS)
    true = {"neutral_us": dice.uniform(1460.0, 1540.0), "dead_band_us": dice.uniform(0.0, 140.0)}
    car = PlayedEsc(
        f'motors.drive.reverse = "{kind}"',
        f"motors.drive.limit = {dice.choice((0.1, 0.3, 0.8))}",
        f"motors.drive.invert = {dice.choice(('true', 'false'))}",
        true=true,
    )
    steps = [("neutral", "drive"), ("direction", "drive"), ("dead_band_us", "drive"), ("speed", "")]
    words = ["turns", "moves", "creeps_forward", "creeps_backward", "still", "forward", "backward"]
    for _ in range(25):
        if dice.random() < 0.2:
            car.tuner.begin(*dice.choice(steps), car.now_s)
        car.finger = dice.random() < 0.7
        car.go(dice.uniform(0.05, 2.5))
        for _ in range(dice.choice((0, 1, 3))):
            try:
                car.tuner.answer(dice.choice(words), [])
            except ValueError:
                pass
        car.finger = False
        if dice.random() < 0.1:
            car.go(0.3)
            try:
                car.tuner.keep(0.0)
            except ValueError:
                pass
    car.within_limits()


# Kept values


def test_kept_neutral_far_from_an_edited_profile_is_dropped_and_named() -> None:
    own = profile_of("rc-esc")
    values = {NEUTRAL_KEY: 1530.0, DEAD_BAND_KEY: 60.0}
    kept = Calibrator(own, History().changed("neutral drive", values, 0.0))
    assert esc_of(kept.profile).neutral_us == 1530.0
    (fault,) = kept.faults
    assert "1530 µs" in str(fault) and "1500 µs" in str(fault)
    edited = profile_of("rc-esc", "motors.drive.neutral_us = 1460")
    dropped = Calibrator(edited, History().changed("neutral drive", values, 0.0))
    assert esc_of(dropped.profile).neutral_us == 1460.0
    assert esc_of(dropped.profile).dead_band_us == 60.0
    assert any("motors.drive.neutral_us = 1530" in str(text) for text in dropped.faults)


def test_kept_neutral_near_that_of_the_profile_is_no_fault() -> None:
    kept = History().changed("neutral drive", {NEUTRAL_KEY: 1510.0}, 0.0)
    assert Calibrator(profile_of("rc-esc"), kept).faults == ()


@pytest.mark.parametrize(
    ("key", "value"), [(NEUTRAL_KEY, 1551.0), (NEUTRAL_KEY, 1449.0), (DEAD_BAND_KEY, 151.0)]
)
def test_typed_value_beyond_its_bounds_is_refused(key: str, value: float) -> None:
    tuner = Calibrator(profile_of("rc-esc"), History())
    with pytest.raises(ConfigError, match=key.rpartition(".")[2]):
        tuner.set(key, value, 0.0)
    assert tuner.history == History()


def test_exported_profile_has_the_values_as_its_own() -> None:
    own = profile_of("rc-esc")
    values = {NEUTRAL_KEY: 1520.0, DEAD_BAND_KEY: 62.5}
    tuned = overridden(own, values)
    assert esc_of(profiles.parse(msgspec.to_builtins(tuned))).dead_band_us == 62.5
    assert mixing.pulses_apart(own.motors, tuned.motors) == (1520.0, 62.5)
    assert mixing.pulses_apart(own.motors, own.motors) is None
    assert mixing.pulses_apart(profile_of("bench").motors, own.motors) is None
