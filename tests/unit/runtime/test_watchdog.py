"""Watchdog of the event loop: when it bites, and when it must not."""

import asyncio
import re
import signal
import subprocess
import sys
import time

import pytest

from fpvcar.runtime import watchdog
from fpvcar.runtime.watchdog import CHECK_S, PATIENCE_S, STATUS, Watchdog


def looks(dog: Watchdog, count: int, every_s: float = CHECK_S, at_s: float = 0.0) -> int:
    """Count the looks in a row that did not bite."""
    return next((n for n in range(count) if dog.check(at_s + (n + 1) * every_s)), count)


@pytest.fixture
def dog() -> Watchdog:
    return Watchdog()


def test_beating_loop_is_not_ended(dog: Watchdog) -> None:
    for number in range(1000):
        dog.beat()
        assert not dog.check(number * CHECK_S)
        assert not dog.check((number + 0.5) * CHECK_S)


def test_loop_that_stands_still_is_ended(dog: Watchdog) -> None:
    dog.beat()
    assert not dog.check(0.0)
    assert looks(dog, 100) == round(PATIENCE_S / CHECK_S) - 1
    assert dog.blocked_s == PATIENCE_S


def test_beat_resets_the_stillness(dog: Watchdog) -> None:
    dog.check(0.0)
    assert looks(dog, 3) == 3
    dog.beat()
    assert not dog.check(4 * CHECK_S)
    assert looks(dog, 3, at_s=4 * CHECK_S) == 3


def test_loop_that_never_began_is_ended(dog: Watchdog) -> None:
    assert looks(dog, 100) < 10


@pytest.mark.parametrize("slept_s", [3.0, 3600.0, 1e6])
def test_stopped_process_is_not_a_hung_loop(slept_s: float, dog: Watchdog) -> None:
    """After SIGCONT or a wake-up of the machine the thread may run before the loop does."""
    dog.beat()
    dog.check(0.0)
    assert not dog.check(slept_s)
    assert not dog.check(slept_s + 0.001)
    dog.beat()
    assert not dog.check(slept_s + CHECK_S)
    assert dog.blocked_s == 0.0


def test_process_stopped_often_with_beats_between_is_not_hung() -> None:
    dog, now_s = Watchdog(), 0.0
    for _ in range(100):
        now_s += 60.0
        assert not dog.check(now_s)
        dog.beat()


def test_clock_that_goes_back_counts_no_stillness(dog: Watchdog) -> None:
    dog.check(100.0)
    assert looks(dog, 50, every_s=-1.0, at_s=100.0) == 50


async def test_watchdog_ends_with_the_loop_without_a_bite() -> None:
    bitten: list[float] = []
    task = asyncio.create_task(watchdog.run(Watchdog(), bitten.append))
    await asyncio.sleep(2 * CHECK_S)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert not bitten


BLOCKED = """
import asyncio, time
from fpvcar.runtime import watchdog

def careless():
    time.sleep(60.0)

async def main():
    dog = asyncio.create_task(watchdog.run(watchdog.Watchdog()))
    await asyncio.sleep(0.1)
    print("blocks", flush=True)
    careless()

asyncio.run(main())
"""


def test_blocked_process_reports_the_place_and_exits() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", BLOCKED], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "blocks\n"
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.3)
        process.send_signal(signal.SIGCONT)
        _, said = process.communicate(timeout=20.0)
    assert process.returncode == STATUS
    assert re.search(r"was blocked for \d", said) and "in careless" in said
