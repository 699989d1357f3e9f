"""Probing of segments for their catalogue entries, in worker processes if there are many."""

import contextlib
import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from fpvcar.library.index import Stamp, stamp_of
from fpvcar.library.recording_index import UNREADABLE, unreadable_entry
from fpvcar.library.summaries import entry_of

MANY, CHUNK = 500, 32
"""Number of segments from which worker processes are used, and the size of their batches."""


class ProbeJob(NamedTuple):
    """Segment to probe, and its name on the page."""

    path: str
    key: str


def key_of(path: str) -> str:
    """Return the name of a segment on the page, unique among all cars.

    The name is the file's, with the car's folder in place of the car's name, because two cars may
    have the same name. A second segment of the same name has its checksum in its session's name.
    """
    folder, _, session, name = path.split("/")
    recording, dot, checksum = session.partition(".")
    number = name.removeprefix(recording)
    began = recording.rpartition("-")[2]
    return f"{folder}-{began}{dot}{checksum}{number}"


def probe(job: ProbeJob) -> bytes:
    """Return the Entry of one segment as JSON, so that no process encodes it twice. The entry of
    an unreadable segment contains the fault."""
    path, stamp = Path(job.path), Stamp(0, 0, 0)
    try:
        stamp = stamp_of(path.stat())
        entry = entry_of(path)
    except UNREADABLE as fault:
        entry = unreadable_entry(path, stamp, fault)
    return msgspec.json.encode(msgspec.structs.replace(entry, name=job.key))


@contextlib.contextmanager
def prober(count: int) -> Iterator[Callable[[Iterable[ProbeJob]], Iterator[bytes]]]:
    """Yield a function that probes `count` segments; from MANY on it uses one process per
    processor."""
    if count < MANY:
        yield partial(map, probe)
        return
    # The station has threads: a forked copy of a thread that holds a lock would hang.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    with ProcessPoolExecutor(os.cpu_count(), context) as pool:
        yield partial(pool.map, probe, chunksize=CHUNK)
