"""Work on a session of a whole-store job, in a Dask worker.

    batch.py -> scheduler -> worker: run(job) -> child process: tasks.py

A thread of Python cannot be ended: a session that hangs, crashes or needs too much memory ends the
child, and the worker starts another one.
"""

import os
import select
import subprocess
import sys
import tempfile
import threading
from typing import Any

import msgspec

from fpvstation.store.sums_file import StoredSegment

CHILD = ("nice", "-n", "10", sys.executable, "-P", "-m", "fpvstation.batch.tasks")
GOOD, INCOMPLETE, BAD, FAILED = "good", "incomplete", "bad", "failed"
_thread = threading.local()


class Job(msgspec.Struct):
    """Work on one session of `size` bytes. `root`: folder of the store; `version`: that of fpvcar
    on the client. The other fields are options of `fpvstation batch`."""

    session: str
    segments: list[StoredSegment]
    root: str
    size: int
    version: str
    kind: str
    limit_s: float
    memory_mb: int
    bucket: str = ""
    sql: str = ""
    form: str | None = None
    out: str = ""
    page: str = ""
    scratch: str = ""
    """Temporary folder; `run` sets it."""


class Outcome(msgspec.Struct):
    """Result for one session; `lines` are for people. `again`: another attempt may succeed."""

    session: str
    result: str
    lines: list[str] = []
    columns: list[str] = []
    rows: list[list[Any]] = []
    again: bool = False


def run(job: Job) -> Outcome:
    """Have a child process do a job within its limits. Raises OSError for a fault after which
    Dask tries again."""
    from distributed import get_worker

    with tempfile.TemporaryDirectory(dir=get_worker().local_directory) as job.scratch:
        child = _child()
        try:
            outcome = _answer(child, job)
        except BaseException:
            child.kill()
            child.wait()
            raise
    if outcome.again:
        raise OSError("; ".join(outcome.lines))
    return outcome


def _child() -> subprocess.Popen[bytes]:
    """Return this thread's child process, started if there is none."""
    child: subprocess.Popen[bytes] | None = getattr(_thread, "child", None)
    if child is None or child.poll() is not None:
        # A group of its own: Ctrl-C in a terminal ends it through its worker only.
        pipe = subprocess.PIPE
        child = subprocess.Popen(CHILD, stdin=pipe, stdout=pipe, process_group=0)
        _thread.child = child
    return child


def _answer(child: subprocess.Popen[bytes], job: Job) -> Outcome:
    assert child.stdin and child.stdout
    child.stdin.write(msgspec.json.encode(job) + b"\n")
    child.stdin.flush()
    if not select.select([child.stdout], [], [], job.limit_s)[0]:
        child.kill()
        child.wait()
        text = f"ended after {job.limit_s:g} s: --limit S allows more"
        return Outcome(job.session, FAILED, [text])
    answer = child.stdout.readline()
    if not answer.endswith(b"\n"):
        raise OSError(f"its process on {os.uname().nodename} ended with {child.wait()}")
    return msgspec.json.decode(answer, type=Outcome)
