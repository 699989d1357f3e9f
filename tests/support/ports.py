"""Free TCP ports for tests and benchmarks, of which several processes run at the same time."""

import os
import socket

_LOW, _HIGH = 20_000, 31_900  # below ephemeral ports, and pigpio takes at most 32000
_reserved: list[socket.socket] = []


def _reserve(port: int) -> bool:
    """Reserve a port, in its network namespace, until this process ends.

    A server takes its port later than the test has chosen it, and once more after a restart.
    """
    claim = socket.socket(socket.AF_UNIX)
    try:
        claim.bind(f"\0fpvcar-test-port-{port}")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
    except OSError:
        claim.close()
        return False
    _reserved.append(claim)
    return True


def free_port() -> int:
    """Reserve a free port, and the one after it, for https."""
    for port in range(_LOW + os.getpid() % 1000 * 10, _HIGH):
        if _reserve(port):
            if _reserve(port + 1):
                return port
            _reserved.pop().close()
    raise RuntimeError(f"no free port up to {_HIGH}")
