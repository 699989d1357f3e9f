"""Checks of motors: their pins, their pulses, and the drivers that go together."""

import re
from typing import Any

import msgspec
import pytest
from testkit.profiles import minimal

from fpvcar.config import ConfigError, Profile, checks, profiles
from fpvcar.config.pwm import over_peak, slow_pulses
from fpvcar.runtime.paths import HARDWARE


def test_inputs_pulled_up_at_start_are_warned_of() -> None:
    usual = minimal()
    assert checks.warnings(profiles.parse(usual)) == []
    low = usual["motors"]["drive"] | {"forward": 8, "reverse": 9}
    motors = usual["motors"] | {"drive": low}
    (said,) = checks.warnings(profiles.parse(minimal(motors=motors)))
    assert said.startswith("motors.drive.forward = 8: GPIO 0 to 8 are pulled up")
    behind = {"driver": "l298n", "enable": 12, "forward": 7, "reverse": 8}
    motors = usual["motors"] | {"drive": behind}
    full = {"full_v": 9.6, "nominal_v": 8.0, "empty_v": 7.0}
    assert checks.warnings(profiles.parse(minimal(motors=motors, battery=full))) == []


@pytest.mark.parametrize(
    ("empty_v", "full_v", "risky"), [(6.2, 8.4, 1), (7.0, 12.0, 0), (7.0, 12.6, 1)]
)
def test_l298n_beyond_its_5v_jumper_is_warned_of(empty_v: float, full_v: float, risky: int) -> None:
    behind = {"driver": "l298n", "enable": 12, "forward": 17, "reverse": 27}
    motors = minimal()["motors"] | {"drive": behind}
    battery = {"full_v": full_v, "nominal_v": 7.5, "empty_v": empty_v}
    profile = profiles.parse(minimal(motors=motors, battery=battery))
    said = checks.warnings(profile)
    assert len(said) == risky
    assert all("5V jumper needs 7 V, and bears 12 V" in text for text in said)
    assert not checks.warnings(profiles.load(HARDWARE / "l298n.toml"))


def _mx1508(**more: object) -> Profile:
    profile = profiles.load(HARDWARE / "mx1508.toml")
    pair = {
        name: msgspec.structs.replace(motor, **more)
        for name, motor in zip(("drive", "steer"), profile.motors.pair, strict=True)
    }
    motors = msgspec.structs.replace(profile.motors, **pair)
    return msgspec.structs.replace(profile, motors=motors)


@pytest.mark.parametrize(
    ("more", "most_hz", "cut", "over"),
    [
        ({}, 100, 2, 2),
        ({}, None, 0, 0),
        ({"pwm_hz": 800}, None, 0, 2),
        ({"pwm_hz": 100}, 100, 0, 2),
        ({"resistor_ohm": 2.2}, 100, 2, 0),
        ({"winding_ohm": 2.61}, 100, 2, 0),
        ({"winding_ohm": 2.59}, 100, 2, 2),
        ({"winding_ohm": 2.59, "resistor_ohm": 0.02}, 100, 2, 0),
    ],
    ids=str,
)
def test_pulses_that_are_cut_or_exceed_the_bridge_are_warned_of(
    more: dict[str, object], most_hz: int | None, cut: int, over: int
) -> None:
    """A full pack of 8.4 V drives 2 A through 4.2 Ω, 1.6 of them the bridge's."""
    profile = _mx1508(**more)
    assert len(slow_pulses(profile, most_hz)) == cut
    assert len(over_peak(profile, most_hz)) == over


def test_pulses_over_the_peak_are_told_with_the_resistor() -> None:
    (over, _) = over_peak(_mx1508(), 100)
    said = str(over)
    assert said.startswith("motors.drive is not driven: ")
    assert "draw 3.7 A from 8.4 V" in said and "bears 2 A" in said
    assert "a resistor of 2.2 Ω for 4 W into the motor's lead" in said
    assert said.endswith("confirm it: sudo fpvcar setup") and over.most_v == 4.5
    hat = profiles.load(HARDWARE / "motor-hat.toml")
    assert not slow_pulses(hat, 100) and not over_peak(hat, 100)


