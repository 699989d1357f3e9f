"""Calls for the helper, made only without proof that the motors are off."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from testkit.pins.wheels import BENCH, Chip, until

from fpvcar.config import Profile, profiles
from fpvcar.devices import backends
from fpvcar.devices.pigpio import tripped
from fpvcar.devices.pins import DeadMan
from fpvcar.wheels import client
from fpvcar.wheels.client import Rescue

WITHIN_S = 20.0
"""Generous limit for a loaded machine."""
SOON_S = 0.3


class Look:
    """Stand-in for the pin daemon; counts the calls for a helper."""

    def __init__(self, off: bool | Exception) -> None:
        self.off, self.looks, self.asked = off, 0, list[int]()

    async def __call__(self, profile: Profile) -> bool:
        self.looks += 1
        await asyncio.sleep(0)
        if isinstance(self.off, Exception):
            raise self.off
        return self.off

    def ask(self, path: Path, pid: int) -> None:
        assert path == Path("helper")
        self.asked.append(pid)


@pytest.mark.parametrize(("off", "asked"), [(True, 0), (False, 1), (ValueError("odd"), 1)], ids=str)
async def test_rescue_asks_unless_the_motors_are_proven_off(
    off: bool | Exception, asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = Look(off)
    rescue = Rescue(profiles.load(BENCH), Path("helper"))
    monkeypatch.setattr(backends, "motors_proven_off", look)
    monkeypatch.setattr(client, "ask_helper", look.ask)
    rescue.call(812)
    rescue.call(812)  # one look at a time
    for _ in range(5):
        await asyncio.sleep(0)
    assert (look.looks, look.asked) == (1, [812] * asked)
    rescue.call(813)
    for _ in range(5):
        await asyncio.sleep(0)
    assert (look.looks, look.asked) == (2, [812, 813] * asked)


@pytest.fixture
def chip(tmp_path: Path) -> Iterator[Chip]:
    with Chip(tmp_path) as chip:
        yield chip


def _profile(port: int) -> Profile:
    return profiles.load(BENCH, [f"pins.port = {port}"])


def _off(port: int, within_s: float = WITHIN_S) -> bool:
    return asyncio.run(tripped.motors_off("127.0.0.1", port, within_s))


@contextlib.contextmanager
def _awake(chip: Chip, runtime: Path) -> Iterator[DeadMan]:
    with contextlib.closing(backends.open_motors(_profile(chip.port), runtime)) as board:

        def woke() -> bool:
            board.dead_man.feed()
            return board.dead_man.awake()

        until(woke, WITHIN_S, "the dead man does not wake up")
        yield board.dead_man


def test_motors_are_off_without_a_dead_man_and_with_one_that_tripped(
    chip: Chip, tmp_path: Path
) -> None:
    assert _off(chip.port)
    with _awake(chip, tmp_path) as dead_man:
        until(lambda: not dead_man.awake(), WITHIN_S, "it does not trip")
        assert _off(chip.port)


def test_motors_whose_dead_man_is_awake_are_not_proven_off(chip: Chip, tmp_path: Path) -> None:
    found = []
    with _awake(chip, tmp_path) as dead_man:
        for _ in range(3):  # a loaded machine may let one trip
            dead_man.feed()
            found.append(_off(chip.port))
    assert not all(found)


@pytest.mark.parametrize("fault", [Chip.stop_pigpiod, Chip.kill_pigpiod])
def test_motors_of_a_daemon_that_hangs_or_is_gone_are_not_proven_off(
    chip: Chip, fault: Callable[[Chip], None]
) -> None:
    fault(chip)
    assert not _off(chip.port, SOON_S)


def test_proof_of_rest_asks_pigpiod_and_nothing_else(chip: Chip) -> None:
    async def proof(*lines: str) -> bool:
        overrides = [f"pins.port = {chip.port}", *lines]
        return await backends.motors_proven_off(profiles.load(BENCH, overrides))

    found = [asyncio.run(proof()) for _ in range(5)]
    assert any(found)  # each has 0.15 s
    assert not asyncio.run(proof('pins.backend = "linux"'))
