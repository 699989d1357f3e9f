"""Parts of a service: their order, and the end of all when one ends."""

import asyncio
import os
import signal
from collections.abc import Callable

import pytest

from fpvcar.runtime import service
from fpvcar.runtime.service import Loop, Part, aligned_sleep


class Service:
    """Parts that record their events."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def part(self, name: str, loop: Loop | None = None) -> Part:
        return Part(
            name,
            (loop or self.endless(name),),
            self.note(f"{name} starts"),
            self.note(f"{name} stops"),
        )

    def note(self, event: str) -> Callable[[], None]:
        return lambda: self.events.append(event)

    def endless(self, name: str) -> Loop:
        async def loop() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                self.events.append(f"{name} is cancelled")

        return loop


async def fails() -> None:
    raise RuntimeError("a bug")


async def is_busy() -> None:
    raise OSError("port 8080 is busy")


async def returns() -> None:
    pass


async def is_asked_to_end() -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.Event().wait()


async def test_parts_start_in_order_and_stop_in_reverse() -> None:
    recorded = Service()
    built = [recorded.part("one"), recorded.part("two"), Part("last", (is_asked_to_end,))]
    assert await service.run(built) == 0
    assert recorded.events == [
        "one starts",
        "two starts",
        "one is cancelled",
        "two is cancelled",
        "two stops",
        "one stops",
    ]


@pytest.mark.parametrize(
    ("loop", "why", "traceback"),
    [
        (fails, "a bug", True),
        (is_busy, "port 8080 is busy", False),
        (returns, "the site ended", False),
    ],
)
async def test_part_that_ends_ends_all_parts_with_the_reason(
    loop: Loop, why: str, traceback: bool, caplog: pytest.LogCaptureFixture
) -> None:
    recorded = Service()
    assert await service.run([recorded.part("one"), recorded.part("site", loop)]) == 1
    assert recorded.events[-3:] == ["one is cancelled", "site stops", "one stops"]
    (record,) = caplog.records
    assert record.getMessage() == why and bool(record.exc_info) is traceback


async def test_thread_that_dies_ends_all_parts(caplog: pytest.LogCaptureFixture) -> None:
    recorded = Service()

    class Thread:
        start = staticmethod(recorded.note("starts"))
        stop = staticmethod(recorded.note("stops"))

        async def watch(self) -> None:
            raise RuntimeError("the thread of battery has failed")

    assert await service.run([service.threaded("battery", Thread())]) == 1
    assert recorded.events == ["starts", "stops"]
    assert "the thread of battery has failed" in caplog.text


async def test_timer_turn_returns_the_delay_to_the_next_turn() -> None:
    turns: list[float] = []
    loop = asyncio.get_running_loop()

    def turn() -> float:
        turns.append(loop.time())
        if len(turns) == 3:
            raise RuntimeError("a bug")
        return 0.01

    with pytest.raises(RuntimeError, match="a bug"):
        await asyncio.wait_for(service.Timer(turn).run(), 20.0)
    assert len(turns) == 3 and turns[1] - turns[0] > 0.009


async def test_timer_turn_is_put_off() -> None:
    loop, turns = asyncio.get_running_loop(), list[float]()

    def turn() -> float:
        turns.append(loop.time())
        timer.postpone(0.0)  # within a turn the returned time counts
        return 0.02 if len(turns) == 1 else 60.0

    timer = service.Timer(turn)
    timer.postpone(0.0)  # it has not begun
    running = asyncio.create_task(timer.run())
    await asyncio.sleep(0)
    began_s = loop.time()
    timer.postpone(0.1)
    while len(turns) < 2:
        assert loop.time() - began_s < 5.0
        await asyncio.sleep(0.01)
    assert turns[1] - began_s > 0.099
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    timer.postpone(0.0)
    await asyncio.sleep(0.01)
    assert len(turns) == 2, "it has ended"


async def test_timer_turns_end_with_their_task() -> None:
    turns, twice = list[int](), asyncio.Event()

    def turn() -> float:
        turns.append(0)
        if len(turns) == 2:
            twice.set()
        return 0.0

    running = asyncio.create_task(service.Timer(turn).run())
    await asyncio.wait_for(twice.wait(), 20.0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    done = len(turns)
    for _ in range(3):
        await asyncio.sleep(0)
    assert len(turns) == done


class Clock(asyncio.SelectorEventLoop):
    """Loop whose time passes at once."""

    now_s = 0.0

    def time(self) -> float:
        return self.now_s


def slept_s(period_s: float, from_s: float) -> float:
    loop = Clock()
    loop.now_s = from_s
    waiting = loop.create_task(aligned_sleep(period_s))
    loop.call_soon(loop.stop)
    loop.run_forever()
    (timer,) = loop._scheduled  # type: ignore[attr-defined]
    waiting.cancel()
    loop.run_until_complete(asyncio.gather(waiting, return_exceptions=True))
    loop.close()
    assert isinstance(timer, asyncio.TimerHandle)
    return timer.when() - from_s


def test_timer_wakes_at_multiples_of_its_period() -> None:
    assert slept_s(1.0, 7.25) == 0.75
    assert slept_s(0.5, 7.25) == 0.25
    assert slept_s(0.5, 7.5) == 0.5, "a whole period, not none"