@pytest.mark.parametrize("name", sorted(path.stem for path in HARDWARE.glob("*.toml")))
def test_shipped_profile_of_a_bare_fa_130_needs_a_resistor_without_pigpiod(name: str) -> None:
    """No profile claims a resistor that its builder has not confirmed. The bench has its own
    daemon, which makes fast pulses."""
    profile = profiles.load(HARDWARE / f"{name}.toml")
    overloads = over_peak(profile, 100)
    assert bool(overloads) == (
        name in ("bench", "mx1508", "mx1508-sensors", "mx1508-servo", "pan-tilt", "zero-w")
    )
    assert overloads == over_peak(profile, 100, bare=True)
    assert not over_peak(profile, None)


def _full(volts: float, profile: Profile) -> Profile:
    """Return a profile with another voltage of the full pack."""
    battery = msgspec.structs.replace(profile.battery, full_v=volts)
    return msgspec.structs.replace(profile, battery=battery)


def test_resistor_and_battery_of_the_advice_are_enough() -> None:
    for ohm, volts in ((0.68, 8.4), (0.1, 24.0), (1.7, 7.2), (2.59, 8.4)):
        (over, *_) = over_peak(_full(volts, _mx1508(winding_ohm=ohm)), 100)
        fitted = _mx1508(winding_ohm=ohm, resistor_ohm=over.resistor_ohm)
        assert not over_peak(_full(volts, fitted), 100)
        assert len(over_peak(_full(volts, fitted), 100, bare=True)) == 2
        assert not over_peak(_full(over.most_v, _mx1508(winding_ohm=ohm)), 100)


PWM = {"backend": "linux", "pwm": [12, 13]}
DRIVE_12_13 = {"forward": 12, "reverse": 13}
STEER = {"forward": 24, "reverse": 23}
L298N_18 = {"driver": "l298n", "enable": 18, "forward": 17, "reverse": 27}
L298N_19 = {"driver": "l298n", "enable": 19, "forward": 24, "reverse": 23}


@pytest.mark.parametrize(
    ("pwm", "drive", "steer"),
    [
        ([12, 13], DRIVE_12_13, STEER),
        ([13, 12], DRIVE_12_13, STEER),
        ([18, 19], {"forward": 18, "reverse": 19}, STEER),
        ([18, 19], L298N_18, L298N_19),
        ([18], L298N_18, STEER),
        ([12, 13, 22], DRIVE_12_13, {"driver": "servo", "signal": 22}),
        ([18, 13], L298N_18, {"driver": "servo", "signal": 13}),
    ],
)
def test_pins_with_a_kernel_pwm_are_accepted_and_keep_their_frequency(
    pwm: list[int], drive: dict[str, object], steer: dict[str, object]
) -> None:
    pins = {"backend": "linux", "pwm": pwm}
    profile = profiles.parse(minimal(pins=pins, motors={"drive": drive, "steer": steer}))
    assert not [said for said in slow_pulses(profile, 100) if "motors.drive" in said]
    assert not [over for over in over_peak(profile, 100) if over.place == "motors.drive"]
    assert set(profile.stop_pins()).isdisjoint(pwm)
    assert {*profile.stop_pins(), *pwm} == set(profile.motor_pins())
    whole = (0,) if steer.get("driver") == "servo" else ()
    assert {stop[0]: stop[2:] for stop in profile.stop_pwm()} == {
        gpio: whole if gpio == steer.get("signal") else () for gpio in pwm
    }


