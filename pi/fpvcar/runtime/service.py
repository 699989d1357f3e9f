"""Life cycle of a service's parts: started in order, run concurrently, stopped in reverse.

start -> loops, until a signal or until one of them ends -> stop
"""

import asyncio
import logging
import signal
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVarTuple

Loop = Callable[[], Coroutine[Any, Any, None]]
log = logging.getLogger("fpvcar.run")
Values = TypeVarTuple("Values")


class Event(Generic[*Values]):
    """Event with values, published by one part; others subscribe. Listeners neither wait nor
    raise."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[*Values], object]] = []

    def subscribe(self, *listeners: Callable[[*Values], object]) -> None:
        """Call the listeners for each event from now on, in this order."""
        self._listeners += listeners

    def publish(self, *values: *Values) -> None:
        """Call all listeners, in the order of their subscription."""
        for listener in self._listeners:
            listener(*values)


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class Part:
    """Part of a service. Its loops run until they are cancelled; if one ends, the service ends.

    `stop` is called after all loops have ended, in the reverse order of the starts.
    """

    name: str
    loops: tuple[Loop, ...]
    start: Callable[[], None] = _nothing
    stop: Callable[[], None] = _nothing


class Thread(Protocol):
    """Part with its own thread: workers.Worker."""

    def start(self) -> None:
        pass

    async def watch(self) -> None:
        """Raise RuntimeError when the thread has died."""

    def stop(self) -> None:
        pass


def threaded(name: str, thread: Thread, *loops: Loop) -> Part:
    """Return a part for a thread, with additional loops."""
    return Part(name=name, loops=(thread.watch, *loops), start=thread.start, stop=thread.stop)


class Timer:
    """Repeated calls of `turn`; each return value is the delay in seconds until the next call. A
    loop's timer is used because a sleeping task takes two turns of the loop."""

    def __init__(self, turn: Callable[[], float]) -> None:
        self._turn = turn
        self._next: asyncio.TimerHandle | None = None
        self._failed: asyncio.Future[None] | None = None

    async def run(self) -> None:
        """Call `turn` for ever, now for the first time. Raises the exceptions of `turn`."""
        self._failed = asyncio.get_running_loop().create_future()
        self._act()
        try:
            await self._failed
        finally:
            if self._next is not None:
                self._next.cancel()
            self._next = None

    def postpone(self, seconds: float) -> None:
        """Make the next call after so many seconds from now. Has no effect within `turn`, and
        while the timer does not run."""
        if self._next is not None:
            loop = asyncio.get_running_loop()
            self._next.cancel()
            self._next = loop.call_at(loop.time() + seconds, self._act)

    def _act(self) -> None:
        self._next = None
        try:
            self._next = asyncio.get_running_loop().call_later(self._turn(), self._act)
        except Exception as fault:
            assert self._failed is not None
            self._failed.set_exception(fault)


async def aligned_sleep(period_s: float) -> None:
    """Sleep until the loop's clock is at the next multiple of `period_s`: all sleepers wake at the
    same instant, so the processor wakes once."""
    await asyncio.sleep(period_s - asyncio.get_running_loop().time() % period_s)


async def run(parts: Sequence[Part]) -> int:
    """Run until SIGTERM or SIGINT (return 0), or until a part ends (log it and return 1)."""
    loop, stopping = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    for part in parts:
        part.start()
    jobs: dict[asyncio.Task[Any], str] = {
        asyncio.create_task(job()): part.name for part in parts for job in part.loops
    }
    waiting = asyncio.create_task(stopping.wait())
    try:
        done, _ = await asyncio.wait([*jobs, waiting], return_when="FIRST_COMPLETED")
        for task in done - {waiting}:
            _log_end(jobs[task], task.exception())
        return 0 if waiting in done else 1
    finally:
        for job in (*jobs, waiting):
            job.cancel()
        await asyncio.gather(*jobs, waiting, return_exceptions=True)
        for part in reversed(parts):
            part.stop()


def _log_end(name: str, fault: BaseException | None) -> None:
    expected = fault is None or isinstance(fault, OSError)  # for example a busy port
    log.error("%s", fault or f"the {name} ended", exc_info=None if expected else fault)
