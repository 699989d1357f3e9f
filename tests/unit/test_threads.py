"""Threads of `run`: they are woken, and rest while nobody is here."""

import threading

from fpvcar.threads import REST_S, Worker


class Sleeper(Worker):
    """Notes how long it would wait."""

    def __init__(self) -> None:
        super().__init__("sleeper")
        self.pauses: list[float] = []

    def live(self) -> None:
        """Nothing."""

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)


class Waiter(Worker):
    """Waits for a minute, as long as nobody wakes it."""

    def live(self) -> None:
        self.pause(60.0)
        self.ending = True


def test_a_wake_ends_a_pause_or_the_next_one() -> None:
    for early in (True, False):
        waiter = Waiter("waiter")
        if early:
            waiter.wake()
            waiter.wake()  # two are one
        waiter.start()
        if not early:
            waiter.wake()
        assert waiter._thread is not None
        waiter._thread.join(5.0)
        assert not waiter._thread.is_alive()


def test_what_woke_is_used_up() -> None:
    waiter = Waiter("waiter")
    waiter.wake()
    waiter.pause(60.0)
    began = threading.Event()

    def pauses() -> None:
        began.set()
        waiter.pause(60.0)

    second = threading.Thread(target=pauses, daemon=True)
    second.start()
    assert began.wait(5.0)
    second.join(0.05)
    assert second.is_alive()
    waiter.wake()
    second.join(5.0)
    assert not second.is_alive()


def test_a_sensor_rests_only_while_nobody_is_here() -> None:
    sleeper = Sleeper()
    sleeper.rest()
    assert sleeper.pauses == [], "somebody may be here at the start"
    sleeper.attend(False)
    sleeper.rest()
    assert sleeper.pauses == [REST_S]
    sleeper.attend(True)
    sleeper.rest()
    assert sleeper.pauses == [REST_S]


def test_whoever_comes_ends_a_rest() -> None:
    waiter = Waiter("waiter")
    waiter.attend(False)
    waiter.attend(True)
    waiter.pause(60.0)  # else it takes a minute
