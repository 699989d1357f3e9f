"""Child process of a Dask worker: replay, verify, export or query of one session after the other.

    python -m fpvstation.batch.tasks

reads a Job per line from stdin, and prints its Outcome. It ends when stdin does, at once.
"""

import asyncio
import contextlib
import functools
import io
import itertools
import os
import queue
import resource
import shutil
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

import msgspec

from fpvcar import __version__
from fpvcar.library.drives import Drive, drives_of
from fpvcar.recordings.export import export
from fpvcar.recordings.export.tables import utc_text
from fpvcar.recordings.mcap.parsing import RecordError, RecordingError
from fpvcar.recordings.repair.damage import INCOMPLETE as INCOMPLETE_STATUS
from fpvcar.recordings.replay.drives import ReplayedDrive, replay_drives
from fpvcar.runtime.units import MB
from fpvstation.batch.session_job import BAD, FAILED, GOOD, INCOMPLETE, Job, Outcome
from fpvstation.catalogue.probe import ProbeJob, key_of, probe
from fpvstation.catalogue.search import entry_in
from fpvstation.errors import StationError
from fpvstation.query import output, sidecar
from fpvstation.query.engine import Engine
from fpvstation.query.keeper import folder_of
from fpvstation.replicas.remote import PlaceFault
from fpvstation.replicas.s3 import S3
from fpvstation.store.disk import sha256_of
from fpvstation.store.identity import MARKER

DIFFERENCES_MOST = 1000
"""Differences of a session that are listed."""
LEAD_S = 1.0
"""A link opens so long before its moment."""
RESULTS = {0: GOOD, INCOMPLETE_STATUS: INCOMPLETE}
STORE = "batch"


def replay(job: Job) -> Outcome:
    """Run each drive through this build's gate."""
    lines, statuses, files = list[str](), set[int](), _files(job)
    probes = [
        ProbeJob(str(path), key_of(segment.path))
        for path, segment in zip(files, job.segments, strict=True)
    ]
    listed = functools.cache(lambda: drives_of(entry_in(probe(one)) for one in probes))
    for drive in replay_drives(files, lines.append, DIFFERENCES_MOST):
        statuses.add(drive.status)
        lines += _differences(drive, lambda at_ns: f"{job.page}/{_address(listed(), at_ns)}")
    status = 1 if 1 in statuses or not statuses else max(statuses)
    return _judged(Outcome(job.session, RESULTS.get(status, BAD), lines), job, files)


def _address(drives: Sequence[Drive], at_ns: int) -> str:
    """Return the address on the page of a second before a time, UTC. Newest drive first."""
    drive = next((drive for drive in drives if drive.start_ms <= at_ns / 1e6), drives[-1])
    at_s = max(0.0, (at_ns / 1e6 - drive.start_ms) / 1e3 - LEAD_S)
    return f"#{quote(drive.id, safe='')}&at={at_s:.1f}"


def _differences(drive: ReplayedDrive, link: Callable[[int], str]) -> Iterator[str]:
    """Yield a line for each step that differs. `link`: URL of a time, UTC in ns."""
    result = drive.result
    if result is None or not result.steps:
        yield f"{drive.files[-1].name}: {drive.fault or 'contains no steps of the gate'}"
        return
    if result.unsure:
        yield f"guard not rerun in {result.unsure:,} of {result.steps:,} steps: readings missing"
    yield from (
        f"steps are missing from {hole.from_s:.3f} to {hole.to_s:.3f} s" for hole in result.holes
    )
    for at_ns, differences in itertools.groupby(
        result.differences, lambda difference: difference.step.now_ns
    ):
        values = list(differences)
        utc_ns = drive.utc_ns(at_ns)
        text = "; ".join(f"{one.name} {one.recorded}, rerun {one.replayed}" for one in values)
        yield f"{utc_text(utc_ns)} {link(utc_ns)} {text}"
    if more := result.differing - len(result.differences):
        yield f"... and {more:,} more"


def verify(job: Job) -> Outcome:
    """Read all segments, and compare their checksums; change nothing."""
    if job.bucket:
        bad = asyncio.run(S3(job.bucket, Path(job.scratch)).check(job.session, job.segments))
    else:
        bad = _bad_in(job, _files(job))
    return Outcome(job.session, BAD if bad else GOOD, _named(job, bad))


def _bad_in(job: Job, files: Sequence[Path]) -> list[str]:
    """Read all files; return the names of those that differ from the list, or are missing."""
    return [
        path.name
        for path, segment in zip(files, job.segments, strict=True)
        if not path.is_file() or sha256_of(path) != segment.sha256
    ]


