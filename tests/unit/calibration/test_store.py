"""Calibrated values over a profile: bounds, undo, dates, files, a servo's pulses."""

import json
import tomllib
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from testkit.pins.fake_pins import PlayedAccess
from testkit.profiles import profile_of

from fpvcar.calibration import store
from fpvcar.calibration.calibrator import AWAY_S, Calibrator
from fpvcar.calibration.export import with_key, written
from fpvcar.calibration.steps import CarState
from fpvcar.calibration.store import CHANGES_MOST, OWN, Change, History
from fpvcar.calibration.values import (
    GONE,
    SPEED,
    Value,
    differing,
    fitting,
    overridden,
    settings,
    with_new,
)
from fpvcar.config import ConfigError, Profile, profiles
from fpvcar.devices.pins import PinsFault
from fpvcar.drive import mixing
from fpvcar.runtime import paths
from fpvcar.wheels.controller import Wheels
from fpvcar.wire.wheels import Setpoint, WheelsReason, pack_setpoint

BENCH, SERVO = profile_of("bench"), profile_of("mx1508-servo")
DEAD = "motors.drive.dead_band"
MOTORS = BENCH.motors.names


def test_values_override_the_profile_within_its_bounds() -> None:
    tuned = overridden(BENCH, {DEAD: 0.2, "guard.top_mps": 2.0, "battery.curve": (0.0, 1.0)})
    assert settings(tuned)[DEAD].value == 0.2 and tuned.guard.top_mps == 2.0
    assert overridden(BENCH, {}) is BENCH
    for key, value, words in (
        (DEAD, 1.5, "dead_band"),
        ("motors.drive.forward", 5.0, "not a calibrated value"),
        ("battery.full_v", 5.0, "full_v"),
        ("battery.curve", (0.5, 1.0), "rise"),
        ("motors.drive.invert", 0.5, "invert"),
    ):
        with pytest.raises(ConfigError, match=words):
            overridden(BENCH, {key: value})


def test_settable_values_round_trip_through_the_profile() -> None:
    for name in ("bench", "differential", "mx1508-servo", "motor-hat"):
        profile = profile_of(name)
        now = {key: one.value for key, one in settings(profile).items()}
        assert overridden(profile, now) == profile
        assert profiles.parse(tomllib.loads(written(text_of(name), now))) == profile


def text_of(name: str) -> str:
    return (paths.HARDWARE / f"{name}.toml").read_text(encoding="utf-8")


def test_exported_profile_has_values_and_comments() -> None:
    values: dict[str, Value] = {
        DEAD: 0.123456,
        "motors.drive.invert": True,
        "speeds.child_mps": 0.7,
        "battery.curve": (0.0, 0.5, 1.0),
        "guard.top_mps": 1.1,
    }
    unmeasured = with_key(text_of("bench"), "guard.measured", "false")
    text = written(unmeasured, values)
    assert "# FA-130 type" in text and "dead_band = 0.1235        #" in text
    profile = profiles.parse(tomllib.loads(text))
    tuned = overridden(BENCH, {**values, DEAD: 0.1235})
    assert profile == tuned


def test_exported_profile_keeps_a_measured_speed_that_equals_its_own() -> None:
    toml = with_key(text_of("bench"), "guard.measured", "false")
    own = profiles.parse(tomllib.loads(toml))
    tuned = overridden(own, {SPEED: own.guard.top_mps})
    assert tuned.guard.measured and differing(own, own) == {}
    assert profiles.parse(tomllib.loads(written(toml, differing(own, tuned)))) == tuned


def test_key_replaces_only_its_own_line() -> None:
    toml = "[a]\nb = 1  # one\n\n[c]\nb = 2\n"
    assert with_key(toml, "a.b", "3") == "[a]\nb = 3  # one\n\n[c]\nb = 2\n"
    assert with_key(toml, "c.d", "4") == "[a]\nb = 1  # one\n\n[c]\nd = 4\nb = 2\n"
    assert with_key(toml, "x.b", "5") == f"{toml}\n[x]\nb = 5\n"


def test_typed_offsets_end_at_5_cm_and_measured_ones_at_15_cm() -> None:
    key = "sensors.tof.front.offset_m"
    tuner = Calibrator(BENCH, History())
    for value in (0.343, -0.06):
        with pytest.raises(ConfigError, match="takes two measurements"):
            tuner.set(key, value, 1.0)
    tuner.set(key, -0.05, 1.0)
    assert overridden(BENCH, {key: 0.15}).sensors.tof["front"].offset_m == 0.15
    with pytest.raises(ConfigError, match="expected at most 0.15 either way"):
        overridden(BENCH, {key: -0.151})


