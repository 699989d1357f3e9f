"""What a service tells systemd: that it is ready, and that its loop goes round.

Without systemd ($NOTIFY_SOCKET is not set) nothing is told. See sd_notify(3).
"""

import os
import socket


def notify(state: str) -> None:
    """Sends a state, as "READY=1", to whoever started this service; never waits."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.setblocking(False)
        try:
            sock.sendto(state.encode(), address.replace("@", "\0", 1))
        except OSError:
            pass  # its queue is full: the next beat tells it


def watchdog_ns() -> int | None:
    """How often to feed the unit's watchdog: half of WatchdogSec. None: it has none."""
    us = os.environ.get("WATCHDOG_USEC", "")
    pid = os.environ.get("WATCHDOG_PID", str(os.getpid()))
    return int(us) * 500 if us.isdecimal() and pid == str(os.getpid()) else None


class Beat:
    """Feeds the unit's watchdog as often as it wants, from a loop that goes round."""

    def __init__(self, every_ns: int | None) -> None:
        self._every_ns = every_ns
        self.due_ns = None if every_ns is None else 0
        """When to feed it next, by the loop's clock; None: never."""

    def beat(self, now_ns: int) -> None:
        """Called by each round of the loop."""
        if self._every_ns is not None and now_ns >= (self.due_ns or 0):
            self.due_ns = now_ns + self._every_ns
            notify("WATCHDOG=1")
