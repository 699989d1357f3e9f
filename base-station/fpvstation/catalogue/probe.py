"""Looks into segments: what the catalogue says of each. It runs in other processes,
too, where many are to be looked into.
"""

import contextlib
import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from fpvcar.recordings.library.index import Stamp, stamp_of
from fpvcar.recordings.library.recording_index import UNREADABLE, unreadable_entry
from fpvcar.recordings.library.summaries import entry_of

MANY, CHUNK = 500, 32
"""From how many on other processes look, and how many each gets at once."""


class Look(NamedTuple):
    """A segment to look into, and the name that it has on the page."""

    path: str
    key: str


def key_of(path: str) -> str:
    """The name of a segment on the page, where all cars' segments are: that of the
    file, with the car's folder in place of its name, which another car may have, too.

    A second one of the same name has its checksum in its session's name.
    """
    folder, _, session, name = path.split("/")
    recording, dot, checksum = session.partition(".")
    number = name.removeprefix(recording)
    began = recording.rpartition("-")[2]
    return f"{folder}-{began}{dot}{checksum}{number}"


def look(one: Look) -> bytes:
    """What a list shows of one segment, an Entry, as JSON, so that no process makes it
    twice; one that cannot be read says so."""
    path, stamp = Path(one.path), Stamp(0, 0, 0)
    try:
        stamp = stamp_of(path.stat())
        entry = entry_of(path)
    except UNREADABLE as fault:
        entry = unreadable_entry(path, stamp, fault)
    return msgspec.json.encode(msgspec.structs.replace(entry, name=one.key))


@contextlib.contextmanager
def lookers(count: int) -> Iterator[Callable[[Iterable[Look]], Iterator[bytes]]]:
    """What looks into `count` segments: many are for a process on each processor."""
    if count < MANY:
        yield partial(map, look)
        return
    # The station has threads: a forked copy of one that holds a lock would hang.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    with ProcessPoolExecutor(os.cpu_count(), context) as pool:
        yield partial(pool.map, look, chunksize=CHUNK)
