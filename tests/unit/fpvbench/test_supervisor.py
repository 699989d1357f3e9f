"""Messages of the bench: its address, and start failures."""

import asyncio
import logging
import os
import subprocess
from pathlib import Path

import pytest

from fpvbench import supervisor, units
from fpvcar.config import ConfigError, profiles
from fpvcar.runtime import paths


def test_unanswered_bench_logs_its_address(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(supervisor, "READY_S", 0.01)
    options = supervisor.Options(Path(), (), "127.0.0.1", 1, 1, False, True)
    with caplog.at_level(logging.ERROR):
        asyncio.run(supervisor._greet(options, "car"))
    assert "nothing answers at 127.0.0.1:1" in caplog.text


def test_units_near_the_pins_get_session_priority() -> None:
    """If sessions are groups of the scheduler, the nice value of a process has little effect."""
    said = subprocess.run(
        ["sh", "-c", "nice; cat /proc/self/autogroup || true"],
        preexec_fn=lambda: units.leash(supervisor.NEAR_PINS),
        start_new_session=True,
        capture_output=True,
        text=True,
        check=True,
    )
    nice, *group = said.stdout.splitlines()
    may = os.geteuid() == 0
    assert int(nice) == (supervisor.NEAR_PINS if may else os.nice(0))
    for line in group:
        assert line.endswith(f" nice {supervisor.NEAR_PINS if may else 0}")


@pytest.mark.parametrize("wire", ["22", "22,22", "22,32", "a,b", ""])
def test_invalid_wire_is_refused(wire: str) -> None:
    profile = paths.HARDWARE / "bench.toml"
    options = supervisor.Options(profile, (), "127.0.0.1", 1, 1, False, True, ("5,6", wire))
    with pytest.raises(ConfigError, match="expected two GPIO, as in --wire 22,27"):
        asyncio.run(supervisor.run(options))


@pytest.mark.parametrize("backend", ["auto", "linux", "pigpio"])
def test_bench_on_a_pi_drives_no_real_pins(monkeypatch: pytest.MonkeyPatch, backend: str) -> None:
    asked = (f'pins.backend = "{backend}"',)
    path = paths.HARDWARE / "bench.toml"

    def driven() -> str:
        emulated = supervisor._emulated(profiles.load(path, asked))
        return profiles.load(path, (*asked, *emulated)).pins.backend

    monkeypatch.delenv(supervisor.PLAYED_PINS, raising=False)
    assert driven() == "pigpio"
    monkeypatch.setenv(supervisor.PLAYED_PINS, "1")
    assert driven() == backend


def test_bench_replaces_the_kernel_pwm_of_a_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(supervisor.PLAYED_PINS, raising=False)
    path, asked = (
        paths.HARDWARE / "mx1508-servo.toml",
        ('pins.backend = "linux"', "pins.pwm = [18]"),
    )
    emulated = supervisor._emulated(profiles.load(path, asked))
    assert profiles.load(path, (*asked, *emulated)).pins.pwm == ()


def test_pigpiod_gets_its_wires_and_its_pipes(tmp_path: Path) -> None:
    profile = profiles.load(paths.HARDWARE / "bench.toml", ())
    options = supervisor.Options(
        Path(), (), "127.0.0.1", 1, 1, False, True, ("22,27", "5,6"), tmp_path / "mine"
    )
    argv = supervisor.Bench(profile, options, tmp_path)._pigpiod_options()
    assert argv[4:8] == ["--pipe-dir", str(tmp_path / "mine"), "--wire=22,27", "--wire=5,6"]
    plain = supervisor.Options(Path(), (), "127.0.0.1", 1, 1, False, True)
    argv = supervisor.Bench(profile, plain, tmp_path)._pigpiod_options()
    assert argv[4:6] == ["--pipe-dir", str(tmp_path / "dev")]


@pytest.mark.parametrize(
    ("host", "port", "pins_port", "words"),
    [
        ("127.0.0.1", 9000, 9000, "for http; try make run PIGPIO_PORT=8888"),
        ("0.0.0.0", 9000, 9001, "for https; try make run PIGPIO_PORT=8888"),
        ("0.0.0.0", 8888, 8889, "for https; try make run PIGPIO_PORT=8890"),
    ],
)
def test_pins_port_that_the_page_has_is_refused(
    host: str, port: int, pins_port: int, words: str
) -> None:
    with pytest.raises(ConfigError, match=f"pins.port = {pins_port}: .*{words}"):
        supervisor.refuse_shared_port(host, port, pins_port)


@pytest.mark.parametrize(
    ("host", "port", "pins_port"),
    [("127.0.0.1", 8887, 8888), ("0.0.0.0", 8080, 8888), ("0.0.0.0", 8889, 8888)],
)
def test_pins_port_that_is_free_is_taken(host: str, port: int, pins_port: int) -> None:
    supervisor.refuse_shared_port(host, port, pins_port)


def test_bench_with_the_page_s_port_for_pins_ends_before_it_starts() -> None:
    options = supervisor.Options(
        paths.HARDWARE / "bench.toml", ("pins.port = 9001",), "0.0.0.0", 9000, 1, False, True
    )
    with pytest.raises(ConfigError, match="pins.port = 9001"):
        asyncio.run(supervisor.run(options))
