"""Lights and battery of the real thread on the emulated chip."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from fpvcar import config, paths
from fpvcar.bench import soc as chips
from fpvcar.telemetry import Board
from tests.wheels_rig import Chip, until

HEAD, REAR = (5, 6), 13
SOON_S = 5.0


@pytest.fixture
def chip(tmp_path: Path) -> Iterator[Chip]:
    chip = Chip(tmp_path, "--i2c=1:0x40:ina219")
    with chips.writing(chip.soc.world) as world:
        world.battery_v, world.battery_a = 7.5, 0.4
    try:
        yield chip
    finally:
        chip.end()


@pytest.fixture
def board(chip: Chip) -> Iterator[Board]:
    bench = paths.HARDWARE / "bench.toml"
    board = Board(config.load(bench, [f"pins.port = {chip.port}"]))
    board.start()
    try:
        yield board
    finally:
        board.stop()


def level(chip: Chip, gpio: int) -> int:
    return int(chip.soc.pin[gpio].level())


def test_lights_are_off_at_first(chip: Chip, board: Board) -> None:
    until(lambda: level(chip, HEAD[0]) == 0, SOON_S, "head light on")


def test_lights_follow(chip: Chip, board: Board) -> None:
    board.set_head(True)
    board.set_reversing(True)
    lights = (*HEAD, REAR)
    until(lambda: all(level(chip, gpio) for gpio in lights), SOON_S, "dark")
    board.set_reversing(False)
    until(lambda: level(chip, REAR) == 0, SOON_S, "rear light stays on")
    board.stop()
    assert level(chip, HEAD[0]) == 0


def test_battery_is_read(chip: Chip, board: Board) -> None:
    until(lambda: board.battery is not None, SOON_S, "no battery")
    assert board.battery and board.state == "ok"
    assert board.battery.volts == pytest.approx(7.5, abs=0.1)
    assert board.battery.amps == pytest.approx(0.4, abs=0.1)
    assert 0.4 < board.battery.share < 0.8 and not board.battery.low


def test_daemon_that_dies_and_comes_back(chip: Chip, board: Board) -> None:
    board.set_head(True)
    until(lambda: board.battery is not None, SOON_S, "no battery")
    chip.pigpiod.kill()
    chip.pigpiod.wait()
    until(lambda: board.battery is None, SOON_S, "an old reading is shown")
    until(lambda: "refused" in board.state, SOON_S, "nothing is said")
    for gpio in HEAD:
        chip.soc.pin[gpio].out = 0
    chip.pigpiod = chip.start_pigpiod()
    until(lambda: board.battery is not None, SOON_S, "not connected again")
    assert level(chip, HEAD[0]) == 1 and board.state == "ok"


def test_daemon_that_hangs_holds_up_nobody(chip: Chip, board: Board) -> None:
    until(lambda: board.battery is not None, SOON_S, "no battery")
    chip.stop_pigpiod()
    start_s = time.monotonic()
    board.set_head(True)
    assert time.monotonic() - start_s < 0.1
    until(lambda: board.battery is None, SOON_S, "an old reading is shown")
    chip.continue_pigpiod()
    until(lambda: board.battery is not None, SOON_S, "not connected again")


def test_no_sensor_at_the_address(tmp_path: Path) -> None:
    chip = Chip(tmp_path)
    bench = paths.HARDWARE / "bench.toml"
    board = Board(config.load(bench, [f"pins.port = {chip.port}"]))
    board.start()
    try:
        until(lambda: "no battery sensor" in board.state, SOON_S, "nothing is said")
        board.set_head(True)
        until(lambda: level(chip, HEAD[0]) == 1, SOON_S, "lights hang on the battery")
        assert board.battery is None
    finally:
        board.stop()
        chip.end()


def test_car_without_a_battery_sensor(tmp_path: Path) -> None:
    chip = Chip(tmp_path)
    profile = config.load(paths.HARDWARE / "bench.toml", [f"pins.port = {chip.port}"])
    board = Board(msgspec.structs.replace(profile, battery=config.Battery()))
    board.start()
    try:
        until(lambda: board.state == "ok", SOON_S, board.state)
        chip.stop_pigpiod()
        until(lambda: board.state != "ok", SOON_S, "a hung daemon is not noticed")
        chip.continue_pigpiod()
        until(lambda: board.state == "ok", SOON_S, board.state)
        assert board.battery is None
    finally:
        board.stop()
        chip.end()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_fails_ends_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    board = Board(config.load(paths.HARDWARE / "bench.toml"))

    def fail() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(board._thread, "run", fail)
    board.start()
    with pytest.raises(RuntimeError, match="has failed"):
        asyncio.run(asyncio.wait_for(board.watch(), 5.0))
