"""Buttons and lights of the real thread on the emulated chip."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from testkit.harness import running
from testkit.hub import until
from testkit.pins.wheels import Chip

from fpvbench import soc as chips
from fpvcar.buttons.panel import Panel
from fpvcar.config import profiles
from fpvcar.runtime import paths

PROFILE = profiles.load(paths.HARDWARE / "bench.toml")
LOOKS = list(PROFILE.buttons.values())
HEAD, REAR = PROFILE.lights.head[0], PROFILE.lights.rear[0]
LEFT = PROFILE.lights.indicator_left[0]


class Page:
    """Page that keeps the lit buttons, change by change."""

    source = "page"

    def __init__(self) -> None:
        self.lit: list[int] = []

    def send_newest(self, text: str) -> None:
        lit = json.loads(text)["lit"]
        if self.lit[-1:] != [lit]:
            self.lit.append(lit)


@pytest.fixture
def chip(tmp_path: Path) -> Iterator[Chip]:
    with Chip(tmp_path) as chip:
        yield chip


@asynccontextmanager
async def pins_of(chip: Chip) -> AsyncIterator[Panel]:
    profile = profiles.load(paths.HARDWARE / "bench.toml", [f"pins.port = {chip.port}"])
    panel = Panel(profile)
    panel.start()
    try:
        async with running(panel.run()):
            await until(lambda: panel.state == "ok")
            yield panel
    finally:
        panel.stop()


def press(chip: Chip, number: int, down: bool = True) -> None:
    """Pull the contact to ground from outside, or release it."""
    gpio = LOOKS[number].button
    assert gpio is not None
    chip.soc.pin[gpio].external = 0 if down else chips.FLOATING


def bright(chip: Chip, number: int) -> float:
    gpio = LOOKS[number].led
    assert gpio is not None
    return float(chip.soc.pin[gpio].duty())


def level(chip: Chip, gpio: int) -> int:
    return int(chip.soc.pin[gpio].level())


async def test_push_lights_the_led_and_the_page(chip: Chip) -> None:
    async with pins_of(chip) as panel:
        page = Page()
        panel.join(page)
        for number in (0, 3):
            await push(chip, page, number)
        assert page.lit == [0, 0b1, 0, 0b1000, 0], "each push once"


async def push(chip: Chip, page: Page, number: int) -> None:
    """Push a button; check that LED and page follow, on and off."""
    most = LOOKS[number].brightness
    press(chip, number)
    await until(lambda: page.lit[-1] == 1 << number)
    await until(lambda: abs(bright(chip, number) - most) < 0.01)
    press(chip, number, down=False)
    await until(lambda: page.lit[-1] == 0)
    await until(lambda: bright(chip, number) == 0.0)


async def test_contact_closed_before_start_counts_once_released(chip: Chip) -> None:
    press(chip, 1)
    async with pins_of(chip) as panel:
        page = Page()
        panel.join(page)
        press(chip, 2)
        await until(lambda: page.lit[-1] == 0b100)
        press(chip, 1, down=False)
        await asyncio.sleep(0.1)
        press(chip, 1)
        await until(lambda: page.lit[-1] == 0b110)


async def test_dead_daemon_releases_buttons_and_lights_return(chip: Chip) -> None:
    async with pins_of(chip) as panel:
        page = Page()
        panel.join(page)
        panel.set_head(True)
        press(chip, 0)
        await until(lambda: page.lit[-1] == 1 and level(chip, HEAD) == 1)
        chip.pigpiod.kill()
        chip.pigpiod.wait()
        await until(lambda: page.lit[-1] == 0)
        await until(lambda: "refused" in str(panel.state))
        for gpio in PROFILE.lights.head:
            chip.soc.pin[gpio].out = 0
        press(chip, 0, down=False)
        chip.pigpiod = chip.start_pigpiod()
        await until(lambda: panel.state == "ok")
        await until(lambda: level(chip, HEAD) == 1)
        press(chip, 2)
        await until(lambda: bright(chip, 2) == 1.0 and page.lit[-1] == 0b100)


async def test_hung_daemon_is_noticed_and_lights_return(chip: Chip) -> None:
    async with pins_of(chip) as panel:
        page = Page()
        panel.join(page)
        chip.stop_pigpiod()
        panel.set_head(True)
        await until(lambda: panel.state != "ok")
        chip.continue_pigpiod()
        await until(lambda: panel.state == "ok")
        await until(lambda: level(chip, HEAD) == 1)


async def test_lights_follow_and_are_off_at_the_end(chip: Chip) -> None:
    async with pins_of(chip) as panel:
        panel.set_head(True)
        panel.follow(-1.0, 1.0, False)
        lights = (HEAD, REAR, LEFT)
        await until(lambda: all(level(chip, gpio) for gpio in lights))
        panel.follow(0.0, 1.0, False)
        await until(lambda: level(chip, REAR) == 0)
        await until(lambda: level(chip, LEFT) == 0)
    assert level(chip, HEAD) == 0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_failed_thread_ends_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    panel = Panel(PROFILE)

    def fail() -> None:
        raise ZeroDivisionError

    assert panel._thread is not None
    monkeypatch.setattr(panel._thread, "_run", fail)
    panel.start()
    with pytest.raises(RuntimeError, match="has failed"):
        async with asyncio.timeout(20.0):
            await panel.watch()
    panel.stop()
