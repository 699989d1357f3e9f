"""When `run` collects garbage: not while the wheels turn.

A full collection goes through every object that is younger than the start: 70 ms with
256 connections on 2 cores of x86-64, most of the time that the wheels wait for the next
setpoint. So it waits until they stand; young objects are collected all the while.
"""

import gc
from collections.abc import Callable

from fpvcar.runtime.aligned_timer import aligned_sleep

LOOK_S = 1.0
COLLECT_AT = 20
"""Collections of the middle generation since the last full one; Python's own is 10."""
COLLECT_EVEN_DRIVING_AT = 1000
"""Seven million objects more were made than freed: rather a pause than no memory."""


def hold_back() -> None:
    """What lives now is never gone through again; full collections come late."""
    gc.collect()
    gc.freeze()
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, COLLECT_EVEN_DRIVING_AT)


async def collect_while(still: Callable[[], bool]) -> None:
    """Collects what has gathered, while the wheels stand."""
    while True:
        await aligned_sleep(LOOK_S)
        if gc.get_count()[2] >= COLLECT_AT and still():
            gc.collect()
