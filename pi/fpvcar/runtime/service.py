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
        """Call all listeners."""
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


async def by_timer(
    turn: Callable[[], float],
    hand_over: Callable[[Callable[[float], None]], None] = lambda put_off: None,
) -> None:
    """Call `turn` for ever; each return value is the delay in seconds until the next call. Raises
    the exceptions of `turn`. A timer is used because a sleeping task takes two turns of the loop.

    `hand_over` gets a function that postpones the next call, by a number of seconds from now.
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
        if timer is not None:  # otherwise `act` is running, or has failed
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
