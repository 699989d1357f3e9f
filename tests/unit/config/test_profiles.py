"""Profiles: bounds are kept, strangers refused by name, pins used once."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from fpvcar import config, paths
from fpvcar.config import ConfigError, profiles

BENCH = paths.HARDWARE / "bench.toml"
L298N = (
    'motors.drive.driver = "l298n"', "motors.drive.enable = 10",
    'motors.steer.driver = "l298n"', "motors.steer.enable = 11",
)  # fmt: skip
"""The bench's car behind another chip."""


def minimal(**more: Any) -> dict[str, Any]:
    return {
        "car": {"name": "Test"},
        "motors": {
            "drive": {"forward": 17, "reverse": 27},
            "steer": {"forward": 24, "reverse": 23},
        },
        **more,
    }


def test_the_bench_profile_is_wired_as_its_predecessor() -> None:
    profile = profiles.load(BENCH)
    assert profile.motor_pins() == (17, 27, 24, 23)
    assert profile.lights.head == (5, 6) and profile.lights.rear == (13,)
    assert profile.sensors.tof["front"].power == 4
    assert profile.server.first_takes_wheel


def test_the_bounds_are_the_promises_of_the_design() -> None:
    gate = profiles.parse(minimal()).gate
    assert (gate.silence_s, gate.stale_s) == (0.25, 0.2)
    with pytest.raises(ConfigError, match="0.25"):
        profiles.parse(minimal(gate={"silence_s": 0.3}))


def motor(**drive: Any) -> dict[str, Any]:
    """A drive motor with these keys, too."""
    motors = minimal()["motors"]
    return {"motors": {**motors, "drive": {**motors["drive"], **drive}}}


def test_a_motor_that_names_no_driver_is_behind_an_mx1508() -> None:
    raw = minimal()
    profile = profiles.parse(raw)
    assert isinstance(profile.motors.drive, config.Mx1508)
    assert raw == minimal(), "what was given is left alone"
    written = msgspec.to_builtins(profile)
    assert written["motors"]["steer"]["driver"] == "mx1508"
    assert profiles.parse(written) == profile == profiles.parse(minimal(**motor()))


