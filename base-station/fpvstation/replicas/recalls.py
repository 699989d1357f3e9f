"""Recalls that a person starts on the page: one after the other, each with its progress.

    begin -> waiting -> copying -> verifying -> done | failed
    cancel:  waiting or copying -> cancelled; the copied bytes stay for the next try

Each recall has an event loop of its own in a thread, as on the command line: the lock of the tiers
is released after all of its threads have ended.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Literal

import msgspec

from fpvcar.runtime.texts import SAYS, Phrase, Text, fault_text, segments
from fpvstation.errors import INTERNAL, StationError
from fpvstation.fetch.rate import Rate
from fpvstation.replicas.recall import NO_ARCHIVE
from fpvstation.replicas.remote import MAKE_ROOM, CopyProgress, PlaceFault
from fpvstation.replicas.tiers import Tiers, TiersBusy
from fpvstation.store.archived import ArchivedSession
from fpvstation.store.identity import FULL

BUSY_S = 2.0
"""Pause while the archive is busy with another session."""
ENDED_MOST = 50
"""Ended recalls that are kept for the page."""
ACTIVE = "waiting", "copying", "verifying"
RECALL_LOST = Phrase(
    "recall_lost",
    "{count} bad or missing in {place} ({first}): fetched again if the car or a remote has it",
)
log = logging.getLogger("fpvstation")


class RecallState(msgspec.Struct):
    """Progress of one recall, for the page."""

    session: str
    drives: list[str]
    """Ids of the session's drives on the page."""
    place: str
    total: int
    """Bytes of the whole session."""
    state: Literal["waiting", "copying", "verifying", "done", "cancelled", "failed"] = "waiting"
    done: int = 0
    """Bytes that have arrived here."""
    rate: float = 0.0
    """Bytes per second while it copies."""
    fault: Text | None = None
    """Reason of the failure; after "done" the segments that are lost in the archive."""

    @property
    def active(self) -> bool:
        return self.state in ACTIVE


class _Recall:
    """Recall of one session; `run` blocks, and `cancel` may be called from any thread."""

    def __init__(self, state: RecallState) -> None:
        self.state, self.cancelled, self._rate = state, False, Rate()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None

    def cancel(self) -> None:
        self.cancelled = True
        if self._loop:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._stop)

    def _stop(self) -> None:
        """Stop the copy. A session whose copy is complete comes back."""
        if self._task and self.state.state not in ("verifying", "done"):
            self._task.cancel()

    def run(self, tiers: Tiers) -> None:
        """Bring the session back. Raises TiersBusy, and the exceptions of Tiers.recall."""
        with tiers.alone(), contextlib.suppress(asyncio.CancelledError):
            asyncio.run(self._bring_back(tiers))
        if self.state.active:
            self.state.state, self.state.rate = "cancelled", 0.0

    async def _bring_back(self, tiers: Tiers) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        if self.cancelled:
            return
        state = self.state
        state.state = "copying"
        lost = await tiers.recall(state.session, self._on_progress)
        if lost:
            count, place = segments(len(lost)), state.place
            state.fault = RECALL_LOST(count=count, place=place, first=lost[0])
        state.state, state.done, state.rate = "done", state.total, 0.0

    def _on_progress(self, progress: CopyProgress) -> None:
        state = self.state
        state.done, state.total = progress.done, progress.total or state.total
        state.rate = self._rate.add(progress.done, time.monotonic())
        if progress.done == progress.total:
            state.state, state.rate = "verifying", 0.0


class Recalls:
    """Queue of the recalls of one store."""

    def __init__(
        self, tiers: Tiers | None = None, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        """Set the tiers; None for a station without an archive in its settings."""
        self._tiers, self._sleep = tiers, sleep
        self._recalls: dict[str, _Recall] = {}
        self._begun = asyncio.Event()

    @property
    def states(self) -> list[RecallState]:
        return [recall.state for recall in self._recalls.values()]

    def begin(self, session: str, drives: list[str], record: ArchivedSession) -> RecallState:
        """Queue an archived session, unless it is queued already. Raises StationError."""
        if self._tiers is None:
            raise StationError(NO_ARCHIVE(session=session, place=record.place))
        old = self._recalls.get(session)
        if old and old.state.active and not old.cancelled:
            return old.state
        ended = [name for name, recall in self._recalls.items() if not recall.state.active]
        for name in {*ended[: max(0, len(ended) - ENDED_MOST)], session}:
            self._recalls.pop(name, None)
        state = RecallState(session, drives, record.place, sum(record.sizes.values()))
        self._recalls[session] = _Recall(state)
        self._begun.set()
        return state

    def cancel(self, drive: str) -> RecallState | None:
        """Cancel the recall of a drive's session; None if there is no recall."""
        for recall in self._recalls.values():
            if drive in recall.state.drives:
                if recall.state.state == "waiting":
                    recall.state.state = "cancelled"
                recall.cancel()
                return recall.state
        return None

    async def run(self) -> None:
        """Recall the queued sessions until cancelled."""
        while True:
            waiting = [one for one in self._recalls.values() if one.state.state == "waiting"]
            if waiting:
                await self._one(waiting[0])
            else:
                self._begun.clear()
                await self._begun.wait()

    async def _one(self, recall: _Recall) -> None:
        state, tiers = recall.state, self._tiers
        assert tiers  # checked by `begin`
        try:
            await asyncio.to_thread(recall.run, tiers)
            log.info("%s: recall from %s: %s", state.session, state.place, state.state)
        except asyncio.CancelledError:
            recall.cancel()
            raise
        except TiersBusy:
            await self._sleep(BUSY_S)
        except (PlaceFault, StationError, OSError) as fault:
            full = isinstance(fault, OSError) and fault.errno in FULL
            text = fault_text(fault)
            self._fail(state, SAYS(place=text, reason=MAKE_ROOM()) if full else text)
        except Exception as fault:  # a defect here must not end the station
            log.exception("%s", state.session)
            self._fail(state, INTERNAL(reason=repr(fault)))

    def _fail(self, state: RecallState, fault: Text) -> None:
        log.warning("%s: not recalled: %s", state.session, fault)
        state.state, state.fault, state.rate = "failed", fault, 0.0
