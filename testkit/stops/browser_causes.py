"""Rows of the table "Who stops the car" that need a browser; see causes.py.

The browser is a process group of its own, so that all of it can be frozen or killed.
"""

import os
import signal
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from playwright.sync_api import Browser, Error, Page

from fpvcar.hil.stop_causes import NOTICED_S, ONE_FRAME_S
from testkit.browsers.chromium import CHROMIUM, FLAGS
from testkit.browsers.seat import GAMEPAD, at_the_wheel, drives, go_on, holds, until
from testkit.driver import make_whole
from testkit.harness import PinWatch
from testkit.stops.ground import Ground
from testkit.stops.stopping import Cause, Run, one_stop, patiently

MARK = f"--driver-of-the-stops={os.getpid()}"


class Seat(AbstractContextManager["Seat"]):
    """A Chromium with one page at the wheel; it is started again after it was killed."""

    def __init__(self, ground: Ground, starter: Browser) -> None:
        self.ground, self._starter = ground, starter
        self._browser: Browser | None = None
        self._page: Page | None = None
        self.group = 0

    def __exit__(self, *_: object) -> None:
        if self._browser is not None:
            with suppress(Error):
                self._browser.close()

    @property
    def page(self) -> Page:
        """Return a page at the wheel of a car that may drive."""
        if self._browser is None or not self._browser.is_connected():
            self._browser = self._starter.browser_type.launch(
                executable_path=CHROMIUM, args=[*FLAGS, MARK], headless=True
            )
            self.group, self._page = _group_of(MARK), None
        if self._page is None or self._page.is_closed():
            make_whole(self.ground.bench)  # the previous driver is gone
            context = self._browser.new_context()
            context.add_init_script(TOLD)
            context.add_init_script(GAMEPAD)
            self._page = at_the_wheel(context.new_page(), self.ground.bench.url)
        return self._page

    def send(self, number: signal.Signals) -> None:
        """Send a signal to every process of this browser."""
        os.killpg(self.group, number)


def _group_of(mark: str) -> int:
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            if mark.encode() in (entry / "cmdline").read_bytes():
                group = os.getpgid(int(entry.name))
                assert group != os.getpgid(0), "the browser is in our own group"
                return group
    raise AssertionError(f"no browser with {mark}")


def _done(act: Callable[[Seat], object]) -> Callable[[Seat], int]:
    def timed(seat: Seat) -> int:
        page = seat.page  # not on the clock
        assert page
        now_ns = time.monotonic_ns()
        act(seat)
        return now_ns

    return timed


TOLD = """
for (const kind of ['blur', 'visibilitychange', 'fullscreenchange',
                    'gamepaddisconnected']) {
  addEventListener(kind, (event) => {
    if (kind === 'blur' && event.target !== window) return; // of an element
    window.toldAt ??= performance.timeOrigin + event.timeStamp;
  }, {capture: true});
}
"""
"""Wall-clock time at which the page itself got the message: its frame counts from then."""


def _told(act: Callable[[Seat], object]) -> Callable[[Seat], int]:
    def timed(seat: Seat) -> int:
        page = seat.page
        page.evaluate("window.toldAt = undefined")
        act(seat)
        until(page, "window.toldAt !== undefined")
        wall_ms = float(page.evaluate("window.toldAt"))
        return int(wall_ms * 1e6) - (time.time_ns() - time.monotonic_ns())

    return timed


def _open_another(page: Page) -> None:
    """Open a second tab behind this one.

    From here on Playwright no longer pretends that every tab has the focus and is visible.
    """
    session = page.context.new_cdp_session(page)
    session.send("Emulation.setFocusEmulationEnabled", {"enabled": False})
    page.context.new_page()
    page.bring_to_front()
    until(page, "document.visibilityState === 'visible'")


def _hide(seat: Seat) -> None:
    seat.page.context.pages[-1].bring_to_front()


def _seem_hidden(seat: Seat) -> None:
    """Simulate a hidden tab, because a headless browser hides none: send the page the event of a
    real one."""
    seat.page.evaluate(
        "Object.defineProperty(document, 'visibilityState', {value: 'hidden'});"
        "Object.defineProperty(document, 'hidden', {value: true});"
        "document.dispatchEvent(new Event('visibilitychange'))"
    )


def _unplug(seat: Seat) -> None:
    seat.page.evaluate("unplug()")


def _leave_full_screen(seat: Seat) -> None:
    seat.page.evaluate("document.exitFullscreen()")


CAUSES: tuple[Cause[Seat], ...] = (
    Cause("key up", ONE_FRAME_S, None, _done(lambda s: s.page.keyboard.up("ArrowUp"))),
    Cause("another tab in front", ONE_FRAME_S, None, _told(_hide), way="tab"),
    Cause("tab hidden", ONE_FRAME_S, None, _told(_seem_hidden), way="tab"),
    Cause(
        "window loses focus",
        ONE_FRAME_S,
        None,
        _told(lambda s: s.page.evaluate("dispatchEvent(new Event('blur'))")),
    ),
    Cause("gamepad unplugged", ONE_FRAME_S, None, _told(_unplug), way="gamepad"),
    Cause(
        "full screen left",
        ONE_FRAME_S,
        "estop",
        _told(_leave_full_screen),
        way="full screen",
        logged="fpvcar.gate: stopped: estop",
    ),
    Cause(
        "browser frozen",
        NOTICED_S,
        "silence",
        _done(lambda s: s.send(signal.SIGSTOP)),
        lambda s: s.send(signal.SIGCONT),
        logged="fpvcar.gate: stopped: silence",
    ),
    Cause("tab closed", NOTICED_S, "handover", _done(lambda s: s.page.close())),
    Cause(
        "browser killed",
        NOTICED_S,
        "silence",
        _done(lambda s: s.send(signal.SIGKILL)),
        logged="fpvcar.gate: stopped: silence",
    ),
)


def run_one(seat: Seat, cause: Cause[Seat]) -> Run:
    """Measure one run of a row, with repeats."""
    return patiently(lambda: _run_one(seat, cause))


def _run_one(seat: Seat, cause: Cause[Seat]) -> float:
    page = seat.page
    go_on(page)
    if cause.way == "full screen":
        page.keyboard.press("f")
        until(page, "document.fullscreenElement !== null")
    if cause.way == "gamepad":
        page.evaluate("plug()")
    if cause.way == "tab":
        _open_another(page)

    def drive(watch: PinWatch) -> None:
        if cause.way == "gamepad":
            drives(
                page,
                lambda: watch.now.driving,
                lambda: page.evaluate("pad.buttons[7].value = 1"),
                lambda: page.evaluate("pad.buttons[7].value = 0"),
                "gamepad",
            )
        else:
            holds(page, watch, "ArrowUp")

    try:
        return one_stop(seat, seat.ground.bench, cause, drive)
    finally:
        _tidy(page, fresh=cause.way == "tab")


def _tidy(page: Page, fresh: bool) -> None:
    """Release every control, or close the page so that the next one is `fresh`. The page may be
    gone already."""
    with suppress(Error):
        if fresh:
            page.context.close()
            return
        page.keyboard.up("ArrowUp")
        page.evaluate("pad.buttons[7].value = 0; navigator.getGamepads = () => [pad]")
        until(page, "window.fpvcar.link.kind === 'up'")
