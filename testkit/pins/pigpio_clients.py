"""Helpers for tests with real clients of pigpiod: parts of the emulator, waits, and clean-up."""

import threading
import time
from collections.abc import Callable
from typing import Any

TRIGGER, ECHO = 20, 21
WIRES = ((22, 27), (9, 10))
MCP3008_SELECT = 7
SHARES = (0.25, 0.5, 0.75)
"""Voltages at the MCP3008's inputs, as shares of the reference."""
LIMIT_S = 10.0


def until(true: Callable[[], object]) -> bool:
    """Wait for a condition, far longer than it should take."""
    end_s = time.monotonic() + LIMIT_S
    while not true():
        if time.monotonic() > end_s:
            return False
        time.sleep(0.005)
    return True


def stop(client: Any) -> None:
    """Stop a client and wait until its thread has read the answer to its NC."""
    thread = client._notify
    client.stop()
    thread.join(LIMIT_S)
    assert not thread.is_alive()


def settled(client: Any, batches: int = 3) -> None:
    """Return when everything so far was reported: an event follows it."""
    come = threading.Semaphore(0)
    listener = client.event_callback(30, lambda event, tick: come.release())
    for _ in range(batches):
        client.event_trigger(30)
        assert come.acquire(timeout=LIMIT_S)
    listener.cancel()
