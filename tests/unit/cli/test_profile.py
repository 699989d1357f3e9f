"""`fpvcar profile`: shipped profiles, complete profiles, profiles that fit this board."""

import re
import tomllib
from collections.abc import Collection, Sequence
from pathlib import Path

import pytest
from testkit.command import Command

from fpvcar.calibration.export import with_key
from fpvcar.cli import profile
from fpvcar.cli.profile import propose
from fpvcar.config import ConfigError, MotorHat, Mx1508, Profile, profiles
from fpvcar.devices import backends

PI_4, PI_5 = "Raspberry Pi 4 Model B Rev 1.4", "Raspberry Pi 5 Model B Rev 1.0"
ZERO, ZERO_2 = "Raspberry Pi Zero W Rev 1.1", "Raspberry Pi Zero 2 W Rev 1.0"


def board(root: Path, model: str) -> Path:
    (root / "proc/device-tree").mkdir(parents=True)
    (root / "proc/device-tree/model").write_bytes(model.encode() + b"\0")
    return root


def nobody(bus: int, addresses: Sequence[int]) -> Collection[int]:
    return ()


def proposed(model: str, *answering: int) -> Profile:
    return profiles.parse(tomllib.loads(propose(model, answering).toml))


def test_list_names_each_profile_with_a_sentence(command: Command) -> None:
    said = command("profile", "list").out
    for name in ("bench", "mx1508", "mx1508-servo", "l298n", "motor-hat", "zero-w"):
        assert f"\n{name} " in f"\n{said}"
    assert "A car with a motor a side and nothing that steers" in said


def test_show_prints_a_profile_with_its_pins(command: Command) -> None:
    said = command("profile", "show", "l298n").out
    assert 'name = "Elbow"' in said and "# GPIO 18  motors.drive.enable\n" in said
    said = command("profile", "show", "nope", status=2).err
    assert re.search("nope: No such file .* profile list", said)


def test_check_names_warnings_and_refused_files(tmp_path: Path, command: Command) -> None:
    said = command("profile", "check", "mx1508", "mx1508-servo").out
    assert said.count(": valid\n") == 2
    assert "motors.steer.signal = 18: also used by sound, if it is on" in said
    assert "mx1508.toml: warning: motors.drive.pwm_hz = 4000: limited to 100 Hz" in said
    for size, sensor in (("2304x1296:10", "imx708_wide"), ("1640x1232:10", "imx219")):
        assert re.search(rf"\n{sensor} .* {size} .* ms\n", said)
    bad = tmp_path / "bad.toml"
    bad.write_text('[car]\nname = "A"\n')
    assert f"{bad}: " in command("profile", "check", "l298n", bad, status=1).err
    assert "check: expected" in command("profile", "check", status=2).err


def test_check_warns_of_motors_that_are_not_driven_without_a_resistor(
    tmp_path: Path, command: Command
) -> None:
    """The profile is valid: the car starts, and only refuses to move."""
    said = command("profile", "check", "mx1508", "--root", tmp_path).out
    text, fitted = profile.shipped()["mx1508"].read_text(), tmp_path / "fitted.toml"
    for motor in ("drive", "steer"):
        assert f"mx1508.toml: warning: motors.{motor} is not driven: PWM pulses at 100 Hz" in said
        text = with_key(text, f"motors.{motor}.resistor_ohm", "2.2")
    assert said.count("a resistor of 2.2 Ω for 4 W") == 2 and "mx1508.toml: valid\n" in said
    fitted.write_text(text)
    assert "is not driven" not in command("profile", "check", fitted, "--root", tmp_path).out


