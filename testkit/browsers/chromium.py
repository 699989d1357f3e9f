"""Debian's Chromium and its headless shell, under Playwright."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial

from playwright.sync_api import Browser, Playwright, expect, sync_playwright

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
SHELL = "/usr/bin/chromium-headless-shell"
if "CHROMIUM" in os.environ or not os.path.exists(SHELL):
    SHELL = CHROMIUM
"""Chromium's engine alone, for pages: no tabs of its own, which cost a second of a core a page."""
FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-dev-shm-usage",
]
expect.set_options(timeout=20_000.0)  # patience with a busy machine, as seat.until has


@contextmanager
def chromium(
    program: str = CHROMIUM, running: Playwright | None = None, flags: Sequence[str] = ()
) -> Iterator[Browser]:
    """Start Debian's Chromium, headless, or a program that starts it elsewhere.

    `running` is the Playwright that this thread already has: a thread cannot have two. `flags` are
    further ones of Chromium.
    """
    if not os.path.exists(program):
        raise FileNotFoundError(f"no {program}: apt install chromium, or set CHROMIUM")
    with nullcontext(running) if running else sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=[*FLAGS, *flags], headless=True
        )
        # The shell asks for this permission, and nothing would answer.
        awake = ["screen-wake-lock"]
        browser.new_context = partial(  # type: ignore[method-assign]
            browser.new_context, permissions=awake
        )
        browser.new_page = partial(browser.new_page, permissions=awake)  # type: ignore[method-assign]
        yield browser
        browser.close()