def test_servo_pulse_stays_within_the_ends_of_the_profile() -> None:
    own: Any = SERVO.motors.pair[1]
    for centre_us in (1400.0, 1500.0, 1600.0):
        for invert in (False, True):
            values = {"motors.steer.centre_us": centre_us, "motors.steer.invert": invert}
            tuned: Any = overridden(SERVO, values).motors.pair[1]
            low, high = sorted(map(own.pulse_us, (-1.0, 1.0)))
            for way in (-1.0, 1.0):
                assert low <= tuned.pulse_us(way) <= high
    assert with_new(SERVO, {}, {"motors.steer.left_deg": 20.0}) != SERVO
    with pytest.raises(ConfigError, match="left_deg = 50: expected at most 25"):
        with_new(SERVO, {}, {"motors.steer.left_deg": 50.0})


def test_changes_can_be_undone_and_stay_listed() -> None:
    changes = History().changed("one", {DEAD: 0.1}, 1.0).changed("two", {DEAD: 0.2}, 2.0)
    back = changes.undone()
    assert back.values == {DEAD: 0.1} and len(back.changes) == 2
    assert back.undone().values == {} and back.undone().undone().now == OWN
    again = back.changed("three", {"guard.top_mps": 2.0}, 3.0)
    assert again.values == {"guard.top_mps": 2.0}
    assert again.undone().values == {DEAD: 0.1}
    assert [one.what for one in again.changes] == ["one", "two", "three"]


def test_undo_after_101_changes_stops_at_the_oldest_change_that_is_known() -> None:
    invert = {"motors.drive.invert": True}
    history = History().changed("direction drive", invert, 0.0)
    for number in range(1, CHANGES_MOST + 1):
        value = {**invert, DEAD: number / 1000}
        history = history.changed(str(number), value, float(number))
    assert len(history.changes) == CHANGES_MOST and history.undoable
    for number in range(CHANGES_MOST, 1, -1):
        assert history.values[DEAD] == number / 1000
        history = history.undone()
    assert history.values == {**invert, DEAD: 0.001} and not history.undoable
    assert history.undone() == history
    again = history.changed("new", {DEAD: 0.5}, 999.0)
    assert again.undone().values == {DEAD: 0.5}, "its change before was dropped"


def test_undone_branches_keep_their_base_when_the_list_is_cut() -> None:
    history = History().changed("one", {DEAD: 0.1}, 1.0).undone()
    for number in range(CHANGES_MOST):
        history = history.changed(str(number), {DEAD: number / 1000}, 2.0).undone()
        assert history == History(history.changes, OWN), "each began at the profile's own"


def test_written_calibration_is_loaded_again(tmp_path: Path) -> None:
    path = tmp_path / store.FILE
    assert store.load(path, MOTORS) == History()
    here = History().changed("battery", {"battery.curve": (0.0, 1.0), DEAD: 0.2}, 5.0)
    here = here.changed("direction", {"motors.drive.invert": True}, 6.0, ("steer",))
    store.write(path, here)
    assert store.load(path, MOTORS) == here and here.doubts == ("steer",)
    assert fitting(BENCH, here.values).values["motors.drive.invert"] is True


def test_fields_of_a_later_version_are_ignored(tmp_path: Path) -> None:
    change = '{"utc_s":1,"what":"","values":{"motors.drive.invert":true},"new":1}'
    (tmp_path / store.FILE).write_text(f'{{"changes":[{change}],"now":0,"new":1}}')
    read = store.load(tmp_path / store.FILE, MOTORS)
    assert read.values == {"motors.drive.invert": True} and read.doubts == ()


def test_fields_of_a_later_version_are_written_back(tmp_path: Path) -> None:
    change = '{"utc_s":1,"what":"","values":{},"new":[1, 2]}'
    path = tmp_path / store.FILE
    path.write_text(f'{{"changes":[{change}],"now":0,"also":{{"x":null}}}}')
    store.write(path, store.load(path, MOTORS).changed("invert", {"invert": True}, 2.0).undone())
    saved = json.loads(path.read_bytes())
    assert saved["also"] == {"x": None} and saved["now"] == 0
    assert [one.get("new") for one in saved["changes"]] == [[1, 2], None]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"now": 3}',
        '{"now": 0, "changes": [{"utc_s": 1, "what": "", "values": {}, "before": 0}]}',
        '{"other": 1}',
    ],
)
def test_damaged_file_leaves_all_directions_in_doubt(tmp_path: Path, text: str) -> None:
    path = tmp_path / store.FILE
    path.write_text(text)
    read = store.load(path, MOTORS)
    assert read.values == {} and read.doubts == MOTORS and not read.undoable
    assert read.changes[0].utc_s == pytest.approx(path.stat().st_mtime)
    tuner = Calibrator(BENCH, read)
    assert tuner.in_doubt() and tuner.profile == BENCH
    assert "file was damaged" in str(tuner.faults[0])
    tuner.set("motors.drive.invert", True, 1.0)
    assert list(tuner.doubts) == ["steer"] and tuner.in_doubt()
    tuner.set(DEAD, 0.2, 2.0)
    store.write(path, tuner.history)
    again = Calibrator(BENCH, store.load(path, MOTORS))
    assert list(again.doubts) == ["steer"], "another value settles no direction"
    again.set("motors.steer.invert", False, 3.0)
    assert not again.doubts and not again.in_doubt() and again.faults == ()
    again.undo()
    assert list(again.doubts) == ["steer"]


