"""Section [mqtt] of a station's settings: addresses, and values that do not go together."""

from pathlib import Path

import pytest

from fpvcar.config import ConfigError, Mqtt
from fpvstation.settings import load


def loaded(folder: Path, *lines: str) -> Mqtt:
    path = folder / "station.toml"
    path.write_text("\n".join(["[mqtt]", *lines]))
    return load(path).mqtt


@pytest.mark.parametrize(
    ("broker", "address"),
    [
        ("mqtts://nas.local", ("nas.local", 8883, True)),
        ("mqtt://192.168.1.9:1884/", ("192.168.1.9", 1884, False)),
        ("mqtts://[fd00::1]:443", ("fd00::1", 443, True)),
    ],
)
def test_broker_is_a_url(tmp_path: Path, broker: str, address: tuple[str, int, bool]) -> None:
    assert loaded(tmp_path, f'broker = "{broker}"').address == address


def test_commands_and_pictures_are_off_by_default(tmp_path: Path) -> None:
    settings = loaded(tmp_path, 'broker = "mqtt://nas"')
    assert not settings.stop and not settings.stills
    assert loaded(tmp_path).broker == ""


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (['broker = "nas.local"'], 'mqtt.broker = "nas.local" refused: expected mqtts://HOST'),
        (['broker = "http://nas"'], "expected mqtts://HOST or mqtt://HOST:PORT"),
        (['broker = "mqtt://nas:99999"'], "expected mqtts://HOST or mqtt://HOST:PORT"),
        (['broker = "mqtt://me:secret@nas"'], "user and password_file are keys of their own"),
        (['broker = "mqtt://nas/topic"'], "expected mqtts://HOST"),
        (['broker = "mqtt://nas"', 'ca = "/ca.crt"'], 'write broker = "mqtts://HOST"'),
        (['broker = "mqtts://nas"', 'password_file = "/p"'], "without mqtt.user"),
        (['prefix = "cars/#"'], "prefix"),
        (['prefix = ""'], "prefix"),
        (['discovery = "home assistant"'], "discovery"),
        (["steer = true"], "steer"),
        (['stop = "yes"'], "stop"),
    ],
)
def test_invalid_settings_are_refused(tmp_path: Path, lines: list[str], reason: str) -> None:
    with pytest.raises(ConfigError) as refused:
        loaded(tmp_path, *lines)
    assert reason in str(refused.value)