@pytest.mark.parametrize(
    ("model", "lines", "valid"),
    [
        (PI_5, 'backend = "pigpio"', False),
        ("Raspberry Pi Compute Module 5 Rev 1.0", 'backend = "pigpio"', False),
        ("Raspberry Pi 500 Rev 1.0", 'backend = "pigpio"', False),
        (PI_5, 'backend = "pigpio"\nhost = "192.168.1.9"', True),
        (PI_5, 'backend = "linux"', True),
        (PI_5, 'backend = "auto"', True),
        (PI_4, 'backend = "pigpio"', True),
    ],
)
def test_check_refuses_pigpiod_on_a_pi_5(
    tmp_path: Path, command: Command, model: str, lines: str, valid: bool
) -> None:
    car = tmp_path / "car.toml"
    car.write_text(f"{profile.shipped()['mx1508'].read_text()}\n[pins]\n{lines}\n")
    said = command(
        "profile", "check", car, "--root", board(tmp_path, model), status=0 if valid else 1
    )
    reason = f'pins.backend = "pigpio": pigpiod does not support the {model}; expected "linux"'
    assert (f"{car}: {reason}" in said.err) is not valid


def test_propose_uses_the_hat_on_the_bus(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[tuple[int, Sequence[int]]] = []

    def probe(bus: int, addresses: Sequence[int]) -> Collection[int]:
        asked.append((bus, addresses))
        return [0x6F]

    card = board(tmp_path, PI_4)
    (card / "dev").mkdir()
    (card / "dev/i2c-1").touch()
    assert profile.run("propose", [], card, probe) == 0
    said = capsys.readouterr()
    assert "no I2C bus" not in said.err
    assert f"this is a {PI_4}\n" in said.err and "0x6f: motor-hat" in said.err
    assert asked == [(1, (0x60, 0x6F, 0x40, 0x41, 0x44, 0x45))]
    made = profiles.parse(tomllib.loads(said.out))
    assert made.pca9685.address == 0x6F and isinstance(made.motors.drive, MotorHat)


def test_propose_without_the_bus_says_how_to_enable_i2c(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """State of a fresh Raspberry Pi OS: I2C is off until setup."""
    assert profile.run("propose", [], board(tmp_path, PI_4), nobody) == 0
    said = capsys.readouterr().err
    assert said.startswith("no I2C bus to probe for a HAT: enable I2C: sudo raspi-config")


def test_propose_fits_the_profile_to_board_and_meter() -> None:
    made = proposed(ZERO_2)
    assert isinstance(made.motors.drive, Mx1508) and made.camera.fps == 30
    assert made.battery.address is None
    assert "else one of differential, l298n, " in " ".join(propose(ZERO_2, ()).reasons)
    assert proposed(PI_4, 0x41).battery.address == 0x41
    assert proposed(PI_5, 0x60, 0x40).battery.address == 0x40
    assert proposed(ZERO).camera.fps == 15, "it has a single core"
    assert isinstance(proposed(PI_5).motors.drive, Mx1508)


@pytest.mark.parametrize("address", [0x40, 0x41])
def test_propose_takes_a_servo_board_for_no_meter(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], address: int
) -> None:
    """A PCA9685 and an INA219 have addresses in common; only the chip itself tells."""

    def boards(bus: int, addresses: Sequence[int]) -> Collection[int]:
        assert (bus, addresses) == (1, [0x40, 0x41])
        return [address]

    card = board(tmp_path, PI_4)
    assert profile.run("propose", [], card, lambda *_: [0x40, 0x41], boards) == 0
    said = capsys.readouterr()
    assert f"a PCA9685 answers at {address:#x}: rc-esc-hat" in said.err
    made = profiles.parse(tomllib.loads(said.out))
    assert made.pca9685.address == address and made.motors.esc is not None
    assert made.battery.address == 0x40 + 0x41 - address


def test_propose_prefers_a_motor_hat_to_a_servo_board() -> None:
    made = profiles.parse(tomllib.loads(propose(PI_4, (0x60, 0x40), (0x40,)).toml))
    assert made.pca9685.address == 0x60 and isinstance(made.motors.drive, MotorHat)
    assert made.battery.address is None


def test_propose_without_a_pi_points_to_the_bench(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no Raspberry Pi; without one: fpvcar bench"):
        profile.run("propose", [], tmp_path, nobody)


def test_missing_i2c_bus_has_no_answering_addresses() -> None:
    assert backends.answering(250, (0x40, 0x60)) == []
    assert backends.pca9685s(250, (0x40, 0x60)) == []
