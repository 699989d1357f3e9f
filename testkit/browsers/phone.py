"""A browser on another host (testkit/network/lan.py), and requests to the car."""

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Frame, Page, Playwright

from testkit.browsers.chromium import CHROMIUM, chromium
from testkit.browsers.seat import go_on, probe, until
from testkit.harness import RunningBench, wait_for
from testkit.network.lan import Lan

CURRENT_MS = 300
"""A picture this young counts as current."""
OFFERS = """({
    picture: window.fpvcar.video.path,
    gamepads: 'getGamepads' in navigator,
    microphone: 'mediaDevices' in navigator,
    app: 'serviceWorker' in navigator,
})"""
"""Expression for the browser's parts of the seat; docs/access.md has the table."""
PLAIN = {"picture": "mse", "gamepads": True, "microphone": False, "app": False}
SECURE = {"picture": "webcodecs", "gamepads": True, "microphone": True, "app": True}
"""Values of OFFERS over http at an address, except in WebKitGTK, and over https."""


@contextmanager
def on_the_lan(
    lan: Lan,
    home: Path,
    secure_port: int | None = None,
    playwright: Playwright | None = None,
    program: str = CHROMIUM,
    address: str = "",
) -> Iterator[Browser]:
    """Start Chromium on the far host, over pipes.

    Plain http of `secure_port` counts as secure there, so that the browser has WebCodecs; the
    shell does not know that option. `address` is another one of the car. `playwright` and `program`
    are as for `chromium`.
    """
    hosts = [lan.near, address] if address else [lan.near]
    origins = ",".join(f"http://{host}:{secure_port}" for host in hosts)
    options = f" --unsafely-treat-insecure-origin-as-secure={origins}" if secure_port else ""
    wrapper = home / "chromium-on-the-lan"
    wrapper.write_text(f'#!/bin/sh\nexec {" ".join(lan.enter)} {program} "$@"{options}\n')
    wrapper.chmod(0o755)
    with chromium(str(wrapper), playwright) as running:
        yield running


def drive_code(bench: RunningBench) -> str:
    """Return the bench's drive code from its file."""
    code: str = json.loads((bench.state / "codes.json").read_text())["drive"]
    return code


def take_wheel(page: Page | Frame, bench: RunningBench) -> None:
    """Enter the drive code if the page requires it, and take the wheel."""
    if not probe(page, "state.may_drive"):
        page.locator("#wheel").click()
        page.locator("#code").fill(drive_code(bench))
        page.locator("#code").press("Enter")
        until(page, "window.fpvcar.state.may_drive")
    if probe(page, "state.role") != "driver":
        page.locator("#wheel").click()
    until(page, "window.fpvcar.state.role === 'driver'")
    go_on(page)


def status(bench: RunningBench) -> dict[str, object]:
    """Return the car's answer to /api/status."""
    with urllib.request.urlopen(f"{bench.url}api/status", timeout=5.0) as answer:
        said: dict[str, object] = json.load(answer)
    return said


def seconds_until_current(page: Page) -> float:
    """Return the seconds until the picture is current again."""
    return wait_for(
        lambda: bool(page.evaluate(f"window.fpvcar.video.ageMs < {CURRENT_MS}")),
        f"old: {probe(page, 'video')}",
    )
