"""Releasing pins at the registers: against a model of both kinds of chip."""

import mmap
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fpvcar.__main__ import main
from fpvcar.config import profiles
from fpvcar.devices import backends
from fpvcar.devices.linux import pins_off
from fpvcar.runtime import paths

OUT = 1
FLOATS, DOWN, UP = "floats", "down", "up"


class Chip:
    """GPIO block: function selects are memory; the pulls of the BCM2835 latch when a clock bit
    rises while GPPUD holds them (BCM2835 ARM Peripherals, 6.1)."""

    def __init__(self, stubborn: int = 0) -> None:
        self.words = [0x5A5A5A5A] * (pins_off.REGISTERS_B // 4)
        self.words[pins_off.GPPUD : pins_off.GPPUDCLK + 2] = [0, 0, 0]
        self.pulls = dict.fromkeys(range(54), FLOATS)
        self.stubborn = stubborn
        """Number of writes of function selects that a daemon undoes."""

    def __getitem__(self, index: int, /) -> int:
        return self.words[index]

    def __setitem__(self, index: int, value: int, /) -> None:
        assert 0 <= value < 1 << 32
        if index < 6 and self.stubborn:
            self.stubborn -= 1
            return
        clock = index - pins_off.GPPUDCLK
        if clock in (0, 1):
            for bit in range(32):
                if value >> bit & 1:
                    pull = (FLOATS, DOWN, UP)[self[pins_off.GPPUD]]
                    self.pulls[clock * 32 + bit] = pull
        self.words[index] = value

    def function(self, gpio: int) -> int:
        return self[gpio // 10] >> gpio % 10 * 3 & 7

    def new_pull(self, gpio: int) -> int:
        return self[0xE4 // 4 + gpio // 16] >> gpio % 16 * 2 & 3


PINS = [17, 27, 24, 40]


def release(chip: Any, has_new_pulls: bool) -> None:
    pins_off.write(chip, PINS, has_new_pulls)


def untouched(before: Chip, after: Chip) -> None:
    for gpio in set(range(54)) - set(PINS):
        assert after.function(gpio) == before.function(gpio), gpio
        assert after.pulls[gpio] == FLOATS


@pytest.mark.parametrize("stubborn", [0, 5])
def test_old_chip_pulls_down_by_its_clock_despite_writes_of_a_daemon(stubborn: int) -> None:
    chip = Chip(stubborn)
    release(chip, has_new_pulls=False)
    assert [chip.function(gpio) for gpio in PINS] == [0, 0, 0, 0]
    assert [chip.pulls[gpio] for gpio in PINS] == [DOWN] * 4
    assert chip[0x94 // 4] == chip[0x98 // 4] == chip[0x9C // 4] == 0
    untouched(Chip(), chip)


def test_new_chip_pulls_down_by_two_bits_a_pin() -> None:
    before, chip = Chip(), Chip()
    release(chip, has_new_pulls=True)
    assert [chip.function(gpio) for gpio in PINS] == [0, 0, 0, 0]
    assert [chip.new_pull(gpio) for gpio in PINS] == [2] * 4
    for gpio in set(range(54)) - set(PINS):
        assert chip.new_pull(gpio) == before.new_pull(gpio)
    untouched(before, chip)


def test_endless_daemon_writes_raise_after_pulls_are_set() -> None:
    chip = Chip(stubborn=1000)
    with pytest.raises(OSError, match="17, 27.*no input after 3 tries"):
        release(chip, has_new_pulls=False)
    assert [chip.pulls[gpio] for gpio in PINS] == [DOWN] * 4


@pytest.fixture
def pi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Make a folder with a Pi 4's registers, all ones, and its `compatible` file."""
    (tmp_path / "gpiomem").write_bytes(b"\xff" * mmap.PAGESIZE)
    (tmp_path / "compatible").write_bytes(b"raspberrypi,4-model-b\0brcm,bcm2711\0")
    monkeypatch.setattr(pins_off, "DEVICE", str(tmp_path / "gpiomem"))
    monkeypatch.setattr(pins_off, "COMPATIBLE", str(tmp_path / "compatible"))
    yield tmp_path


def register(pi: Path, offset: int) -> int:
    found: int = struct.unpack_from("<I", (pi / "gpiomem").read_bytes(), offset)[0]
    return found


def test_program_reads_pin_list_and_writes_the_device(
    pi: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (pi / "motor-pins").write_text("17 27\n")
    assert pins_off.main(str(pi / "motor-pins")) == 0
    assert register(pi, 0x04) == 0xFFFFFFFF & ~(7 << 21)
    assert register(pi, 0x08) == 0xFFFFFFFF & ~(7 << 21)
    assert register(pi, 0xE8) == 0xFFFFFFFF & ~(1 << 2) & ~(1 << 22)
    assert (pi / "gpiomem").stat().st_size == mmap.PAGESIZE
    assert "inputs now: GPIO 17 27" in capsys.readouterr().err


def test_stop_lets_go_of_every_pin_that_moves_the_car(pi: Path) -> None:
    assert main(["stop", f"--profile={paths.HARDWARE / 'l298n.toml'}"]) == 0
    inputs = {gpio for gpio in range(54) if not register(pi, gpio // 10 * 4) >> gpio % 10 * 3 & 7}
    assert inputs == {18, 17, 27, 25, 24, 23}


def test_program_without_taken_pins_writes_nothing(
    pi: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pins_off.main(str(pi / "motor-pins")) == 0
    assert "no pin was taken" in capsys.readouterr().err
    (pi / "motor-pins").write_text("\n")
    assert pins_off.main(str(pi / "motor-pins")) == 0
    assert (pi / "gpiomem").read_bytes() == b"\xff" * mmap.PAGESIZE


def test_unreadable_pin_list_is_reported(pi: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (pi / "motor-pins").mkdir()
    assert pins_off.main(str(pi / "motor-pins")) == 1
    assert "group fpvcar" in capsys.readouterr().err


HOLD = "from fpvcar.devices.linux.gpio import take_hold; hold = take_hold(Path(sys.argv[1]))"
READ = "import fcntl; file = open(sys.argv[1], 'a+'); fcntl.lockf(file, fcntl.LOCK_SH)"


@contextmanager
def holder(lock: Path, code: str = HOLD) -> Iterator["subprocess.Popen[str]"]:
    """Start a process that holds the pins, as a `wheels` on the kernel's pins does."""
    code = f"import sys; from pathlib import Path\n{code}; print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(lock)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout and process.stdout.readline() == "\n"
        yield process
        process.kill()


def is_off(pi: Path, request: bytes) -> bool:
    """Return whether the helper releases GPIO 17 at a request."""
    (pi / "motor-pins").write_text("17")
    status = pins_off.main(str(pi / "motor-pins"), request)
    off = register(pi, 0x04) != 0xFFFFFFFF
    assert status == (0 if off else pins_off.NEWER)
    return off


def test_late_helper_leaves_the_pins_of_a_newer_wheels(
    pi: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The kernel would not report that they are inputs: the car would stand until a restart."""
    with holder(pi / pins_off.HOLD) as newer:
        assert not is_off(pi, b"%d" % os.getpid())
    assert f"newer wheels, process {newer.pid}," in capsys.readouterr().err
    assert is_off(pi, b"%d" % os.getpid()), "it has been killed"


@pytest.mark.parametrize("request_of", [b"%d", b"", b"8x"])
def test_helper_stops_a_hung_holder_and_in_doubt(pi: Path, request_of: bytes) -> None:
    with holder(pi / pins_off.HOLD) as hung:
        os.kill(hung.pid, signal.SIGSTOP)
        assert is_off(pi, request_of.replace(b"%d", b"%d" % hung.pid))


def test_helper_without_a_readable_lock_stops(pi: Path) -> None:
    assert is_off(pi, b"812")
    (pi / pins_off.HOLD).mkdir()
    assert is_off(pi, b"812")


def test_lock_for_reading_does_not_keep_the_helper_from_stopping(pi: Path) -> None:
    """Any program of the group may take it."""
    with holder(pi / pins_off.HOLD, READ):
        assert is_off(pi, b"812")


@pytest.mark.parametrize("text", ["54", "-1", "17 x", "17,27"])
def test_invalid_pin_is_refused(pi: Path, text: str) -> None:
    (pi / "motor-pins").write_text(text)
    assert pins_off.main(str(pi / "motor-pins")) == 1
    assert (pi / "gpiomem").read_bytes() == b"\xff" * mmap.PAGESIZE


@pytest.mark.parametrize(
    ("compatible", "says"),
    [
        (b"raspberrypi,5-model-b\0brcm,bcm2712\0", r"bcm2712: supported are"),
        (b"acme,board\0", "no chip of a Raspberry Pi: supported"),
    ],
)
def test_unknown_chip_is_not_written_to(pi: Path, compatible: bytes, says: str) -> None:
    (pi / "compatible").write_bytes(compatible)
    with pytest.raises(OSError, match=says):
        pins_off.let_go([17])
    assert (pi / "gpiomem").read_bytes() == b"\xff" * mmap.PAGESIZE


@pytest.mark.parametrize(
    ("host", "profile", "frees"),
    [
        ("127.0.0.1", "mx1508.toml", True),
        ("localhost", "mx1508.toml", True),
        ("10.0.0.9", "mx1508.toml", False),
        ("127.0.0.1", "motor-hat.toml", False),
    ],
)
def test_wheels_frees_the_pins_of_its_own_computer(
    pi: Path, host: str, profile: str, frees: bool
) -> None:
    before = (pi / "gpiomem").read_bytes()
    known = profiles.load(paths.HARDWARE / profile, [f'pins.host = "{host}"'])
    assert backends.pin_release(known)() == ""
    assert ((pi / "gpiomem").read_bytes() != before) == frees


def test_wheels_says_why_pins_cannot_be_freed(pi: Path) -> None:
    (pi / "gpiomem").unlink()
    free = backends.pin_release(profiles.load(paths.HARDWARE / "mx1508.toml"))
    assert "is this a Raspberry Pi?" in free()
    with pytest.raises(OSError, match="is this a Raspberry Pi"):
        pins_off.let_go([17])


def test_hat_is_switched_off_by_one_byte(pi: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pins of the HAT fail: either remaining way stops the car."""
    bus, asked = pi / "i2c-1", list[int]()
    bus.write_bytes(b"")
    monkeypatch.setattr(pins_off, "I2C", str(pi / "i2c-{}"))
    monkeypatch.setattr(pins_off, "DEVICE", str(pi / "none"))
    monkeypatch.setattr(
        "fcntl.ioctl", lambda fd, request, address: asked.extend((request, address))
    )
    (pi / "motor-pins").write_text("4 i2c-1:0x60\n")
    assert pins_off.main(str(pi / "motor-pins")) == 1
    assert bus.read_bytes() == b"\xfd\x10" and asked == [0x0706, 0x60]
    (pi / "motor-pins").write_text("i2c-7:0x60\n")
    assert pins_off.main(str(pi / "motor-pins")) == 1, "there is no such bus"
    (pi / "motor-pins").write_text("i2c-x\n")
    assert pins_off.main(str(pi / "motor-pins")) == 1
