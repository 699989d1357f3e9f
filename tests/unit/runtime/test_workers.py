"""Threads of `run`: woken on demand, at rest without visitors."""

import asyncio
import threading

import pytest

from fpvcar.runtime.workers import REST_S, Worker


class Sleeper(Worker):
    """Worker that records its wait."""

    def __init__(self) -> None:
        super().__init__("sleeper")
        self.pauses: list[float] = []

    def live(self) -> None:
        pass

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)


class Waiter(Worker):
    """Worker that waits for a minute unless it is woken."""

    def live(self) -> None:
        self.pause(60.0)
        self.ending = True


def test_wake_ends_the_current_or_the_next_pause() -> None:
    for early in (True, False):
        waiter = Waiter("waiter")
        if early:
            waiter.wake()
            waiter.wake()  # two wake-ups count as one
        waiter.start()
        if not early:
            waiter.wake()
        assert waiter._thread is not None
        waiter._thread.join(20.0)
        assert not waiter._thread.is_alive()


class Failing(Worker):
    """Worker that dies when it is woken."""

    def _run(self) -> None:
        self.pause(60.0)
        if not self.ending:
            raise ZeroDivisionError

    def live(self) -> None:
        pass


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("before", [True, False])
async def test_thread_that_dies_is_reported_at_once(before: bool) -> None:
    failing = Failing("failing")
    failing.start()
    assert failing._thread is not None
    if before:
        failing.wake()
        failing._thread.join(20.0)
    watching = asyncio.create_task(failing.watch())
    await asyncio.sleep(0)
    failing.wake()
    with pytest.raises(RuntimeError, match="the thread of failing has failed"):
        await asyncio.wait_for(watching, 20.0)
    failing._thread.join(20.0)  # its traceback belongs to this test


async def test_stopped_thread_is_not_reported_as_failed() -> None:
    failing = Failing("failing")
    failing.start()
    watching = asyncio.create_task(failing.watch())
    await asyncio.sleep(0)
    await asyncio.to_thread(failing.stop)
    done, _ = await asyncio.wait([watching], timeout=0.1)
    assert not done
    watching.cancel()


def test_thread_outliving_its_loop_stops_cleanly() -> None:
    failing = Failing("failing")
    failing.start()
    with pytest.raises(TimeoutError):
        asyncio.run(asyncio.wait_for(failing.watch(), 0.01))
    failing.stop()
    assert failing._thread is not None and not failing._thread.is_alive()


def test_wake_is_used_up_by_one_pause() -> None:
    waiter = Waiter("waiter")
    waiter.wake()
    waiter.pause(60.0)
    began = threading.Event()

    def pauses() -> None:
        began.set()
        waiter.pause(60.0)

    second = threading.Thread(target=pauses, daemon=True)
    second.start()
    assert began.wait(20.0)
    second.join(0.05)
    assert second.is_alive()
    waiter.wake()
    second.join(20.0)
    assert not second.is_alive()


def test_sensor_rests_only_without_visitors() -> None:
    sleeper = Sleeper()
    sleeper.rest()
    assert sleeper.pauses == [], "somebody may be here at the start"
    sleeper.attend(False)
    sleeper.rest()
    assert sleeper.pauses == [REST_S]
    sleeper.attend(True)
    sleeper.rest()
    assert sleeper.pauses == [REST_S]


def test_visitor_ends_the_rest_of_a_sensor() -> None:
    waiter = Waiter("waiter")
    waiter.attend(False)
    waiter.attend(True)
    waiter.pause(60.0)  # otherwise a minute
