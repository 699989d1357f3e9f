"""Profiles: bounds are kept, strangers refused by name, pins used once."""

from pathlib import Path
from typing import Any

import pytest

from fpvcar import config, paths
from fpvcar.config import ConfigError

BENCH = paths.HARDWARE / "bench.toml"


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
    profile = config.load(BENCH)
    assert profile.motor_pins() == (17, 27, 24, 23)
    assert profile.lights.head == (5, 6) and profile.lights.rear == (13,)
    assert profile.sensors.tof["front"].power == 4
    assert profile.server.first_takes_wheel


def test_the_bounds_are_the_promises_of_the_design() -> None:
    gate = config.parse(minimal()).gate
    assert (gate.silence_s, gate.stale_s) == (0.25, 0.15)
    with pytest.raises(ConfigError, match="0.25"):
        config.parse(minimal(gate={"silence_s": 0.3}))


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
    ],
)
def test_a_bad_profile_says_where_and_what(more: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as fault:
        config.parse(minimal(**more))
    assert said in str(fault.value)


def test_an_empty_table_takes_all_away() -> None:
    assert config.load(BENCH).sensors.tof
    bare = config.load(BENCH, ["sensors.tof = {}"]).sensors
    assert not bare.tof and bare.ultrasound


@pytest.mark.parametrize(
    ("tofs", "words"),
    [
        ({"a": {"power": 4}, "b": {"power": 12}}, "b.address = 0x29: already that of"),
        ({"a": {"power": 4}, "b": {"address": 0x30}}, "b has no power: with 2"),
        ({"a": {"address": 0x78}}, "address"),
        ({"a": {"power": 17}}, "GPIO 17 is already used by"),
    ],
)
def test_range_sensors_that_cannot_be_told_apart(
    tofs: dict[str, object], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        config.parse(minimal(sensors={"tof": tofs}))


def test_overrides_change_single_values() -> None:
    profile = config.load(BENCH, ["pins.port = 8889", 'camera.command = ["a", "b c"]'])
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
        config.load(path)
    assert str(fault.value).startswith(str(path)) and said in str(fault.value)


def test_an_absent_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        config.load(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="not TOML"):
        config.load(BENCH, ["pins.port"])
