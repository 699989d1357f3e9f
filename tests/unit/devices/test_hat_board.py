"""PCA9685 board: all outputs are switched off although the bus, OE or both do not answer."""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from testkit.pins.fake_pins import FakePins
from testkit.pins.hat import hat

from fpvcar.config import Profile, profiles
from fpvcar.devices import backends
from fpvcar.devices.i2c import I2cError, Open
from fpvcar.devices.motors import hat_board
from fpvcar.devices.motors.hat_board import DISABLED, HatBoard, Switch
from fpvcar.devices.pins import IoPins, PinsFault, PinsLost, PinsSilent
from fpvcar.runtime import paths

OE, PORT_1 = 4, 8


class OePins(FakePins):
    """Pins of OE; each write calls `heard` before it is answered or fails."""

    def __init__(self, heard: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self._heard = heard

    def write(self, gpio: int, level: int) -> None:
        self._heard()
        super().write(gpio, level)

    def close(self) -> None:
        pass


class Hat:
    """Chip with one output on, its wire, and a profile with or without OE."""

    def __init__(self, folder: Path) -> None:
        self.soc, self.wire = hat(folder)
        self.lock = folder / "guardian.lock"

    @contextmanager
    def buses(self) -> Iterator[Open]:
        yield lambda bus, address: self.wire

    def runs(self) -> bool:
        return bool(self.soc.hat.duty(PORT_1))


@pytest.fixture
def chip(tmp_path: Path) -> Hat:
    made = Hat(tmp_path)
    made.wire.write(0x00, b"\x20")
    made.wire.write(0x06 + 4 * PORT_1, b"\x00\x10\x00\x00")
    made.wire.writes.clear()
    assert made.runs()
    return made


def profile(oe: bool = True) -> Profile:
    wired = [f"pca9685.oe = {OE}"] if oe else []
    return profiles.load(paths.HARDWARE / "motor-hat.toml", wired)


def no_daemon() -> IoPins:
    raise PinsLost("no pigpiod")


def test_chip_is_off_before_oe_is_asked(chip: Hat) -> None:
    """A hanging daemon would delay the chip, and `wheels` with it."""
    ran: list[bool] = []
    pins: Any = OePins(lambda: ran.append(chip.runs()))
    Switch(profile(), chip.buses, lambda: pins)()
    assert ran == [False] and pins.history == [(OE, DISABLED)]


@pytest.mark.parametrize("how", ["hangs", "is gone"])
def test_chip_is_switched_off_by_its_byte_without_daemon(chip: Hat, how: str) -> None:
    pins: Any = OePins()
    pins.hang()
    Switch(profile(), chip.buses, no_daemon if how == "is gone" else lambda: pins)()
    assert not chip.runs()


def test_oe_disables_outputs_without_the_bus(chip: Hat) -> None:
    pins: Any = OePins()
    switch = Switch(profile(), chip.buses, lambda: pins)
    chip.wire.failing = 1
    switch()
    assert pins.duty(OE) == DISABLED and chip.wire.closed == 0


@pytest.mark.parametrize("oe", [True, False])
def test_switch_without_bus_and_oe_fails_and_closes(chip: Hat, oe: bool) -> None:
    """A retry every 10 ms would run out of files otherwise."""
    switch = Switch(profile(oe), chip.buses, no_daemon)
    chip.wire.failing = 1
    with pytest.raises((I2cError, PinsFault)):
        switch()
    assert chip.wire.closed == 1


def test_board_without_oe_daemon_has_its_outputs_off(chip: Hat) -> None:
    with pytest.raises(PinsLost, match="no pigpiod"):
        HatBoard(profile(), chip.buses, no_daemon, chip.lock)
    assert not chip.runs() and chip.wire.closed == 1


def test_silent_chip_is_disabled_by_oe(chip: Hat) -> None:
    pins: Any = OePins()
    chip.wire.failing = 2
    with pytest.raises(PinsLost, match="PCA9685, tried twice"):
        HatBoard(profile(), chip.buses, lambda: pins, chip.lock)
    assert pins.duty(OE) == DISABLED and chip.runs()


def test_wait_for_oe_is_as_short_as_motors_allow(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`wheels` waits in its loop."""
    given: list[Any] = []
    waits: list[float] = []

    def connect(where: tuple[str, int], timeout: float) -> socket.socket:
        waits.append(timeout)
        raise TimeoutError

    monkeypatch.setattr(hat_board, "HatBoard", lambda *parts: given.extend(parts))
    monkeypatch.setattr(socket, "create_connection", connect)
    backends.open_motors(profile(), tmp_path)
    with pytest.raises(PinsSilent):
        given[2]()
    assert waits == [backends.MOTORS_ANSWER_S]