def test_an_l298n_names_its_enable() -> None:
    profile = profiles.load(paths.HARDWARE / "l298n.toml")
    assert profile.motor_pins() == (18, 17, 27, 25, 24, 23)
    assert profiles.parse(msgspec.to_builtins(profile)) == profile
    bench = profiles.load(BENCH, L298N)
    assert isinstance(bench.motors.steer, config.L298n)
    assert bench.motors.drive.max_volts == 3.0 and bench.motor_pins()[0] == 10


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"motrs": {}}, "unknown key motrs; did you mean motors?"),
        ({"gate": {"silense_s": 0.2}}, "did you mean gate.silence_s?"),
        ({"gate": {"xyz": 1}}, "known here: blind"),
        (
            {"sensors": {"ultrasound": {"rear": {"triger": 1, "echo": 2}}}},
            "sensors.ultrasound.rear.triger; did you mean "
            "sensors.ultrasound.rear.trigger?",
        ),
        ({"lights": {"head": [17]}}, "GPIO 17 is already used by motors.drive.forward"),
        ({"lights": {"head": [5, 5]}}, "lights.head = 5: GPIO 5 is already used"),
        (
            {"sensors": {"ultrasound": {"rear": {"trigger": 24, "echo": 2}}}},
            "sensors.ultrasound.rear.trigger = 24: GPIO 24 is already used by "
            "motors.steer.forward",
        ),
        ({"lights": {"head": [28]}}, "<= 27"),
        ({"pins": {"port": 80}}, ">= 1024"),
        (
            {"camera": {"source": "bensh"}},
            "expected one of bench, stamped, strip, none",
        ),
        ({"camera": {"width": "wide"}}, "camera.width"),
        ({"battery": {"empty_v": 9.0}}, "expected below full_v = 8.4"),
        ({"car": {"name": ""}}, "car.name"),
        ({"car": {"name": "a b"}}, "car.name"),
        ({"gate": 3}, "gate"),
        ({"gate": {"blind": 3}}, "gate.blind"),
        (
            motor(driver="mx1580"),
            'driver = "mx1580": expected one of mx1508, l298n; did you mean mx1508?',
        ),
        (
            motor(driver="relay"),
            'motors.drive.driver = "relay": expected one of mx1508',
        ),
        (motor(driver=3), "motors.drive.driver"),
        (motor(driver=["mx1508"]), "motors.drive.driver"),
        (
            motor(forwards=17),
            "motors.drive.forwards; did you mean motors.drive.forward",
        ),
        (motor(driver="l298"), "did you mean l298n?"),
        (
            motor(driver="l298n"),
            "missing required field `enable`",
        ),
        (motor(driver="l298n", enabel=18), "did you mean motors.drive.enable?"),
        (motor(driver="l298n", enable=8), ">= 9"),
        (
            motor(driver="l298n", enable=24),
            "24 is already used by motors.drive.enable",
        ),
        (motor(enable=18), "unknown key motors.drive.enable; known here: "),
        (
            motor(driver="l298n", enable=18) | {"battery": {"empty_v": 4.7}},
            "battery.empty_v = 4.7: expected at least 4.8, which the driver of "
            "motors.drive needs",
        ),
        ({"motors": {"drive": 3}}, "motors.drive"),
        ({"motors": 3}, "motors"),
        ({"i2c": {"backend": "linus"}}, "expected one of pigpio, linux"),
        ({"depth": {"source": "usb"}}, "expected one of none, v4l2, bench"),
        ({"depth": {"width": 8}}, "depth.width"),
        ({"depth": {"fps": 9}}, "depth.fps"),
        (
            {"battery": {"address": 0x40}, "sensors": {"tof": {"a": {"address": 64}}}},
            "sensors.tof.a.address = 0x40: already that of battery",
        ),
    ],
)
def test_a_bad_profile_says_where_and_what(more: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as fault:
        profiles.parse(minimal(**more))
    assert said in str(fault.value)


def four(**red: Any) -> dict[str, dict[str, Any]]:
    """Buttons; `red` changes the first."""
    colours = ("red", "yellow", "green", "blue")
    shapes = ("circle", "star", "heart", "square")
    made: dict[str, dict[str, Any]] = {
        colour: {"colour": colour, "shape": shape, "button": 4 + at, "led": 18 + at}
        for at, (colour, shape) in enumerate(zip(colours, shapes, strict=True))
    }
    made["red"] |= red
    return made


@pytest.mark.parametrize(
    ("red", "said"),
    [
        (
            {"button": 17},
            "buttons.red.button = 17: GPIO 17 is already used by motors.drive.forward",
        ),
        ({"led": 19}, "buttons.yellow.led = 19: GPIO 19 is already used by buttons.re"),
        ({"led": 4}, "red.led = 4: GPIO 4 is already used by buttons.red.button"),
        ({"button": 2}, "GPIO 2 is already used by battery (SDA of I2C bus 1)"),
        ({"led": 3}, "GPIO 3 is already used by battery (SCL of I2C bus 1)"),
        ({"led": 1}, "GPIO 1 is already used by the EEPROM of a HAT (ID_SC)"),
        ({"led": 28}, "<= 27"),
        ({"colour": "pink"}, 'buttons.red.colour = "pink": expected one of red, y'),
        ({"shape": "cube"}, 'buttons.red.shape = "cube": expected one of circle'),
        ({"colour": "blue"}, 'blue.colour = "blue": already that of buttons.red'),
        ({"shape": "star"}, 'yellow.shape = "star": already that of buttons.red'),
        ({"brightness": 1.5}, "<= 1.0"),
        ({"color": "red"}, "buttons.red.color; did you mean buttons.red.colour?"),
    ],
)
def test_buttons_that_cannot_be(red: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as fault:
        profiles.parse(minimal(battery={"address": 0x40}, buttons=four(**red)))
    assert said in str(fault.value)


def test_four_to_six_buttons_or_none() -> None:
    assert len(profiles.parse(minimal(buttons=four())).buttons) == 4
    assert profiles.parse(minimal()).buttons == {}
    few = four()
    del few["red"]
    with pytest.raises(ConfigError, match="buttons: 3 of them; expected 4 to 6"):
        profiles.parse(minimal(buttons=few))
    more = {
        "purple": {"colour": "purple", "shape": "diamond"},
        "white": {"colour": "white", "shape": "triangle"},
    }
    six = profiles.parse(minimal(buttons=four() | more)).buttons
    assert len(six) == 6 and six["white"].led is None


def test_the_bus_pins_are_free_where_nothing_is_on_the_bus() -> None:
    assert profiles.parse(minimal(lights={"head": [2, 3]})).lights.head == (2, 3)
    with pytest.raises(ConfigError, match=r"used by sensors\.tof\.front \(SDA"):
        profiles.parse(minimal(lights={"head": [2]}, sensors={"tof": {"front": {}}}))


def test_indicators_share_no_pin() -> None:
    with pytest.raises(ConfigError, match="already used by lights.indicator_left"):
        profiles.parse(minimal(lights={"indicator_left": [5], "indicator_right": [5]}))


def test_an_empty_table_takes_all_away() -> None:
    assert profiles.load(BENCH).sensors.tof
    bare = profiles.load(BENCH, ["sensors.tof = {}"]).sensors
    assert not bare.tof and bare.ultrasound


@pytest.mark.parametrize(
    ("tofs", "words"),
    [
        ({"a": {"power": 4}, "b": {"power": 12}}, "a.address = 0x29: with 2 VL53L0X"),
        (
            {"front": {"power": 4}, "back": {"power": 12, "address": 0x30}},
            "front.address = 0x29: with 2 VL53L0X on bus 1 expected one of its own",
        ),
        (
            {"a": {"power": 4, "address": 48}, "b": {"power": 12, "address": 48}},
            "b.address = 0x30: already that of sensors.tof.a",
        ),
        (
            {"a": {"power": 4, "address": 0x31}, "b": {"address": 0x30}},
            "b has no power: with 2",
        ),
        ({"a": {"address": 0x30}}, "a.address = 0x30: without power .* expected 0x29"),
        ({"a": {}, "b": {"bus": 0, "address": 0x30}}, "b.address = 0x30: without"),
        ({"a": {"address": 0x78}}, "address"),
        ({"a": {"power": 17}}, "GPIO 17 is already used by"),
    ],
)
def test_range_sensors_that_cannot_be_told_apart(
    tofs: dict[str, object], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        profiles.parse(minimal(sensors={"tof": tofs}))


def test_two_buses_have_one_each_at_the_address_they_wake_with() -> None:
    tofs = {"front": {}, "back": {"bus": 0}}
    assert len(profiles.parse(minimal(sensors={"tof": tofs})).sensors.tof) == 2
    moved = {"front": {"power": 4, "address": 0x30}}
    assert profiles.parse(minimal(sensors={"tof": moved})).sensors.tof


SONAR = {"trigger": 5, "echo": 6}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            {"sensors": {"tof": {"front": {}}, "ultrasound": {"front": SONAR}}},
            "sensors.ultrasound.front: the name is already that of sensors.tof.front",
        ),
        (
            {"depth": {"source": "v4l2"}, "sensors": {"tof": {"depth": {}}}},
            "sensors.tof.depth: the name is already that of the depth camera",
        ),
        ({"sensors": {"tof": {"a b": {}}}}, "sensors.tof.a b: expected a name of"),
        ({"sensors": {"ultrasound": {"a/b": SONAR}}}, "letters, digits and -"),
        ({"sensors": {"ultrasound": {"a\n": SONAR}}}, "letters, digits and -"),
        ({"sensors": {"tof": {"": {}}}}, "letters, digits and -"),
        ({"sensors": {"tof": {"a" * 25: {}}}}, "at most 24"),
        ({"battery": {"nominal_v": 3.0}}, "battery.nominal_v = 3.0: expected 6.2 to"),
        ({"battery": {"nominal_v": 8.5}}, "expected 6.2 to 8.4, empty_v to full_v"),
    ],
)
def test_what_would_be_mixed_up(more: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as fault:
        profiles.parse(minimal(**more))
    assert said in str(fault.value)


def sonars(count: int) -> dict[str, Any]:
    free = [4, *range(5, 17), 18, 19]
    pins = zip(free[::2], free[1::2], strict=False)
    places = [{"trigger": trigger, "echo": echo} for trigger, echo in pins]
    return {"ultrasound": {f"s{at}": one for at, one in enumerate(places[:count])}}


@pytest.mark.parametrize("mode", ["warn", "limit"])
def test_a_round_of_ultrasound_is_not_older_than_the_guard_bears(mode: str) -> None:
    on = {"mode": mode}
    assert profiles.parse(minimal(sensors=sonars(5), guard=on))
    with pytest.raises(ConfigError) as fault:
        profiles.parse(minimal(sensors=sonars(6), guard=on))
    assert str(fault.value) == (
        "guard.stale_s = 0.2: a round of 6 sensors.ultrasound takes 0.217 s; "
        "expected at least that, or fewer of them"
    )
    assert profiles.parse(minimal(sensors=sonars(6), guard={**on, "stale_s": 0.22}))
    assert profiles.parse(minimal(sensors=sonars(6)))
    with pytest.raises(ConfigError, match="1 sensors.ultrasound takes 0.085 s"):
        profiles.parse(minimal(sensors=sonars(1), guard={**on, "stale_s": 0.08}))
    assert profiles.parse(minimal(guard={**on, "stale_s": 0.08})), "none"


def test_a_sensor_may_be_called_depth_where_no_camera_is() -> None:
    assert (
        "depth" in profiles.parse(minimal(sensors={"tof": {"depth": {}}})).sensors.tof
    )


def test_overrides_change_single_values() -> None:
    profile = profiles.load(
        BENCH, ["pins.port = 8889", 'camera.command = ["a", "b c"]']
    )
    assert profile.pins.port == 8889 and profile.pins.host == "127.0.0.1"
    assert profile.camera.command == ("a", "b c")


@pytest.mark.parametrize(
    ("text", "said"),
    [("[car", "not TOML"), ("[car]\nname = 'A'\n", "motors"), (b"\xff", "not TOML")],
)
def test_errors_name_the_file(tmp_path: Path, text: str | bytes, said: str) -> None:
    path = tmp_path / "car.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(ConfigError) as fault:
        profiles.load(path)
    assert str(fault.value).startswith(str(path)) and said in str(fault.value)


def test_an_absent_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        profiles.load(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="not TOML"):
        profiles.load(BENCH, ["pins.port"])
