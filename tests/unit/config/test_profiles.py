"""Profiles: bounds are checked, unknown keys refused by name, pins used once."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from testkit.profiles import minimal

from fpvcar import config
from fpvcar.config import ConfigError, profiles
from fpvcar.runtime import paths

BENCH = paths.HARDWARE / "bench.toml"
L298N = (
    'motors.drive.driver = "l298n"',
    "motors.drive.enable = 10",
    'motors.steer.driver = "l298n"',
    "motors.steer.enable = 11",
)
"""The bench's car behind another chip."""


def test_bench_profile_is_wired_as_its_predecessor() -> None:
    profile = profiles.load(BENCH)
    assert profile.motor_pins() == (17, 27, 24, 23)
    assert profile.lights.head == (5, 6) and profile.lights.rear == (13,)
    assert profile.sensors.tof["front"].power == 4
    assert profile.server.first_takes_wheel


def test_gate_bounds_are_the_promises_of_the_design() -> None:
    gate = profiles.parse(minimal()).gate
    assert (gate.silence_s, gate.stale_s) == (0.25, 0.2)
    with pytest.raises(ConfigError, match="0.25"):
        profiles.parse(minimal(gate={"silence_s": 0.3}))


def motor(**drive: Any) -> dict[str, Any]:
    """Return a drive motor with these keys added."""
    motors = minimal()["motors"]
    return {"motors": {**motors, "drive": {**motors["drive"], **drive}}}


def test_motor_without_named_driver_is_an_mx1508() -> None:
    raw = minimal()
    profile = profiles.parse(raw)
    assert isinstance(profile.motors.drive, config.Mx1508)
    assert raw == minimal(), "what was given is left alone"
    written = msgspec.to_builtins(profile)
    assert written["motors"]["steer"]["driver"] == "mx1508"
    assert profiles.parse(written) == profile == profiles.parse(minimal(**motor()))


@pytest.mark.parametrize("path", sorted(paths.HARDWARE.glob("*.toml")), ids=str)
def test_shipped_profiles_load_and_round_trip(path: Path) -> None:
    profile = profiles.load(path)
    assert profiles.parse(msgspec.to_builtins(profile)) == profile
    assert len(profile.motors.pair) == 2
    assert profile.motor_pins() or profile.motors.on_hat


def test_hat_has_one_frequency_for_motors_and_servos() -> None:
    path = paths.HARDWARE / "motor-hat.toml"
    assert profiles.load(path).hat_hz() == 1526
    servo = ["motors.steer = {}", 'motors.steer.driver = "hat-servo"', "motors.steer.channel = 0"]
    profile = profiles.load(path, servo)
    assert profile.hat_hz() == 50
    assert profile.stop_pins() == () and profile.stop_chips() == ((1, 0x60, 0, 0),)
    with pytest.raises(ConfigError, match="1000: expected 40 to 60"):
        profiles.load(path, [*servo, "pca9685.pwm_hz = 1000"])
    oe = profiles.load(path, ["pca9685.oe = 4"])
    assert oe.stop_pins() == (4,) and oe.motor_pins() == ()


def test_servo_pulse_is_an_angle_within_its_limits() -> None:
    servo = config.Servo(signal=18, left_deg=20.0, right_deg=30.0, us_per_deg=10.0)
    pulses = [servo.pulse_us(steer) for steer in (-1.0, -0.5, 0.0, 0.5, 1.0)]
    assert pulses == [1200.0, 1350.0, 1500.0, 1600.0, 1700.0]
    turned = msgspec.structs.replace(servo, invert=True)
    assert [turned.pulse_us(one) for one in (-1.0, 0.0, 1.0)] == [1800, 1500, 1300]
    for one in (servo, turned):
        assert one.deg(one.pulse_us(1.0)) == pytest.approx(20.0)