def test_unreadable_file_leaves_all_directions_in_doubt(tmp_path: Path) -> None:
    path = tmp_path / "file" / store.FILE
    path.parent.write_text("no folder")
    assert store.load(path, MOTORS).doubts == MOTORS


def test_fitting_drops_values_that_a_profile_has_no_more() -> None:
    fitted = fitting(BENCH, {DEAD: 0.2, "motors.left.dead_band": 0.1})
    assert fitted == ({DEAD: 0.2}, {"motors.left.dead_band": GONE})
    before = History((Change(1.0, "x", {"motors.left.trim": 0.1}),), 0)
    tuner = Calibrator(BENCH, before)
    assert tuner.profile == BENCH and not tuner.in_doubt()
    (fault,) = tuner.faults
    assert str(fault) == f"calibration: motors.left.trim ignored: {GONE}"


def test_fitting_drops_only_the_value_that_clashes_with_an_edited_line() -> None:
    """A line of car.toml was edited after these values had been calibrated."""
    values: dict[str, Value] = {
        "motors.drive.invert": True,
        DEAD: 0.2,
        "battery.full_v": 8.0,
        "guard.top_mps": 2.0,
    }
    edited = profile_of("bench", "battery.nominal_v = 8.2")
    fitted = fitting(edited, values)
    assert set(fitted.dropped) == {"battery.full_v"}
    assert "battery.nominal_v = 8.2: expected" in fitted.dropped["battery.full_v"]
    assert fitted.values == {k: v for k, v in values.items() if k != "battery.full_v"}
    tuner = Calibrator(edited, History((Change(1.0, "x", values),), 0))
    assert tuner.profile.motors.pair[0].invert and not tuner.in_doubt()
    assert tuner.as_json()["faults"] == tuner.faults and len(tuner.faults) == 1


@pytest.mark.parametrize(("full_v", "nominal_v", "empty_v"), [(12.6, 11.1, 9.9), (4.2, 3.7, 3.1)])
def test_fitting_adds_voltages_in_the_order_in_which_they_fit(
    full_v: float, nominal_v: float, empty_v: float
) -> None:
    """Each value alone clashes with the profile's others; a fourth value clashes for good."""
    volts: dict[str, Value] = {
        "battery.full_v": full_v,
        "battery.nominal_v": nominal_v,
        "battery.empty_v": empty_v,
    }
    fitted = fitting(BENCH, {**volts, DEAD: 2.0})
    assert fitted.values == volts and set(fitted.dropped) == {DEAD}


def test_dropped_direction_puts_its_motor_in_doubt() -> None:
    tuner = Calibrator(BENCH, History((Change(1.0, "x", {"motors.drive.invert": 0.5}),), 0))
    assert list(tuner.doubts) == ["drive"] and tuner.in_doubt()
    assert "direction of drive in doubt" in str(tuner.faults[-1])
    tuner.begin("direction", "steer", 1.0)
    assert tuner.in_doubt(), "this step finds another motor's"
    tuner.begin("direction", "drive", 2.0)
    assert not tuner.in_doubt(), "the step that finds it may drive"
    tuner.update(CarState(2.1, 0.2, 0.0, (0.2, 0.0)))
    tuner.update(CarState(2.2, 0.0, 0.0, (0.0, 0.0)))
    tuner.answer("forward", [])
    asked = tuner.status(1.0, 7.5, 2.3)
    assert asked is not None and asked["phase"] == "settled"
    tuner.keep(3.0)
    assert tuner.history.values == {"motors.drive.invert": False}
    assert not tuner.doubts and not tuner.in_doubt()
    tuner.undo()
    assert tuner.in_doubt()
    tuner.begin("direction", "drive", 4.0)
    tuner.end()
    assert tuner.in_doubt(), "a step that ended keeps nothing"


def test_direction_of_a_removed_motor_puts_others_in_doubt() -> None:
    before = History((Change(1.0, "x", {"motors.drive.invert": True}),), 0)
    tuner = Calibrator(profile_of("differential"), before)
    assert list(tuner.doubts) == ["left", "right"]
    tuner.set("motors.left.invert", False, 2.0)
    assert list(tuner.doubts) == ["right"]
    tuner.set("motors.right.invert", True, 3.0)
    assert not tuner.in_doubt() and tuner.faults == ()


