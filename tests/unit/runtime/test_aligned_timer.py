"""Loops with different sleep times wake together."""

import asyncio

from fpvcar.runtime.aligned_timer import aligned_sleep


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
