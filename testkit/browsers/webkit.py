"""Control of WebKitGTK's MiniBrowser by WebDriver (W3C), on a display of its own.

The frame clock of WebKitGTK needs a switch without a GPU. It stands in for Safari's engine, not for
Safari's media source, autoplay or TLS.
"""

import base64
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from benchmarks.rdma.bidi import Finger, Keys

from testkit.harness import wait_for
from testkit.network.ports import free_port

DRIVER = "/usr/bin/WebKitWebDriver"
EVALUATE = """const done = arguments[arguments.length - 1];
(async () => JSON.stringify((await (%s)) ?? null))().then(
  (text) => done({text}), (fault) => done({fault: String(fault)}));"""


class WebKitTab:
    """Tab of a MiniBrowser, with the interface of bidi.py's."""

    def __init__(self, port: int) -> None:
        self._port, self._session = port, ""
        self.keyboard, self.finger = Keys(self._perform), Finger(self._perform)
        program = str(next(Path("/usr/lib").glob("*/webkit2gtk-4.1/MiniBrowser")))
        options = {
            "acceptInsecureCerts": True,
            "webkitgtk:browserOptions": {"binary": program, "args": ["--automation"]},
        }
        answer = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": options}})
        self._session = f"/session/{answer['sessionId']}"
        self.version = str(answer["capabilities"]["browserVersion"])

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        text = None if body is None else json.dumps(body)
        with closing(HTTPConnection("127.0.0.1", self._port, timeout=60)) as connection:
            connection.request(method, f"{self._session}{path}", text)
            answer = json.loads(connection.getresponse().read())["value"]
        if isinstance(answer, dict) and "error" in answer:
            raise RuntimeError(f"{path}: {answer['error']}: {answer['message']}")
        return answer

    def _perform(self, source: dict[str, object]) -> None:
        self._ask("POST", "/actions", {"actions": [source]})

    def goto(self, url: str) -> None:
        """Open a page and wait until it is loaded."""
        self._ask("POST", "/url", {"url": url})

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression, by JSON."""
        body = {"script": EVALUATE % expression, "args": []}
        answer = self._ask("POST", "/execute/async", body)
        if "fault" in answer:
            raise RuntimeError(answer["fault"])
        return json.loads(answer["text"])

    def screenshot(self) -> bytes:
        """Return the page as PNG."""
        return base64.b64decode(self._ask("GET", "/screenshot"))

    def close(self) -> None:
        """End the browser."""
        with suppress(RuntimeError, OSError):
            self._ask("DELETE", "")


@contextmanager
def webkit() -> Iterator[WebKitTab]:
    """Run a MiniBrowser on a display of its own; yield its tab."""
    port, processes = free_port(), list[subprocess.Popen[bytes]]()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        try:
            display = ["Xvfb", "-displayfd", "1", "-nolisten", "tcp", "-screen", "0", "1280x900x24"]
            processes.append(
                subprocess.Popen(
                    display,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            )
            assert processes[0].stdout
            number = processes[0].stdout.readline().decode().strip()
            environment = {
                **os.environ,
                "DISPLAY": f":{number}",
                "HOME": home,
                "WEBKIT_DISABLE_COMPOSITING_MODE": "1",
                "WEBKIT_DISABLE_DMABUF_RENDERER": "1",
            }
            processes.append(
                subprocess.Popen(
                    [DRIVER, f"--port={port}"],
                    env=environment,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            )
            wait_for(lambda: _serves(port), "WebKitWebDriver does not listen", 30.0, 0.1)
            tab = WebKitTab(port)
            try:
                yield tab
            finally:
                tab.close()
        finally:
            for process in reversed(processes):
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                if process.stdout:
                    process.stdout.close()


def _serves(port: int) -> bool:
    with suppress(OSError), closing(HTTPConnection("127.0.0.1", port, timeout=5)) as connection:
        connection.request("GET", "/status")
        return connection.getresponse().status == 200
    return False