def test_calibrated_battery_keeps_the_limits_of_wheels() -> None:
    """`wheels` reads the profile alone: `run` may not send more than its limits."""
    for values in (
        {"battery.empty_v": 3.2},
        {"battery.empty_v": 3.2, "battery.nominal_v": 4.0},
        {"battery.empty_v": 7.0},
    ):
        tuned = overridden(BENCH, values)
        assert tuned.battery.empty_v == values["battery.empty_v"], "for the page"
        wheels = Wheels(BENCH, PlayedAccess(Mock(side_effect=PinsFault)))
        for measured_v in (None, 0.1, 3.5, 6.0, 6.2, 7.0, 8.4):
            supply_v = mixing.supply_v(measured_v, tuned.battery)
            duties, _ = mixing.mix(1.0, 1.0, tuned.motors, supply_v, mixing.Slew(1.0, 1.0), 1.0)
            packet = pack_setpoint(Setpoint(1, 10**8, duties))
            answers = wheels.lease.take([packet], 0).answers
            assert [one.reason for one in answers] == [WheelsReason.ZERO_FIRST]


class Applied:
    """Calibrator with the profile that the car drives by."""

    def __init__(self, profile: Profile = BENCH) -> None:
        self.tuner, self.profile = Calibrator(profile, History()), profile
        self.tuner.tuned.subscribe(self.apply)

    def apply(self, profile: Profile) -> None:
        self.profile = profile

    @property
    def dead_band(self) -> object:
        return settings(self.profile)[DEAD].value


def test_step_values_apply_until_the_step_ends() -> None:
    car = Applied()
    car.tuner.begin("dead_band", "drive", 1.0)
    assert car.dead_band == 0.0
    assert car.tuner.status(1.0, 7.5, 1.0) is not None
    with pytest.raises(ValueError, match="nothing to keep"):
        car.tuner.keep(1.0)
    car.tuner.end()
    assert car.dead_band == 0.14 and car.tuner.status(1.0, 7.5, 1.0) is None
    with pytest.raises(ValueError, match="begin it again"):
        car.tuner.keep(1.0)
    with pytest.raises(ValueError, match="this car has"):
        car.tuner.begin("ends", "steer", 1.0)


def test_step_ends_when_its_page_goes_away() -> None:
    car = Applied()
    car.tuner.begin("dead_band", "drive", 1.0)
    drives, rests = (0.2, 0.0), (0.0, 0.0)
    car.tuner.update(CarState(1.0 + AWAY_S + 0.1, 0.1, 0.0, drives))
    assert car.tuner.step is not None
    car.tuner.update(CarState(1.0 + AWAY_S + 0.2, 0.0, 0.0, rests))
    assert car.tuner.step is None and car.dead_band == 0.14
    car.tuner.update(CarState(9.0, 0.0, 0.0, rests))


def test_kept_values_apply_until_they_are_undone() -> None:
    car = Applied()
    car.tuner.begin("speed", "", 1.0)
    for share, took_s in ((0.3, 2.0), (0.8, 1.0)):
        car.tuner.answer("throttle", [share])
        car.tuner.answer("measured", [1.0, took_s])
    car.tuner.keep(7.0)
    assert car.profile.guard.top_mps == 1.2 and car.tuner.step is None
    car.tuner.set(DEAD, 0.2, 8.0)
    assert car.dead_band == 0.2
    with pytest.raises(ConfigError):
        car.tuner.set(DEAD, 2.0, 9.0)
    said = car.tuner.as_json()
    assert [one["what"] for one in said["changes"]] == ["speed", DEAD]
    assert said["undoable"] and {"kind": "battery", "of": ""} in said["steps"]
    car.tuner.undo()
    assert car.dead_band == 0.14 and car.profile.guard.top_mps == 1.2
    car.tuner.undo()
    assert car.profile == BENCH


def test_answer_that_the_profile_refuses_changes_nothing() -> None:
    car = Applied(SERVO)
    car.tuner.begin("ends", "steer", 1.0)
    with pytest.raises(ConfigError, match="the limit of the servo's pulse"):
        car.tuner.answer("more", [])
    assert car.profile == SERVO


def test_answer_without_a_new_value_applies_no_profile() -> None:
    car = Applied()
    car.tuner.begin("dead_band", "drive", 1.0)
    car.profile = SERVO  # as if the profile were another car's
    for tick in range(10):
        car.tuner.update(CarState(1.0 + tick * 0.02, 0.1, 0.0, (0.1, 0.0)))
    car.tuner.answer("turns", [])
    assert car.profile is SERVO
    car.tuner.end()
    assert car.profile == BENCH
