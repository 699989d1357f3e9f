"""Step that verifies a motor's resistor: synthetic currents, its wish, the hold of the car."""

import random
from pathlib import Path

import pytest
from testkit.profiles import profile_of

from fpvcar.app import Settings
from fpvcar.calibration import store
from fpvcar.calibration.calibrator import Calibrator
from fpvcar.calibration.motors import RESISTOR_DUTY, LeadResistor, claimed
from fpvcar.calibration.steps import CarState, FailedStep, Wish
from fpvcar.calibration.store import History
from fpvcar.config import Motors, Profile
from fpvcar.config.pwm import MOST_HZ
from fpvcar.drive import mixing
from fpvcar.wire.telemetry import Battery

CLAIMED = ("motors.drive.resistor_ohm = 2.2", "motors.steer.resistor_ohm = 2.2")
CAR = profile_of("mx1508-sensors", *CLAIMED)
SIDES = profile_of(
    "differential",
    "motors.left = {winding_ohm = 0.68, resistor_ohm = 2.2, trim = 0.1}",
    "motors.right = {winding_ohm = 0.68, resistor_ohm = 2.2}",
    "motors.balance = 0.2",
    "battery.address = 0x40",
)
REST_A, VOLTS, EVERY_S, TICK_S = 0.35, 7.5, 0.078, 0.02
WITHOUT_OHM, WITH_OHM = 3.3, 5.4


class Bench:
    """Car whose battery has a current by a resistance; it drives while a finger is down."""

    def __init__(self, profile: Profile, ohm: float, noise_a: float = 0.01) -> None:
        self.tuner = Calibrator(profile, History(), MOST_HZ)
        self.ohm, self.noise_a, self.now_s = ohm, noise_a, 100.0
        self.most, self.moved_s = 0.0, 0.0
        self._dice, self._slew = random.Random(1), mixing.Slew()
        self._read: tuple[Battery, float] | None = None
        self._applied = [profile]
        self.tuner.tuned.subscribe(self._applied.append)

    def begin(self) -> LeadResistor:
        kind, name = next(iter(self.tuner.offered()))
        self.tuner.begin(kind, name, self.now_s)
        assert isinstance(self.tuner.step, LeadResistor)
        return self.tuner.step

    def play(self, seconds: float, finger: bool, limit: float = 1.0) -> str:
        for _ in range(round(seconds / TICK_S)):
            self.now_s += TICK_S
            status = self.tuner.status(limit, VOLTS, self.now_s)
            assert status is not None
            wish = Wish(**status["wish"]) if finger else Wish()
            motors = self.motors
            duties, self._slew = mixing.mix(
                wish.throttle * limit, wish.steer, motors, VOLTS, self._slew, self.now_s
            )
            self.most = max(self.most, *map(abs, duties))
            self.moved_s += TICK_S * any(duties)
            battery = self._battery(max(map(abs, duties)))
            self.tuner.update(CarState(self.now_s, wish.throttle, 0.0, duties, battery=battery))
            self.tuner.record(self.now_s)
        return str(self.tuner.step.phase) if self.tuner.step is not None else ""

    @property
    def motors(self) -> Motors:
        """Motors of the profile by which the car drives now."""
        return self._applied[-1].motors

    def _battery(self, duty: float) -> Battery:
        if self._read is None or self.now_s - self._read[1] >= EVERY_S:
            amps = REST_A + duty * VOLTS / self.ohm + self._dice.gauss(0.0, self.noise_a)
            self._read = Battery(VOLTS, amps, 0.6, False), self.now_s
        battery, read_s = self._read
        return Battery(battery.volts, battery.amps, 0.6, False, self.now_s - read_s)


@pytest.mark.parametrize(
    ("car", "overrides", "most_hz", "names"),
    [
        ("mx1508-sensors", CLAIMED, MOST_HZ, ["drive"]),  # steer has hold = 0.85
        ("mx1508-sensors", (), MOST_HZ, []),
        ("mx1508-sensors", CLAIMED, None, []),
        ("mx1508-sensors", (*CLAIMED, "motors.drive.pwm_hz = 1000"), None, []),
        ("mx1508", CLAIMED, MOST_HZ, []),  # no INA219
        ("l298n", (), MOST_HZ, []),
    ],
)
def test_step_is_offered_first_for_a_claimed_resistor_that_is_measurable(
    car: str, overrides: tuple[str, ...], most_hz: int | None, names: list[str]
) -> None:
    steps = list(Calibrator(profile_of(car, *overrides), History(), most_hz).offered())
    assert [of for kind, of in steps if kind == "resistor"] == names
    assert steps[: len(names)] == [("resistor", name) for name in names]


