"""Free TCP ports and numbers for tests and benchmarks, of which several processes run at the same
time."""

import atexit
import os
import socket

_LOW, _HIGH = 20_000, 31_900  # below ephemeral ports, and pigpio takes at most 32000
_reserved: list[socket.socket] = []


@atexit.register
def _release() -> None:
    """Close the sockets; Python would warn of each."""
    while _reserved:
        _reserved.pop().close()


def reserve(name: str) -> bool:
    """Reserve a name, in its network namespace, until this process ends."""
    claim = socket.socket(socket.AF_UNIX)
    try:
        claim.bind(f"\0fpvcar-test-{name}")
    except OSError:
        claim.close()
        return False
    _reserved.append(claim)
    return True


def _reserve(port: int) -> bool:
    """Reserve a port if it is free.

    A server takes its port later than the test has chosen it, and once more after a restart.
    """
    if not reserve(f"port-{port}"):
        return False
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            _reserved.pop().close()
            return False
    return True


def free_port() -> int:
    """Reserve a free port, and the one after it, for https."""
    for port in range(_LOW + os.getpid() % 1000 * 10, _HIGH):
        if _reserve(port):
            if _reserve(port + 1):
                return port
            _reserved.pop().close()
    raise RuntimeError(f"no free port up to {_HIGH}")
