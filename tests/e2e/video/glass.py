"""Helpers for tests of the picture on the page."""

import contextlib
import os
import signal

import pytest
from playwright.sync_api import Page
from testkit.browsers.seat import opened, probe, until

PATHS = pytest.mark.parametrize("path", ["webcodecs", "mse"])
"""Both paths from the camera to the screen."""
NEVER_RELOADED = "window.opened ??= 1"


def goes_on(page: Page, more: int = 10, timeout_s: float = 15.0) -> None:
    """Assert that a live, current picture comes without a reload."""
    shown = probe(page, "video.shown")
    until(
        page,
        f"window.fpvcar.video.shown > {shown + more} && document.body.dataset.picture === 'live'",
        timeout_s,
    )
    assert page.evaluate("window.opened") == 1, "the page was loaded anew"


def look_at(page: Page, url: str, path: str) -> Page:
    """Open the page by that path and wait for a moving picture."""
    opened(page, f"{url}?path={path}")
    assert probe(page, "video.path") == path
    page.evaluate(NEVER_RELOADED)
    return page


def signal_all(pids: list[int], number: signal.Signals) -> None:
    """Kill, stop or continue the cameras. The car may have ended one that was stopped too long."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