@pytest.mark.parametrize(
    ("ohm", "noise_a", "phase"),
    [
        (WITH_OHM, 0.01, "done"),
        (WITH_OHM, 0.05, "done"),
        (WITHOUT_OHM, 0.01, "missing"),
        (2.28, 0.05, "missing"),
        (3.8, 0.1, "nothing"),  # too near to the limit of 3.78 ohm
        (1e9, 0.01, "nothing"),
    ],
)
@pytest.mark.parametrize("profile", [CAR, SIDES], ids=["steering", "sides"])
def test_result_follows_the_resistance_within_ten_percent_duty(
    profile: Profile, ohm: float, noise_a: float, phase: str
) -> None:
    bench = Bench(profile, ohm, noise_a)
    step = bench.begin()
    assert bench.play(1.5, finger=False) == "hold" and bench.moved_s == 0.0
    assert bench.play(4.0, finger=True) == phase
    assert 0.7 * RESISTOR_DUTY < bench.most <= RESISTOR_DUTY + 1e-9
    assert bench.moved_s < 3.0 and step.wish(1.0, VOLTS) == Wish(), "it drives no longer"
    if phase != "nothing":
        assert step.figures()["ohm"] == pytest.approx(ohm, rel=0.2)
        assert step.figures()["needs_ohm"] == 2.2


