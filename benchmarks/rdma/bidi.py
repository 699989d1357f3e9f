"""Control of an unmodified Firefox by WebDriver BiDi, without a driver program.

    us -> {"id": 7, "method": "script.evaluate", "params": {...}}
    us <- {"id": 7, "type": "success" | "error", "result": {...}}
    us <- {"type": "event", ...}                               (no subscriptions)

Playwright can control only its own build of Firefox. `Tab` has the few methods of Playwright's
interface that are needed.
"""

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from testkit.harness import wait_for
from testkit.network.ports import free_port
from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection, connect

# Timer resolution of a microsecond instead of a millisecond, and no pages besides ours.
PREFERENCES = {
    "privacy.reduceTimerPrecision": False,
    "app.update.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "toolkit.telemetry.reportingpolicy.firstRun": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
}
KEYS = {"ArrowUp": "\ue013", "ArrowDown": "\ue015", "Enter": "\ue007"}
"""WebDriver's code points for keys that have no character."""


class Keys:
    """Keyboard of a tab, with Playwright's interface. `perform` takes a source of WebDriver's input
    actions."""

    def __init__(self, perform: Callable[[dict[str, object]], object]) -> None:
        self._perform = perform

    def down(self, key: str) -> None:
        """Press a key and hold it."""
        self._act("keyDown", key)

    def up(self, key: str) -> None:
        """Release a key that is held."""
        self._act("keyUp", key)

    def _act(self, kind: str, key: str) -> None:
        actions = [{"type": kind, "value": KEYS.get(key, key)}]
        self._perform({"type": "key", "id": "keys", "actions": actions})

    def press(self, key: str) -> None:
        """Press and release a key."""
        self.down(key)
        self.up(key)


class Finger:
    """Finger on a page, at CSS pixels of the viewport. `perform` is as for Keys.

    Firefox makes touches of it. WebKitGTK's driver makes the pointer events of a mouse.
    """

    def __init__(self, perform: Callable[[dict[str, object]], object]) -> None:
        self._perform = perform

    def down(self, x: float, y: float) -> None:
        """Put the finger on the page and hold it there."""
        self._act(_to(x, y), {"type": "pointerDown", "button": 0})

    def move(self, x: float, y: float) -> None:
        """Move the finger, without lifting it."""
        self._act(_to(x, y))

    def up(self) -> None:
        """Lift the finger."""
        self._act({"type": "pointerUp", "button": 0})

    def _act(self, *actions: dict[str, object]) -> None:
        touch = {"pointerType": "touch"}
        self._perform(
            {"type": "pointer", "id": "finger", "parameters": touch, "actions": list(actions)}
        )


def _to(x: float, y: float) -> dict[str, object]:
    return {"type": "pointerMove", "x": round(x), "y": round(y), "origin": "viewport"}


class Locator:
    """First element that matches a selector."""

    def __init__(self, tab: "Tab", selector: str) -> None:
        self._tab, self._selector = tab, selector

    def click(self) -> None:
        """Click by script, without moving a pointer."""
        self._tab.evaluate("(selector) => document.querySelector(selector).click()", self._selector)


class Tab:
    """Browsing context of a Firefox."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket, self._count, self.context = socket, 0, ""
        self.keyboard, self.finger = Keys(self._perform), Finger(self._perform)
        wanted = {"alwaysMatch": {"acceptInsecureCerts": True}}
        about = self.command("session.new", capabilities=wanted)["capabilities"]
        self.version = str(about["browserVersion"])
        self.context = self.command("browsingContext.getTree")["contexts"][0]["context"]

    def command(self, method: str, **params: Any) -> Any:
        """Send a command; return its result. Raises RuntimeError with Firefox's message."""
        self._count += 1
        request = {"id": self._count, "method": method, "params": params}
        self._socket.send(json.dumps(request))
        while True:
            answer = json.loads(self._socket.recv(timeout=60.0))
            if answer.get("id") == self._count:
                break
        if answer["type"] == "error":
            raise RuntimeError(f"{method}: {answer['error']}: {answer['message']}")
        return answer["result"]

    def _perform(self, source: dict[str, object]) -> None:
        self.command("input.performActions", context=self.context, actions=[source])

    def goto(self, url: str) -> None:
        """Open a page, wait until it is loaded, and give it the focus."""
        self.command("browsingContext.navigate", context=self.context, url=url, wait="complete")
        self.command("browsingContext.activate", context=self.context)

    def add_init_script(self, script: str) -> None:
        """Register a script to run in every page before its own scripts."""
        wrapped = f"() => {{{script}}}"
        self.command(
            "script.addPreloadScript", functionDeclaration=wrapped, contexts=[self.context]
        )

    def evaluate(self, expression: str, *arguments: Any) -> Any:
        """Return the value of an expression, or of a function with arguments, by JSON."""
        if arguments:
            literals = ", ".join(json.dumps(argument) for argument in arguments)
            expression = f"({expression})({literals})"
        result = self.command(
            "script.evaluate",
            awaitPromise=True,
            target={"context": self.context},
            expression=f"(async () => JSON.stringify(await ({expression})))()",
        )
        if result["type"] == "exception":
            raise RuntimeError(result["exceptionDetails"]["text"])
        return json.loads(result["result"].get("value", "null"))

    def locator(self, selector: str) -> Locator:
        """Return an element that can be clicked."""
        return Locator(self, selector)

    def wait_for_timeout(self, milliseconds: float) -> None:
        time.sleep(milliseconds / 1000.0)


def _connected(port: int, process: subprocess.Popen[bytes]) -> ClientConnection:
    """Connect to Firefox as soon as it accepts connections."""
    connections: list[ClientConnection] = []

    def serves() -> bool:
        if process.poll() is not None:
            raise RuntimeError(f"Firefox ended with status {process.returncode}")
        with contextlib.suppress(OSError, WebSocketException):
            address = f"ws://127.0.0.1:{port}/session"
            connections.append(connect(address, max_size=None, proxy=None))
        return bool(connections)

    wait_for(serves, "Firefox does not listen", 60.0, 0.1)
    return connections[0]


@contextmanager
def firefox(program: str) -> Iterator[Tab]:
    """Run a headless Firefox with a temporary profile; yield its tab."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        profile = Path(home, "profile")
        profile.mkdir()
        (profile / "user.js").write_text(
            "".join(
                f"user_pref({json.dumps(name)}, {json.dumps(value)});\n"
                for name, value in PREFERENCES.items()
            )
        )
        port = free_port()
        process = subprocess.Popen(
            [
                program,
                "--headless",
                "--no-remote",
                "--width=1280",
                "--height=720",
                f"--profile={profile}",
                f"--remote-debugging-port={port}",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": home},
            start_new_session=True,
        )
        try:
            with _connected(port, process) as socket:
                yield Tab(socket)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
