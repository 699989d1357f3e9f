"""Start and stop of a baseline's server."""

import contextlib
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from tests.e2e.harness import free_port, wait_for


def _answers(url: str) -> bool:
    with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=1):
        return True
    return False


@contextmanager
def serving(module: str, page: str, fps: float, host: str = "localhost") -> Iterator[str]:
    """Serve benchmarks.MODULE within the context; yield the URL of a page."""
    port = free_port()
    arguments = ["-m", f"benchmarks.{module}", f"--port={port}", f"--fps={fps}"]
    arguments += [] if host == "localhost" else [f"--host={host}"]
    server = subprocess.Popen([sys.executable, *arguments], start_new_session=True)
    url = f"http://{host}:{port}/"
    try:
        wait_for(lambda: _answers(url + page), f"{module} does not serve", 20.0, 0.1)
        yield url + page
    finally:
        server.kill()
        server.wait()