def test_l298n_names_its_enable() -> None:
    profile = profiles.load(paths.HARDWARE / "l298n.toml")
    assert profile.motor_pins() == (18, 17, 27, 25, 24, 23)
    assert profiles.parse(msgspec.to_builtins(profile)) == profile
    bench = profiles.load(BENCH, L298N)
    assert isinstance(bench.motors.steer, config.L298n)
    assert isinstance(bench.motors.drive, config.L298n)
    assert bench.motors.drive.max_volts == 3.0 and bench.motor_pins()[0] == 10


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"motrs": {}}, "unknown key motrs; did you mean motors?"),
        ({"gate": {"silense_s": 0.2}}, "did you mean gate.silence_s?"),
        ({"gate": {"xyz": 1}}, "known keys: blind"),
        (
            {"sensors": {"ultrasound": {"rear": {"triger": 1, "echo": 2}}}},
            "sensors.ultrasound.rear.triger; did you mean sensors.ultrasound.rear.trigger?",
        ),
        ({"lights": {"head": [17]}}, "GPIO 17 is already used by motors.drive.forward"),
        ({"lights": {"head": [5, 5]}}, "lights.head = 5: GPIO 5 is already used"),
        (
            {"sensors": {"ultrasound": {"rear": {"trigger": 24, "echo": 2}}}},
            "sensors.ultrasound.rear.trigger = 24: GPIO 24 is already used by motors.steer.forward",
        ),
        (
            {"lights": {"head": [5, 28]}},
            "lights.head[1] = 28: expected `int` <= 27: the BCM number of a GPIO",
        ),
        (motor(forward=40), "motors.drive.forward = 40: expected `int` <= 27: the BCM number"),
        (
            {"sensors": {"tof": {"front": {"power": 40}}}},
            "sensors.tof.front.power = 40: expected `int` <= 27: the BCM number of a GPIO",
        ),
        (
            {"sensors": {"tfmini": {"rear": {"address": 0x78}}}},
            "sensors.tfmini.rear.address = 120: expected `int` <= 119",
        ),
        ({"sensors": {"tof": {"front": 3}}}, "sensors.tof.front = 3: expected `object`"),
        ({"pins": {"port": 80}}, ">= 1024"),
        ({"camera": {"source": "bensh"}}, "stamped, strip, none; did you mean bench?"),
        ({"camera": {"width": "wide"}}, 'camera.width = "wide": expected `int`'),
        ({"battery": {"empty_v": 9.0}}, "expected below full_v = 8.4"),
        ({"car": {"name": ""}}, "car.name"),
        ({"car": {"name": "a b"}}, "car.name"),
        ({"gate": 3}, "gate"),
        ({"gate": {"blind": 3}}, "gate.blind"),
        (
            motor(driver="mx1580"),
            'driver = "mx1580": expected one of mx1508, l298n, motor-hat, servo, '
            "hat-servo, esc, hat-esc; did you mean mx1508?",
        ),
        (motor(driver="relay"), 'motors.drive.driver = "relay": expected one of mx1508'),
        (motor(driver=3), "motors.drive.driver"),
        (motor(driver=["mx1508"]), "motors.drive.driver"),
        (motor(forwards=17), "motors.drive.forwards; did you mean motors.drive.forward"),
        (motor(driver="l298"), "did you mean l298n?"),
        (motor(driver="l298n"), "motors.drive: object missing required field `enable`"),
        (motor(driver="l298n", enabel=18), "did you mean motors.drive.enable?"),
        (motor(driver="l298n", enable=8), ">= 9"),
        (motor(driver="l298n", enable=24), "24 is already used by motors.drive.enable"),
        (motor(enable=18), "unknown key motors.drive.enable; known keys: "),
        (
            motor(driver="l298n", enable=18) | {"battery": {"empty_v": 4.7}},
            "battery.empty_v = 4.7: expected at least 4.8, which the driver of motors.drive needs",
        ),
        ({"motors": {"drive": 3}}, "motors.drive"),
        ({"motors": 3}, "motors"),
        ({"i2c": {"backend": "linus"}}, "expected one of auto, pigpio, linux"),
        ({"depth": {"source": "usb"}}, "expected one of none, v4l2, bench"),
        ({"depth": {"width": 8}}, "depth.width"),
        ({"depth": {"fps": 9}}, "depth.fps"),
        (
            {"battery": {"address": 0x40}, "sensors": {"tof": {"a": {"address": 64}}}},
            "sensors.tof.a.address = 0x40: already used by battery",
        ),
    ],
)
def test_bad_profile_error_names_key_and_fault(more: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as fault:
        profiles.parse(minimal(**more))
    assert words in str(fault.value)


def test_empty_table_removes_all_entries() -> None:
    assert profiles.load(BENCH).sensors.tof
    bare = profiles.load(BENCH, ["sensors.tof = {}"]).sensors
    assert not bare.tof and bare.ultrasound


def test_overrides_change_single_values() -> None:
    profile = profiles.load(BENCH, ["pins.port = 8889", 'camera.command = ["a", "b c"]'])
    assert profile.pins.port == 8889 and profile.pins.host == "127.0.0.1"
    assert profile.camera.command == ("a", "b c")


@pytest.mark.parametrize(
    ("text", "words"),
    [("[car", "not TOML"), ("[car]\nname = 'A'\n", "motors"), (b"\xff", "not TOML")],
)
def test_errors_name_the_file(tmp_path: Path, text: str | bytes, words: str) -> None:
    path = tmp_path / "car.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(ConfigError) as fault:
        profiles.load(path)
    assert str(fault.value).startswith(str(path)) and words in str(fault.value)


def test_missing_file_and_malformed_override_are_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file.*profile list"):
        profiles.load(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="expected KEY=VALUE"):
        profiles.load(BENCH, ["pins.port"])


def test_rig_loops_cover_all_motor_pins_or_none() -> None:
    rig = BENCH.with_name("rig.toml")
    with pytest.raises(ConfigError, match=r"rig.loops: 2 inputs; expected 4.*17, GPIO 27"):
        profiles.load(rig, ["rig.loops = [5, 6]"])
    assert profiles.load(rig, ["rig.loops = []"]).rig.loops == ()


def test_rig_loops_have_one_pin_for_an_esc_on_a_pca9685() -> None:
    car = paths.HARDWARE / "rc-esc-hat.toml"
    assert profiles.load(car, ["rig.loops = [5]"]).rig.loops == (5,)
    with pytest.raises(ConfigError, match="rig.loops: 2 inputs; expected 1, .* output 0 of the"):
        profiles.load(car, ["rig.loops = [5, 6]"])
