"""Keeper of the sidecars: has them written once a session is complete, and mended if they are lost,
stale or damaged.

A process of its own does the work, so that the station's page and transfers are not delayed, and a
failure there cannot affect them.
"""

import contextlib
import logging
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from fpvcar.runtime.texts import PROGRAM_EXIT, SAYS, Text
from fpvstation.catalogue.catalogue import Catalogue
from fpvstation.query import sidecar
from fpvstation.query.sidecar import Job
from fpvstation.store.replica_log import ReplicaLog
from fpvstation.store.store import Store
from fpvstation.store.sums_file import StoredSegment

FOLDER = "sidecars"
SETTLED_S = 90.0
"""A session without a new segment for so long is over: a driving car fills one each minute."""
RUN_S = 5.0
"""Longest time of a run, apart from its last session."""
CHECKS = 8
"""Sidecars that are checked in each run, until all are; and again after a day."""
AGAIN_S = 3600.0
"""Pause after a session whose sidecar could not be written."""
DAY_S = 86_400.0
WRITER = ("nice", "-n", "10", sys.executable, "-P", "-m", sidecar.__name__)
OnProgress = Callable[[int, int], None]
log = logging.getLogger("fpvstation")


class _Failure(NamedTuple):
    """Sidecar that could not be written, until `again_s` of the monotonic clock."""

    stem: str
    fault: Text
    again_s: float


class SidecarKeeper:
    """Sidecars of one store. Every call blocks."""

    def __init__(
        self, state: Path, root: Path, store: Store, catalogue: Catalogue, replicas: ReplicaLog
    ) -> None:
        self._root, self._store, self._catalogue = root, store, catalogue
        self._replicas, self.folder = replicas, folder_of(state, store.id)
        self._stems: dict[str, tuple[int, str]] = {}
        """Stamp and stem of each session at the last run."""
        self._failures: dict[str, _Failure] = {}
        self._evicted: set[str] = set()
        """Sessions that are at remotes only; their sidecars stay."""
        self._unchecked: list[str] = []
        self._check_s = 0.0
        self._child: subprocess.Popen[bytes] | None = None
        self._busy = self._ended = False

    def run(self) -> Iterator[Text]:
        """Do the work of RUN_S, and yield a fault for each session whose sidecar could not be
        written. Raises OSError, sqlite3.Error, StationError."""
        began_s = time.monotonic()
        self._busy = False
        for _ in self._do(self._jobs(SETTLED_S, CHECKS)):
            if time.monotonic() - began_s > RUN_S:
                self._busy = True
                break
        yield from self._faults()

    def _faults(self) -> Iterator[Text]:
        for session, failure in self._failures.items():
            yield SAYS(place=session, reason=failure.fault)

    def pause_s(self, took_s: float) -> float:
        """Return the pause after a run that took so long."""
        return 1.0 if self._busy else min(20.0, max(2.0, 50.0 * took_s))

    def end(self) -> None:
        """End the work in progress, from any thread."""
        self._ended = True
        if child := self._child:
            child.kill()

    def rebuild(self, on_progress: OnProgress) -> list[Text]:
        """Check all sidecars, and write those that are lost, stale or damaged; return the faults.
        Raises as `run`."""
        stems = sorted(sidecar.complete(self.folder))
        for done, _ in enumerate(self._do([Job(stem) for stem in stems]), 1):
            on_progress(done, len(stems))
        jobs = self._jobs(0.0, 0)
        for done, _ in enumerate(self._do(jobs), 1):
            on_progress(done, len(jobs))
        return list(self._faults())

    def _jobs(self, settled_s: float, checks: int) -> list[Job]:
        """Return the work to do, and remove the sidecars of removed sessions."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self._stems:  # the first run
            for litter in self.folder.glob("*/month=*/.*.new"):  # of a writer that was killed
                litter.unlink(missing_ok=True)
        complete = sidecar.complete(self.folder)
        there: dict[str, set[str]] = {}
        for stem in complete:
            there.setdefault(sidecar.session_of(stem), set()).add(stem)
        jobs = [Job(stem) for stem in complete - sidecar.indexed(self.folder)]
        stamps, now_s = self._catalogue.stamps(), time.time()
        for session, stamp in stamps.items():
            stems = there.pop(session, set())
            if not 0.0 <= now_s - stamp / 1e9 < settled_s:
                jobs += self._due(session, stamp, stems)
        self._evicted -= stamps.keys()
        for session, stems in there.items():
            if session not in self._evicted and not self._replicas.evicted(session):
                for stem in stems:
                    sidecar.remove(self.folder, stem)
            else:
                self._evicted.add(session)
        self._failures = {key: value for key, value in self._failures.items() if key in stamps}
        if checks and not self._unchecked and time.monotonic() > self._check_s:
            self._unchecked, self._check_s = sorted(complete), time.monotonic() + DAY_S
        jobs += [Job(stem) for stem in self._unchecked[:checks]]
        del self._unchecked[:checks]
        return jobs

    def _due(self, session: str, stamp: int, stems: set[str]) -> Iterator[Job]:
        """Yield the job of a session whose sidecar is lost or stale."""
        last = self._stems.get(session)
        if last and last[0] == stamp and last[1] in stems:
            return
        listed, evicted = self._store.listed(session), self._replicas.evicted(session)
        gone = (StoredSegment(f"{session}/{name}", sha) for name, sha in evicted.items())
        stem = sidecar.stem_of(session, {*listed, *gone})
        failure = self._failures.get(session)
        if stem in stems:
            self._stems[session] = stamp, stem
        elif failure and failure.stem == stem and time.monotonic() < failure.again_s:
            return
        elif listed and not (evicted and stems) and not self._store.is_away(session):
            yield Job(stem, sorted(str(self._root / segment.path) for segment in listed))

    def _do(self, jobs: Sequence[Job]) -> Iterator[None]:
        """Have the jobs done; yield after each. A writer that ends costs the session it wrote."""
        waiting = deque(jobs)
        while waiting and not self._ended:
            with subprocess.Popen(
                [*WRITER, str(self.folder)],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            ) as self._child:
                assert self._child.stdin and self._child.stdout
                answer = b"\n"
                while answer and waiting:
                    job = waiting.popleft()
                    with contextlib.suppress(BrokenPipeError):
                        self._child.stdin.write(msgspec.json.encode(job) + b"\n")
                    answer = self._child.stdout.readline()
                    if answer:
                        fault = msgspec.json.decode(answer, type=Text | None)
                    else:
                        status = self._child.wait()
                        fault = PROGRAM_EXIT(program="sidecar", status=status)
                    if answer or not self._ended:  # else `end` killed it
                        self._note(job, fault)
                    yield

    def _note(self, job: Job, fault: Text | None) -> None:
        session = sidecar.session_of(job.stem)
        if not job.segments:
            if fault:
                log.warning("%s: its sidecar is written again: %s", session, fault)
        elif fault:
            self._failures[session] = _Failure(job.stem, fault, time.monotonic() + AGAIN_S)
        else:
            self._failures.pop(session, None)


def folder_of(state: Path, store_id: str) -> Path:
    """Return the folder of a store's sidecars, beside the catalogue."""
    return state / FOLDER / store_id