@pytest.mark.parametrize("limit", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("measured_v", [None, 3.0, 7.5, 8.4])
@pytest.mark.parametrize("profile", [CAR, SIDES], ids=["steering", "sides"])
def test_step_limits_each_wish_to_ten_percent_duty(
    profile: Profile, measured_v: float | None, limit: float
) -> None:
    bench = Bench(profile, WITH_OHM)
    step = bench.begin()
    bench.play(1.5, finger=False)
    volts, own = mixing.supply_v(measured_v, profile.battery), step.wish(limit, VOLTS)
    for wish in (own, Wish(1.0, 0.0), Wish(1.0, 1.0), Wish(-1.0, -1.0)):
        throttle = wish.throttle * limit
        last = mixing.Slew(throttle, wish.steer)
        duties, _ = mixing.mix(throttle, wish.steer, bench.motors, volts, last, TICK_S)
        assert any(duties) and max(map(abs, duties)) <= RESISTOR_DUTY + 1e-9, wish
        if wish is own:
            assert min(map(abs, duties)) < 0.01, "one motor alone"
    bench.tuner.end()
    assert bench.motors == profile.motors


def test_released_button_ends_the_drive_and_gives_no_result() -> None:
    bench = Bench(CAR, WITHOUT_OHM)
    bench.begin()
    bench.play(1.5, finger=False)
    for _ in range(3):
        assert bench.play(1.8, finger=True) == "hold"
        moved_s = bench.moved_s
        assert bench.play(0.5, finger=False) == "hold"
        assert bench.moved_s - moved_s <= 0.2, "only the slew"
    assert not bench.tuner.in_doubt(), "no result"
    bench.ohm = WITH_OHM
    assert bench.play(4.0, finger=True) == "done", "of this drive alone"


def test_silent_battery_gives_no_result() -> None:
    step = LeadResistor(CAR, "drive", dict(claimed(CAR, MOST_HZ))["drive"])
    for tick in range(500):
        step.update(CarState(tick * TICK_S, 0.1, 0.0, (0.1, 0.0), battery=None))
    assert step.phase == "hold" and step.wish(1.0, VOLTS) == Wish()
    with pytest.raises(ValueError, match="no questions"):
        step.answer("turns", [])


def test_missing_resistor_holds_the_car_until_the_step_finds_it(tmp_path: Path) -> None:
    bench = Bench(CAR, WITHOUT_OHM)
    tuner = bench.tuner
    bench.begin()
    bench.play(1.5, finger=False)
    assert bench.play(4.0, finger=True) == "missing" and tuner.in_doubt() == "resistor"
    assert "motors.drive lacks its resistor of 2.2 Ω for" in str(tuner.faults[-1])
    tuner.set("motors.drive.trim", 0.1, 2.0)
    assert tuner.in_doubt() == "resistor", "another value"
    store.write(tmp_path / store.FILE, tuner.history)
    kept = store.load(tmp_path / store.FILE, CAR.motors.names)
    again = Calibrator(CAR, kept, MOST_HZ)
    assert again.in_doubt() == "resistor" and not again.doubts, "after a restart"
    again.begin("direction", "drive", 3.0)
    assert again.in_doubt() == "resistor", "this step would drive harder"
    bench.ohm = WITH_OHM
    bench.begin()
    assert not tuner.in_doubt(), "the step may drive"
    bench.play(1.5, finger=False)
    assert bench.play(4.0, finger=True) == "done" and not tuner.in_doubt()
    assert tuner.faults == () and tuner.history.values == {"motors.drive.trim": 0.1}
    tuner.undo()
    assert tuner.in_doubt() == "resistor"


def test_fault_of_a_step_ends_no_later_step() -> None:
    """The result of a step is written while the next one may begin."""
    bench = Bench(CAR, WITH_OHM)
    earlier = bench.begin()
    later = bench.begin()
    bench.tuner.fail(OSError("full"), earlier)
    assert bench.tuner.step is later
    bench.tuner.fail(OSError("full"), later)
    assert isinstance(bench.tuner.step, FailedStep)


def test_drive_before_the_rest_is_measured_gives_no_result() -> None:
    bench = Bench(CAR, WITHOUT_OHM)
    step = bench.begin()
    for tick in range(200):
        battery = Battery(VOLTS, 1.0, 0.6, False, age_s=0.0)
        step.update(CarState(tick * TICK_S, 0.1, 0.0, (0.1, 0.0), battery=battery))
    assert step.phase == "nothing"


def test_direction_in_doubt_leaves_the_step_possible() -> None:
    doubts = ("drive", "drive.resistor")
    bench = Bench(CAR, WITH_OHM)
    bench.tuner = Calibrator(CAR, History().changed("test", {}, 1.0, doubts), MOST_HZ)
    bench.tuner.tuned.subscribe(bench._applied.append)
    bench.begin()
    bench.play(1.5, finger=False)
    assert bench.play(4.0, finger=True) == "done"
    assert bench.tuner.in_doubt() == "direction" and bench.tuner.doubts == ("drive",)


def test_doubt_outlives_changes_while_it_cannot_be_verified() -> None:
    held = History().changed("resistor drive", {}, 1.0, ("drive.resistor", "later"))
    tuner = Calibrator(CAR, held, None)
    assert tuner.in_doubt() is None, "smooth pulses need no resistor"
    tuner.set("motors.drive.invert", True, 2.0)
    assert Calibrator(CAR, tuner.history, MOST_HZ).in_doubt() == "resistor"
    assert "later" in tuner.history.doubts
    unmeasured = profile_of("mx1508", *CLAIMED)  # the INA219 has gone
    edited = profile_of("mx1508-sensors", *CLAIMED, "motors.drive.hold = 0.9")
    for profile in (unmeasured, edited):
        tuner = Calibrator(profile, held, MOST_HZ)
        assert tuner.in_doubt() == "resistor"
        assert ("resistor", "drive") not in tuner.offered()
    tuner.undo()
    assert tuner.in_doubt() is None


def test_change_of_an_older_version_does_not_release_the_car() -> None:
    """An older version ignores this doubt, and its changes do not pass it on."""
    held = History().changed("resistor drive", {}, 1.0, ("drive.resistor",))
    values = {"motors.drive.trim": 0.1}
    tuner = Calibrator(CAR, held.changed("motors.drive.trim", values, 2.0), MOST_HZ)
    assert tuner.in_doubt() == "resistor" and not tuner.doubts
    tuner.set("motors.drive.trim", 0.2, 3.0)
    assert tuner.history.doubts == ("drive.resistor",)
    found = tuner.history.changed("resistor drive", values, 4.0)
    assert Calibrator(CAR, found, MOST_HZ).in_doubt() is None
    for _ in range(3):
        tuner.undo()
    assert tuner.in_doubt() is None and tuner.history.values == {}


def test_car_offers_the_step_by_the_pulses_of_its_pins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    steps = []
    for backend in ("linux", "pigpio"):
        profile = profile_of("mx1508-sensors", *CLAIMED, f'pins.backend = "{backend}"')
        steps.append(next(iter(Settings(profile).tuner.offered())))
    assert steps == [("resistor", "drive"), ("direction", "drive")]
