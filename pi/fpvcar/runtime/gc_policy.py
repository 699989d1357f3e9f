"""Garbage collection policy of `run`: no full collection while the car drives.

A full collection visits every object created after the start: 70 ms with 256 connections on 2 cores
of x86-64, most of the time that the wheels wait for the next setpoint. So full collections wait
until the car stands; young objects are collected all the time.
"""

import gc
from collections.abc import Callable

from fpvcar.runtime.service import aligned_sleep

CHECK_S = 1.0
COLLECT_AT = 20
"""Collections of the middle generation since the last full one; Python's default is 10."""
COLLECT_EVEN_DRIVING_AT = 1000
"""Seven million more objects were created than freed: a pause is better than running out of
memory."""


def hold_back() -> None:
    """Exclude all current objects from collection; delay full collections."""
    gc.collect()
    gc.freeze()
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, COLLECT_EVEN_DRIVING_AT)


async def collect_while(still: Callable[[], bool]) -> None:
    """Run due full collections while the car stands."""
    while True:
        await aligned_sleep(CHECK_S)
        if gc.get_count()[2] >= COLLECT_AT and still():
            gc.collect()