@pytest.mark.parametrize(
    ("pins", "drive", "steer", "words"),
    [
        ({"pwm": [12, 13]}, DRIVE_12_13, STEER, 'expected pins.backend = "linux"'),
        (PWM | {"pwm": [12]}, DRIVE_12_13, STEER, "GPIO 12 without 13: .*both inputs of motors.d"),
        (PWM | {"pwm": [24, 23]}, DRIVE_12_13, STEER, "GPIO 23 .motors.steer.: expected one of 12"),
        (PWM | {"pwm": [12, 18]}, {"forward": 12, "reverse": 18}, STEER, "12, 18 share a channel"),
        (PWM | {"pwm": [18, 17]}, L298N_18, STEER, "GPIO 17: expected PWM inputs .*enable"),
        (PWM | {"pwm": [5]}, DRIVE_12_13, STEER, "GPIO 5: expected PWM inputs of motors or the"),
        (
            {"backend": "linux", "pwm": [12, 13, 18]},
            DRIVE_12_13,
            {"driver": "servo", "signal": 18},
            "GPIO 12, 18 share a channel: expected one",
        ),
        (PWM, {"driver": "motor-hat", "port": 1}, {"driver": "motor-hat", "port": 2}, "GPIO 12"),
    ],
)
def test_pins_that_the_kernel_pwm_cannot_drive_are_refused(
    pins: dict[str, object], drive: dict[str, object], steer: dict[str, object], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        profiles.parse(minimal(pins=pins, motors={"drive": drive, "steer": steer}))


@pytest.mark.parametrize("gpio", [2, 3])
def test_motor_on_a_pin_pulled_up_by_the_board_is_refused(gpio: int) -> None:
    """Letting go of the pin makes it an input that is pulled high: an MX1508 would turn the
    motor."""
    motors = minimal()["motors"]
    high = motors | {"steer": motors["steer"] | {"reverse": gpio}}
    with pytest.raises(ConfigError, match=f"motors.steer.reverse = {gpio}: .* 1.8 kΩ"):
        profiles.parse(minimal(motors=high))
    enabled = motors["drive"] | {"driver": "l298n", "enable": 12, "reverse": gpio}
    profiles.parse(minimal(motors=motors | {"drive": enabled}))


HAT = {"driver": "motor-hat", "port": 1}
SERVO = {"driver": "servo", "signal": 18}
MX1508 = {"forward": 17, "reverse": 27}


@pytest.mark.parametrize(
    ("motors", "words"),
    [
        ({"drive": MX1508}, "expected drive and steer, or left and right, not drive"),
        ({}, "expected drive and steer, or left and right, not none"),
        ({"drive": MX1508, "left": MX1508}, "left and right, not drive, left"),
        ({"drive": SERVO, "steer": MX1508}, "motors.drive: expected a motor"),
        ({"left": MX1508, "right": SERVO}, "motors.right: expected a motor"),
        ({"drive": HAT, "steer": SERVO}, "motors.steer is on GPIO and the other motor on"),
        ({"drive": HAT, "steer": HAT}, "both use port 1 of the HAT"),
        (
            {"drive": HAT, "steer": {"driver": "hat-servo", "channel": 10}},
            "motors.steer.channel = 10: already used by M1 of the HAT; expected 0, 1, 14 or 15",
        ),
        ({"drive": HAT, "steer": HAT | {"port": 5}}, "<= 4"),
    ],
)
def test_impossible_motor_combinations_are_refused(motors: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)):
        profiles.parse(minimal(motors=motors))


def test_hat_takes_its_bus_and_its_address() -> None:
    motors = {"left": HAT, "right": HAT | {"port": 2}}
    profiles.parse(minimal(motors=motors, battery={"address": 0x40}))
    with pytest.raises(ConfigError, match="battery.address = 0x40: .* by pca9685"):
        profiles.parse(minimal(motors=motors, battery={"address": 0x40}, pca9685={"address": 0x40}))
    with pytest.raises(ConfigError, match="already used by pca9685 .SDA of I2C bus 1"):
        profiles.parse(minimal(motors=motors, lights={"head": [2]}))
