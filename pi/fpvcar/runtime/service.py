"""The parts of a service: started in order, run side by side, stopped in reverse.

start -> loops, until a signal or until one of them ends -> stop
"""

import asyncio
import logging
import signal
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Loop = Callable[[], Coroutine[Any, Any, None]]
log = logging.getLogger("fpvcar.run")


def _nothing() -> None:
    """There is nothing to start, or to stop."""


@dataclass(frozen=True)
class Part:
    """One part. Its loops run until they are cancelled: one that ends ends the service.

    `stop` is called after all loops have ended, in the reverse order of the starts.
    """

    name: str
    loops: tuple[Loop, ...]
    start: Callable[[], None] = _nothing
    stop: Callable[[], None] = _nothing


class Thread(Protocol):
    """A part with a thread of its own: threads.Worker."""

    def start(self) -> None:
        """Starts it."""

    async def watch(self) -> None:
        """Raises RuntimeError when it has died."""

    def stop(self) -> None:
        """Ends it."""


def threaded(name: str, thread: Thread, *loops: Loop) -> Part:
    """A part with a thread, and loops besides."""
    return Part(name, (thread.watch, *loops), thread.start, thread.stop)


async def by_timer(
    turn: Callable[[], float],
    hand_over: Callable[[Callable[[float], None]], None] = lambda put_off: None,
) -> None:
    """Calls `turn` for ever, each time after as many seconds as it returned last.
    Raises what it raises. A task that sleeps takes two turns of the loop.

    `hand_over` gets what puts the next call off, to so many seconds from now.
    """
    loop = asyncio.get_running_loop()
    failed: asyncio.Future[None] = loop.create_future()
    timer: asyncio.TimerHandle | None = None

    def act() -> None:
        nonlocal timer
        timer = None
        try:
            timer = loop.call_later(turn(), act)
        except Exception as fault:
            failed.set_exception(fault)

    def put_off(seconds: float) -> None:
        nonlocal timer
        if timer is not None:  # else `act` runs now, or has failed
            timer.cancel()
            timer = loop.call_at(loop.time() + seconds, act)

    hand_over(put_off)
    act()
    try:
        await failed
    finally:
        if timer is not None:
            timer.cancel()
        timer = None


async def run(parts: Sequence[Part]) -> int:
    """Until SIGTERM or SIGINT (0), or until a part ends (1), which is said."""
    loop, asked = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked.set)
    for part in parts:
        part.start()
    jobs: dict[asyncio.Task[Any], str] = {
        asyncio.create_task(job()): part.name for part in parts for job in part.loops
    }
    waiting = asyncio.create_task(asked.wait())
    try:
        done, _ = await asyncio.wait([*jobs, waiting], return_when="FIRST_COMPLETED")
        for ended in done - {waiting}:
            _log_end(jobs[ended], ended.exception())
        return 0 if waiting in done else 1
    finally:
        for job in (*jobs, waiting):
            job.cancel()
        await asyncio.gather(*jobs, waiting, return_exceptions=True)
        for part in reversed(parts):
            part.stop()


def _log_end(name: str, fault: BaseException | None) -> None:
    known = fault is None or isinstance(fault, OSError)  # say, a busy port
    log.error("%s", fault or f"the {name} ended", exc_info=None if known else fault)