def _named(job: Job, bad: Sequence[str]) -> list[str]:
    return [f"{name}: bad or missing: fpvstation verify {job.session}" for name in sorted(bad)]


def _judged(outcome: Outcome, job: Job, files: Sequence[Path]) -> Outcome:
    """Return the outcome of a session that was read as far as possible: it is incomplete if a file
    differs from its list."""
    if bad := _bad_in(job, files):
        outcome.lines += _named(job, bad)
        outcome.result = INCOMPLETE if outcome.result == GOOD else outcome.result
    return outcome


def export_session(job: Job) -> Outcome:
    """Write the tables, or the film, of a session; one that is there already stays."""
    out = Path(job.out, job.session + (".mp4" if job.form == "mp4" else ""))
    if out.exists():
        lines = [f"{out} exists already"]
        return _judged(Outcome(job.session, GOOD, lines), job, _files(job))
    out.parent.mkdir(parents=True, exist_ok=True)
    files = _files(job)
    for litter in out.parent.glob(f".{out.name}-*"):  # of an attempt that was killed
        shutil.rmtree(litter)
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        status = export.run(job.form or "", out, files, False)
    lines = [line for line in said.getvalue().splitlines() if not line.endswith(" left")]
    return _judged(Outcome(job.session, RESULTS.get(status, BAD), lines), job, files)


def query(job: Job) -> Outcome:
    """Answer a query over the samples and events of this session alone."""
    stem = sidecar.stem_of(job.session, job.segments)
    folder = folder_of(Path(job.scratch), STORE)
    folder.mkdir(parents=True)
    files = _files(job)
    sidecar.write(folder, sidecar.Job(stem, [str(path) for path in files]))
    engine = Engine(Path(job.scratch), STORE, max(32, job.memory_mb // 2), 1)
    result = engine.query(job.sql)
    rows = [[output.json_value(cell) for cell in row] for row in result.rows]
    return _judged(Outcome(job.session, GOOD, [], result.columns, rows), job, files)


def _files(job: Job) -> list[Path]:
    """Return the segments of a session, in sequence, where this machine can read them. Raises
    StationError, PlaceFault."""
    if not job.bucket:
        if not Path(job.root, MARKER).exists():
            raise StationError(
                f"{os.uname().nodename} has no store {job.root}: mount it there, or --bucket"
            )
        return [Path(job.root, segment.path) for segment in job.segments]
    paths = asyncio.run(S3(job.bucket, Path(job.scratch)).fetch(job.session))
    wanted = [segment.path.rpartition("/")[2] for segment in job.segments]
    if missing := [name for name in wanted if name not in paths]:
        raise StationError(f"{job.bucket}: {job.session}/{missing[0]} is missing there")
    return [Path(job.scratch, paths[name]) for name in wanted]


KINDS: dict[str, Callable[[Job], Outcome]] = {
    "replay": replay,
    "verify": verify,
    "export": export_session,
    "query": query,
}


def outcome_of(job: Job) -> Outcome:
    """Do a job; a fault is its outcome."""
    resource.setrlimit(resource.RLIMIT_DATA, (job.memory_mb * MB, resource.RLIM_INFINITY))
    try:
        if job.version != __version__:
            raise StationError(
                f"fpvcar {__version__} on {os.uname().nodename}, expected {job.version}: install it"
            )
        return KINDS[job.kind](job)
    except MemoryError:
        text = f"needs more than {job.memory_mb} MB: --memory MB allows more"
        return Outcome(job.session, FAILED, [text])
    except (RecordError, RecordingError) as fault:
        return Outcome(job.session, BAD, [str(fault)])
    except StationError as fault:
        return Outcome(job.session, FAILED, [str(fault)])
    except (PlaceFault, OSError) as fault:
        return Outcome(job.session, FAILED, [str(fault)], again=True)
    except Exception as fault:  # a defect must cost this session only
        return Outcome(job.session, FAILED, [f"internal fault: {fault!r}"])


def main() -> None:
    """Do the jobs on stdin until it ends."""
    jobs = queue.SimpleQueue[bytes]()
    threading.Thread(target=_receive, args=(jobs,), daemon=True).start()
    while True:
        outcome = outcome_of(msgspec.json.decode(jobs.get(), type=Job))
        sys.stdout.buffer.write(msgspec.json.encode(outcome) + b"\n")
        sys.stdout.flush()


def _receive(jobs: queue.SimpleQueue[bytes]) -> None:
    for line in sys.stdin.buffer:
        jobs.put(line)
    os._exit(1)  # the worker is gone: a session in progress is of no use


if __name__ == "__main__":
    main()
