"""Recalls that the page starts: one after the other, with progress, cancelled and refused."""

import asyncio
import contextlib
import errno
import shutil
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from testkit.base_station.builder import FILES, OTHER, OTHER_NAME, Station
from testkit.base_station.stored import SECOND, SESSION, put

from fpvcar.http.languages import translated
from fpvstation.errors import StationError
from fpvstation.replicas import recalls as module
from fpvstation.replicas.recalls import Recalls, RecallState
from fpvstation.replicas.tiers import TiersBusy

pytestmark = pytest.mark.usefixtures("archived")
SIZE = sum(map(len, FILES.values()))
WAIT_S = 20.0


class Gate:
    """Replacement of the archive's copy of a file, which waits for the test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.copying, self.open = threading.Event(), threading.Event()
        self._copy = shutil.copy2
        monkeypatch.setattr(shutil, "copy2", self._wait)

    def _wait(self, source: Path, target: Path) -> None:
        self.copying.set()
        assert self.open.wait(WAIT_S)
        self._copy(source, target)


def begin(recalls: Recalls, rig: Station, session: str = SESSION) -> RecallState:
    record = rig.store.archived(session)
    assert record is not None
    return recalls.begin(session, [f"drive of {session}"], record)


@contextlib.asynccontextmanager
async def working(recalls: Recalls) -> AsyncIterator[None]:
    """Let the recalls work, as the station does."""
    task = asyncio.create_task(recalls.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def ended(state: RecallState) -> None:
    async with asyncio.timeout(WAIT_S):
        while state.active:
            await asyncio.sleep(0.01)


async def recalled(recalls: Recalls, rig: Station) -> RecallState:
    async with working(recalls):
        state = begin(recalls, rig)
        await ended(state)
    return state


async def test_recall_brings_the_session_back_and_counts_its_bytes(rig: Station) -> None:
    recalls = Recalls(rig.tiers())
    async with working(recalls):
        state = begin(recalls, rig)
        assert (state.state, state.done, state.total) == ("waiting", 0, SIZE)
        assert begin(recalls, rig) is state, "once, however often it is pushed"
        await ended(state)
    assert (state.state, state.done, state.fault) == ("done", SIZE, None)
    assert recalls.states == [state]
    rig.check_one_copy(rig.root)


async def test_cancelled_recall_leaves_the_session_in_the_archive(
    rig: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, recalls = Gate(monkeypatch), Recalls(rig.tiers())
    async with working(recalls):
        state = begin(recalls, rig)
        await asyncio.to_thread(gate.copying.wait, WAIT_S)
        assert recalls.states[0].state == "copying"
        assert recalls.cancel(f"drive of {SESSION}") is state
        gate.open.set()
        await ended(state)
        assert state.state == "cancelled" and rig.store.archived(SESSION)
        rig.check_listed()
        again = begin(recalls, rig)
        await ended(again)
    assert again.state == "done" and recalls.cancel("another drive") is None
    rig.check_one_copy(rig.root)


async def test_recalls_run_one_after_the_other(
    rig: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(rig.store, OTHER_NAME, b"other")
    await rig.tiers().archive(OTHER)
    gate, recalls = Gate(monkeypatch), Recalls(rig.tiers())
    async with working(recalls):
        first, second = begin(recalls, rig), begin(recalls, rig, OTHER)
        await asyncio.to_thread(gate.copying.wait, WAIT_S)
        assert (first.state, second.state) == ("copying", "waiting")
        recalls.cancel(f"drive of {OTHER}")
        assert second.state == "cancelled"
        third = begin(recalls, rig, OTHER)
        gate.open.set()
        await ended(third)
    assert (first.state, second.state, third.state) == ("done", "cancelled", "done")
    assert rig.store.archived(OTHER) is None


async def test_end_of_the_station_ends_a_copy_before_the_lock_is_free(
    rig: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, recalls = Gate(monkeypatch), Recalls(rig.tiers())
    async with working(recalls):
        state = begin(recalls, rig)
        await asyncio.to_thread(gate.copying.wait, WAIT_S)
    with pytest.raises(TiersBusy), rig.tiers().alone():
        pass
    gate.open.set()
    await ended(state)
    assert state.state == "cancelled"
    with rig.tiers().alone():
        rig.check_listed()


async def test_recall_waits_while_the_archive_is_busy(rig: Station) -> None:
    paused = asyncio.Event()

    async def pause(_: float) -> None:
        paused.set()
        await asyncio.sleep(0.01)

    recalls = Recalls(rig.tiers(), pause)
    async with working(recalls):
        with rig.tiers().alone():
            state = begin(recalls, rig)
            await asyncio.wait_for(paused.wait(), WAIT_S)
            assert recalls.states[0].state == "waiting"
        await ended(state)
    assert state.state == "done"


async def test_archive_that_is_away_is_named_and_can_be_tried_again(rig: Station) -> None:
    recalls = Recalls(rig.tiers())
    rig.unmount()
    state = await recalled(recalls, rig)
    assert state.state == "failed" and "is missing there: mount its disk" in str(state.fault)
    rig.mount()
    again = await recalled(recalls, rig)
    assert again.state == "done" and recalls.states == [again]


async def test_store_without_room_is_named_before_any_byte_moves(
    rig: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = SimpleNamespace(free=100_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: free)
    state = await recalled(Recalls(rig.tiers()), rig)
    assert f"{SESSION} needs 0.3 MB, and 0.1 MB are free" in str(state.fault)
    assert not (rig.root / ".incoming" / "archive").exists()


async def test_disk_that_fills_up_is_named(rig: Station, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copy2", full)
        state = await recalled(Recalls(rig.tiers()), rig)
    assert str(state.fault).startswith("No space left on device: make room there; the next try")
    assert state.fault and "mach dort Platz" in translated("de", state.fault)
    assert (await recalled(Recalls(rig.tiers()), rig)).state == "done"
    rig.check_one_copy(rig.root)


async def test_segment_lost_in_the_archive_is_named(rig: Station) -> None:
    (rig.there / SESSION / SECOND).unlink()
    state = await recalled(Recalls(rig.tiers()), rig)
    assert state.state == "done" and f"1 segment bad or missing in {rig.there}" in str(state.fault)
    assert SECOND in str(state.fault)


async def test_defect_ends_one_recall_and_not_the_station(
    rig: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    recalls = Recalls(rig.tiers())
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copy2", lambda source, target: 1 / 0)
        state = await recalled(recalls, rig)
    assert str(state.fault).startswith("internal fault: ZeroDivisionError")
    assert (await recalled(recalls, rig)).state == "done"


async def test_station_without_an_archive_names_the_setting(rig: Station) -> None:
    with pytest.raises(StationError, match=f'archive = "{rig.there}"'):
        begin(Recalls(None), rig)


async def test_only_the_last_ended_recalls_are_kept(
    rig: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ENDED_MOST", 0)
    put(rig.store, OTHER_NAME, b"other")
    await rig.tiers().archive(OTHER)
    recalls = Recalls(rig.tiers())
    await recalled(recalls, rig)
    state = begin(recalls, rig, OTHER)
    assert recalls.states == [state]
