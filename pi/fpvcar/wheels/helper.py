"""The root helper that lets go of the motor pins, as `wheels` and `run` ask for it.

Connecting to its socket is the whole request: systemd (on the bench, its stand-in)
starts a helper for each, so that one which hangs holds up no other. The helper turns
the motor pins to inputs with pull-down and has the pin daemon restarted.
"""

import logging
import socket
from pathlib import Path

SOCKET = "pins-off.sock"
log = logging.getLogger("fpvcar.wheels")


def ask_helper(path: Path) -> None:
    """Asks for a helper, without waiting. What is wrong is logged after that."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as helper:
        helper.setblocking(False)
        try:
            helper.connect(str(path))
        except OSError as fault:
            log.error("no helper at %s: %s", path, fault.strerror or fault)
        else:
            log.error("asked the helper to let go of the motor pins")
