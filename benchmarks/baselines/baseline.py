"""Start and stop of a rival's server."""

import contextlib
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from testkit.harness import wait_for
from testkit.network.ports import free_port


def _answers(url: str) -> bool:
    with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=1):
        return True
    return False


@contextmanager
def serving(fps: float, host: str = "127.0.0.1") -> Iterator[str]:
    """Serve the rival as shipped, webrtc.py, within the context; yield the URL of its page."""
    port = free_port()
    options = [f"--port={port}", f"--fps={fps}", f"--host={host}"]
    arguments = ["-m", "benchmarks.baselines.webrtc", *options]
    url = f"http://{host}:{port}/"
    with started([sys.executable, *arguments], url):
        yield url


@contextmanager
def started(argv: Sequence[str], url: str) -> Iterator[int]:
    """Run a server within the context; yield its process id when it answers at `url`."""
    server = subprocess.Popen(argv, start_new_session=True)
    try:
        wait_for(lambda: _answers(url), f"no answer from {url}", 20.0, 0.1)
        yield server.pid
    finally:
        server.kill()
        server.wait()
