"""`fpvcar stop`: pins, process, and the stop request."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest

from fpvcar.cli import command_line, stop
from fpvcar.config import ConfigError
from fpvcar.runtime import paths
from fpvcar.wheels.pins_off_client import SOCKET, write_pins

BENCH = paths.HARDWARE / "bench.toml"
BENCH_PINS = [17, 23, 24, 27]
LISTEN = """
import signal, socket, sys
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind(sys.argv[1])
listener.listen(4)
print("listens", flush=True)
signal.pause()
"""


NO_REGISTERS = Mock(return_value=1)


@pytest.fixture
def off() -> Mock:
    """Stand-in for the registers and the I2C bus; its arguments are GPIOs, chips and PWM."""
    return Mock(return_value=0)


@pytest.fixture
def wheels(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """Start a process that only listens at wheels.sock."""
    process = subprocess.Popen(
        [sys.executable, "-IS", "-c", LISTEN, str(tmp_path / "wheels.sock")],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "listens\n"
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize(
    "words", [["stop"], ["run"], ["wheels"], ["network", "serve"]], ids=" ".join
)
def test_car_verbs_without_profile_take_the_installed_profile(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_line, "ROOT", tmp_path)
    assert command_line.parser().parse_args(words).profile == BENCH
    own = tmp_path / "etc/fpvcar/car.toml"
    own.parent.mkdir(parents=True)
    own.touch()
    assert command_line.parser().parse_args(words).profile == own
    assert command_line.parser().parse_args(["bench"]).profile == BENCH


def test_unreadable_car_profile_is_not_replaced_by_the_bench(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> bool:
        raise PermissionError(f"{path}")

    monkeypatch.setattr(command_line, "ROOT", tmp_path)
    monkeypatch.setattr(Path, "exists", refuse)
    assert command_line.car_profile() == tmp_path / "etc/fpvcar/car.toml"


def test_stop_takes_published_pins_and_profile_pins(tmp_path: Path, off: Mock) -> None:
    write_pins(tmp_path, (5, 6), ((1, 0x60),))
    assert stop.run(BENCH, [], [tmp_path, tmp_path / "gone"], off) == 0
    off.assert_called_once_with(sorted([5, 6, *BENCH_PINS]), [(1, 0x60)], [])


def test_stop_takes_published_and_profile_pwm_which_is_never_an_input(
    tmp_path: Path, off: Mock
) -> None:
    """An input is cut off from its PWM until a reboot."""
    write_pins(tmp_path, (5,), (), ((18, "0-0040"),))
    words = ('pins.backend = "linux"', "pins.pwm = [12, 13]", "buttons = {}", "lights = {}")
    drive = ("motors.drive.forward = 12", "motors.drive.reverse = 13")
    assert stop.run(BENCH, [*words, *drive], [tmp_path], off) == 0
    pwm = [(12, "auto"), (13, "auto"), (18, "0-0040")]
    off.assert_called_once_with([5, 23, 24], [], pwm)


def test_stop_with_a_refused_profile_takes_the_published_pins(
    tmp_path: Path, off: Mock, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ConfigError):
        stop.run(BENCH, ["motors.nonsense = 1"], [tmp_path], off)
    write_pins(tmp_path, (), ((1, 0x60),))
    assert stop.run(BENCH, ["motors.nonsense = 1"], [tmp_path], off) == 0
    off.assert_called_once_with([], [(1, 0x60)], [])
    assert "nonsense" in capsys.readouterr().err


def test_stop_with_a_damaged_pins_file_takes_profile_pins(
    tmp_path: Path, off: Mock, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "motor-pins").write_text("what\n")
    assert stop.run(BENCH, [], [tmp_path], off) == 0
    off.assert_called_once_with(BENCH_PINS, [], [])
    assert "motor-pins" in capsys.readouterr().err


def test_stop_without_registers_kills_wheels_and_asks_helper(
    tmp_path: Path, wheels: "subprocess.Popen[str]"
) -> None:
    with socket.socket(socket.AF_UNIX) as helper:
        helper.bind(str(tmp_path / SOCKET))
        helper.listen()
        helper.setblocking(False)
        assert stop.run(BENCH, [], [tmp_path], NO_REGISTERS) == 0
        connection, _ = helper.accept()
        with connection:
            assert int(connection.recv(32)) == wheels.pid, "a newer one may go on"
    assert wheels.wait(20.0) == -signal.SIGKILL


def test_stop_kills_hung_wheels(tmp_path: Path, wheels: "subprocess.Popen[str]") -> None:
    os.kill(wheels.pid, signal.SIGSTOP)
    assert stop.run(BENCH, [], [tmp_path], NO_REGISTERS) == 0
    assert wheels.wait(20.0) == -signal.SIGKILL


def test_stop_skips_a_foreign_runtime_directory(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse() -> Path:
        raise OSError("owner 7, mode 0777")

    monkeypatch.setattr(paths, "runtime_directory", refuse)
    assert stop.runtimes() == [Path("/run/fpvcar")]
    assert "owner 7" in capsys.readouterr().err


def test_stop_without_any_effect_fails_with_the_next_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / SOCKET).touch()  # a file without a listener
    (tmp_path / "wheels.sock").touch()
    assert stop.run(BENCH, [], [tmp_path], NO_REGISTERS) == 1
    assert "sudo systemctl stop fpvcar-wheels" in capsys.readouterr().err
