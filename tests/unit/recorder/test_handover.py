"""Hand-over between the loop and the recorder's thread."""

import threading

from hypothesis import given
from hypothesis import strategies as some
from testkit.recorder.recording import about, step

from fpvcar.recorder.encoder import BeginCommand, KeepCommand, QueuedMessage
from fpvcar.recorder.handover import ALL_MOST, Handover


def noted(number: int, size: int = 512) -> QueuedMessage:
    return QueuedMessage(number, number, 0, 0, step(), size)


def test_messages_are_taken_in_order() -> None:
    handover, begin = Handover(), BeginCommand(about(0), False, False)
    handover.begin(begin)
    handover.put(noted(1))
    handover.keep(7)
    handover.put(noted(2))
    assert handover.take() == [begin, noted(1), KeepCommand(7), noted(2)]
    assert handover.take() == []


@given(some.lists(some.integers(1, ALL_MOST // 3), max_size=20))
def test_waiting_bytes_never_exceed_the_bound(sizes: list[int]) -> None:
    handover, put = Handover(), list[QueuedMessage]()
    for number, size in enumerate(sizes):
        one, before = noted(number, size), handover.waiting_bytes
        fits = handover.put(one)
        assert fits == (before + size <= ALL_MOST)
        assert handover.has_room(size) <= fits, "a picture leaves room"
        put += [one] if fits else []
        assert handover.waiting_bytes == sum(one.size for one in put) <= ALL_MOST
    taken = handover.take()
    assert taken == put
    assert handover.waiting_bytes == sum(one.size for one in put), "it is not written"
    handover.give_back(taken)
    assert handover.waiting_bytes == 0


def test_repeated_keep_is_queued_once_until_taken() -> None:
    handover = Handover()
    for now_ns in (5, 6, 7):
        handover.keep(now_ns)
    assert handover.take() == [KeepCommand(5)]
    handover.keep(8)
    assert handover.take() == [KeepCommand(8)]


def test_two_threads_lose_no_message() -> None:
    handover, taken, count = Handover(), list[object](), 20_000

    def loop() -> None:
        for number in range(count):
            handover.put(noted(number, 1))

    thread = threading.Thread(target=loop)
    thread.start()
    while thread.is_alive() or handover.waiting_bytes:
        some_taken = handover.take()
        taken += [one.number for one in some_taken if isinstance(one, QueuedMessage)]
        handover.give_back(some_taken)
    thread.join()
    assert taken == list(range(count))
