"""Garbage collection runs while the wheels stand, and not while they turn."""

import asyncio
import contextlib
import gc
import weakref
from collections.abc import Iterator

import pytest

from fpvcar.runtime import gc_policy


@pytest.fixture
def young() -> Iterator[None]:
    """Set the thresholds of `run`; restore Python's afterwards."""
    before = gc.get_threshold()
    gc_policy.hold_back()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


class Ring:
    """Object that refers to itself: only a collection frees it."""

    def __init__(self) -> None:
        self.ring = self


def old_ring(collections: int = 2 * gc_policy.COLLECT_AT) -> "weakref.ref[Ring]":
    """Make garbage that only a full collection finds, after so many others."""
    ring = Ring()
    found = weakref.ref(ring)
    gc.collect(0)
    gc.collect(1)
    del ring
    for _ in range(collections):
        gc.collect(1)
    return found


async def collected(garbage_of_ours: "weakref.ref[Ring]", still: bool) -> bool:
    """Return True if the garbage is gone after some looks."""
    task = asyncio.create_task(gc_policy.collect_while(lambda: still))
    for _ in range(100):
        await asyncio.sleep(0.001)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    return garbage_of_ours() is None


@pytest.mark.usefixtures("young")
@pytest.mark.parametrize("still", [True, False])
async def test_full_collection_waits_until_the_wheels_stand(
    monkeypatch: pytest.MonkeyPatch, still: bool
) -> None:
    monkeypatch.setattr(gc_policy, "CHECK_S", 0.001)
    assert await collected(old_ring(), still) is still


@pytest.mark.usefixtures("young")
async def test_little_garbage_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc_policy, "CHECK_S", 0.001)
    assert not await collected(old_ring(gc_policy.COLLECT_AT // 2), still=True)


@pytest.mark.usefixtures("young")
def test_much_garbage_is_collected_even_while_driving() -> None:
    found = old_ring()
    gc.set_threshold(700, 10, gc_policy.COLLECT_AT)
    keep = [[None] for _ in range(200_000)]
    assert found() is None and keep
