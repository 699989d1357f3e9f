"""Start and stop of a rival's server."""

import contextlib
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.e2e.harness import wait_for
from tests.support.ports import free_port


def _answers(url: str) -> bool:
    with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=1):
        return True
    return False


@contextmanager
def serving(module: str, page: str, fps: float, host: str = "localhost") -> Iterator[str]:
    """Serve benchmarks.baselines.MODULE within the context; yield the URL of a page."""
    port = free_port()
    arguments = ["-m", f"benchmarks.baselines.{module}", f"--port={port}", f"--fps={fps}"]
    arguments += [] if host == "localhost" else [f"--host={host}"]
    url = f"http://{host}:{port}/{page}"
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
