"""Notifications of a service to systemd: readiness, and the watchdog of its loop.

Without systemd ($NOTIFY_SOCKET is not set) no message is sent. See sd_notify(3).
"""

import os
import socket


def notify(state: str) -> None:
    """Send a state, as "READY=1", to the service manager; never waits."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.setblocking(False)
        try:
            sock.sendto(state.encode(), address.replace("@", "\0", 1))
        except OSError:
            pass  # the queue is full: the next beat sends it


def watchdog_ns() -> int | None:
    """Return the interval for the unit's watchdog, half of WatchdogSec, or None if it is off."""
    us = os.environ.get("WATCHDOG_USEC", "")
    pid = os.environ.get("WATCHDOG_PID", str(os.getpid()))
    return int(us) * 500 if us.isdecimal() and pid == str(os.getpid()) else None


class Heartbeat:
    """Heartbeat for the unit's watchdog, sent from an event loop."""

    def __init__(self, every_ns: int | None) -> None:
        self._every_ns = every_ns
        self.due_ns = None if every_ns is None else 0
        """Time of the next beat, by the loop's clock; None: never."""

    def beat(self, now_ns: int) -> None:
        """Send a beat if it is due; call this in each round of the loop."""
        if self._every_ns is not None and now_ns >= (self.due_ns or 0):
            self.due_ns = now_ns + self._every_ns
            notify("WATCHDOG=1")
