"""Screenshots of README and docs, from a real bench in a real browser.

    python -m tools.pictures                # all of them: make pictures
    python -m tools.pictures doctor-phone   # this one, and others from the same bench

Each line of ALBUM has its own bench. The answers of a Raspberry Pi (doctor) are simulated, as the
bench has no board.
"""

import argparse
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from playwright.sync_api import Browser, FloatRect, Page
from testkit.base_station.running import serving
from testkit.browsers.chromium import chromium
from testkit.browsers.panels import ROUTE, begun, held, looked, one, phase
from testkit.browsers.phone import take_wheel
from testkit.browsers.seat import (
    Thumbs,
    at_the_wheel,
    go_on,
    grown_up,
    open_menu,
    opened,
    touching,
    until,
)
from testkit.harness import GUARD, RunningBench
from tools import picture_file
from tools.docs.build_docs import fresh_car
from tools.picture_part import shown, whole

from fpvcar.doctor.report import as_json
from fpvcar.http.addresses import lan_address

TARGET = Path(__file__).resolve().parent.parent / "docs" / "pictures"
SCALE = 2
"""Pixels of a picture per pixel of the page, in each direction."""
TRIES = 5
STEADY_S = 3.0
"""Time without a change after which the battery's charge has settled."""
PHONE, DESKTOP = (390, 844), (1280, 720)
ANDROID = (
    "Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/140.0.0.0 Mobile Safari/537.36"
)
LONG_S = 90.0
DRIVES = """document.body.dataset.situation === 'driving' &&
  document.body.dataset.picture === 'live'"""
QUIET = "document.getElementById('toasts').childElementCount === 0"
STOPPED = "document.body.dataset.situation === 'stopped'"


class StoppedDrive(Exception):
    """Error: this busy machine has stopped the car, such as by a late camera."""


def keep(page: Page, name: str, screenshot: bytes = b"") -> None:
    """Write the current screenshot of the page without cut elements, or the given one."""
    picture_file.write(
        page, TARGET / f"{name}.png", screenshot or page.screenshot(clip=whole(page))
    )
    print(f"docs/pictures/{name}.png")


def settle(page: Page) -> None:
    """Wait until the charge on the page has followed the voltage of the standing car."""
    charge, since_s = 0, time.monotonic()
    while time.monotonic() - since_s < STEADY_S:
        page.wait_for_timeout(100)
        now = int(page.locator("#battery").inner_text().partition("%")[0])
        if abs(now - charge) > 1:
            charge, since_s = now, time.monotonic()


@contextmanager
def started(home: Path, *options: str, make: bool = False) -> Iterator[RunningBench]:
    """Start a bench that keeps all its files in `home`; yield it when it is ready."""
    environment = {"HOME": str(home), "XDG_STATE_HOME": str(home)}
    bench = RunningBench(home, *options, env=environment, make=make)
    try:
        yield bench.wait_ready()
    finally:
        bench.stop()


@contextmanager
def screen(browser: Browser, size: tuple[int, int] = PHONE, fingers: bool = True) -> Iterator[Page]:
    """Open a separate browser context that accepts the car's certificate."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        device_scale_factor=SCALE,
        has_touch=fingers,
        is_mobile=fingers,
        ignore_https_errors=True,
        user_agent=ANDROID if fingers else None,
    )
    yield context.new_page()
    context.close()


def seat(name: str, size: tuple[int, int], fingers: bool, browser: Browser, home: Path) -> None:
    """Take the driver's seat after a short drive into the room."""
    with started(home, GUARD) as bench, screen(browser, size, fingers) as page:
        at_the_wheel(page, bench.url)
        read(page, "intro-ok")
        thumbs = Thumbs(page.context, page) if fingers else None
        for _ in range(20):
            until(page, QUIET)
            settle(page)
            with driving(page, thumbs):
                page.wait_for_timeout(400)
                fine = page.evaluate(f"{DRIVES} && {QUIET}")
                screenshot = page.screenshot()
                fine = fine and page.evaluate(DRIVES)
            if fine:
                keep(page, name, screenshot)
                break
            go_on(page)  # a stall of the busy machine has stopped the car
        else:
            raise OSError(f"{name}: this machine is too busy to drive")
        if size == PHONE:
            page.locator("#stop").click()
            settle(page)
            keep(page, "stopped-phone")


def read(page: Page, button: str) -> None:
    """Close the introduction that a new page shows."""
    until(page, f"document.getElementById('{button}') !== null")
    page.locator(f"#{button}").click()


@contextmanager
def driving(page: Page, thumbs: Thumbs | None) -> Iterator[None]:
    """Drive forward and to the left."""
    keys = ("ArrowUp", "ArrowLeft")
    if thumbs is not None:
        thumbs.push()
    else:
        for key in keys:
            page.keyboard.down(key)
    yield
    if thumbs is not None:
        thumbs.lift()
    else:
        for key in keys:
            page.keyboard.up(key)


def access(browser: Browser, home: Path) -> None:
    """Take the access request of a new phone, and the list that a grown-up sees."""
    if lan_address() == "127.0.0.1":
        raise OSError("a phone is played beside this computer, which has no network")
    with (
        started(home, GUARD, "--host=0.0.0.0") as bench,
        screen(browser) as phone,
        screen(browser) as grown,
    ):
        lan = f"http://{lan_address()}:{bench.port}/"
        opened(phone, lan)
        read(phone, "intro-ok")
        read(phone, "secure-later")
        keep(phone, "watching-phone")
        take_wheel(phone, bench)
        named(phone, "Ann")
        opened(grown, bench.url)
        grown_up(grown, bench)
        named(grown, "Mum")
        open_menu(grown, "grown-ups")
        grown.locator("#presets button").first.wait_for()
        grown.locator("#who-may-drive li", has_text="Mum").wait_for()
        grown.locator("#who-may-drive li", has_text="Ann").wait_for()
        shown(grown, "#who-may-drive")
        keep(grown, "who-phone")
        phone.goto(f"{lan}trust")
        phone.locator("#check").click()
        until(phone, "document.getElementById('verdict').innerText.includes('works')")
        phone.evaluate("scrollTo(0, 0)")
        keep(phone, "trust-phone")


def named(page: Page, name: str) -> None:
    """Enter the user's name in the menu."""
    open_menu(page, "drive")
    page.locator("#name").fill(name)
    page.locator("#name").press("Enter")


def menu(browser: Browser, home: Path) -> None:
    """Take the menu as a grown-up uses it on the first evening."""
    with started(home, GUARD) as bench, screen(browser) as page:
        at_the_wheel(page, bench.url)
        read(page, "intro-ok")
        grown_up(page, bench)
        report = as_json(fresh_car())
        page.route(ROUTE, lambda route: route.fulfill(body=report))
        looked(page)
        shown(page, "#doctor")
        keep(page, "doctor-phone")
        page.locator("[data-close=sheet]").click()
        page.locator("#calibrate").click()
        one(page, "begin-speed").wait_for()
        shown(page, "#calibration")
        keep(page, "calibration-phone")
        begun(page, "direction-drive")
        for _ in range(6):
            with held(page):
                page.wait_for_timeout(900)
            page.wait_for_timeout(500)
            if phase(page) == "asks":
                break
        shown(page, "#calibration")
        keep(page, "calibration-step-phone")
        page.goto(f"{bench.url}network")
        page.locator("#list button").first.wait_for()
        keep(page, "network-phone")


def buttons(browser: Browser, home: Path) -> None:
    """Take the buttons page with two fingers on a phone."""
    with started(home, GUARD) as bench, screen(browser) as page:
        page.goto(f"{bench.url}buttons")
        until(page, "window.fpvcar?.link === 'up'")
        with touching(page.context, page, (0, 3)):
            page.wait_for_timeout(500)
            keep(page, "buttons-phone")


def driven(page: Page, url: str) -> None:
    """Drive for a short time. Raises StoppedDrive."""
    at_the_wheel(page, url)
    settle(page)
    for key in ("ArrowUp", "ArrowLeft", "ArrowDown", "ArrowRight") * 2:
        page.keyboard.down(key)
        page.wait_for_timeout(700)
        page.keyboard.up(key)
        if page.evaluate(STOPPED):
            raise StoppedDrive


def unstopped(page: Page) -> None:
    """Check the list of drives. Raises StoppedDrive if it shows a stop."""
    if re.search(r"\d stop", page.locator("#list").inner_text()):
        raise StoppedDrive


def recordings(browser: Browser, home: Path) -> None:
    """Take the recordings page after a drive."""
    with (
        started(home, GUARD, "--set=recording.segment_s = 5") as bench,
        screen(browser, (1280, 800), fingers=False) as page,
    ):
        driven(page, bench.url)
        page.wait_for_timeout(6000)
        page.goto(f"{bench.url}recordings")
        until(page, "document.querySelector('#list canvas[data-drawn]') !== null")
        unstopped(page)
        page.locator("#list a").first.click()
        until(page, "window.recordings.lines.length >= 10")
        at_s = int(float(page.locator("#scrub").get_attribute("max") or "0")) - 8
        page.locator("#scrub").fill(str(at_s))
        until(page, f"Math.abs(window.recordings.shownS - {at_s}) < 0.2")
        second = page.locator("#plots .plot").nth(1).bounding_box()
        assert second is not None
        height = second["y"] + second["height"] + 6
        clip: FloatRect = {"x": 0, "y": 0, "width": 1280, "height": height}
        keep(page, "recordings", page.screenshot(full_page=True, clip=clip))


def station(browser: Browser, home: Path) -> None:
    """Take the station's page of `make run`, when the drive has been fetched; then its moments."""
    with started(home, make=True) as bench, screen(browser, fingers=False) as page:
        driven(page, bench.url)
        match = re.search(r"http://localhost:\d+/(?= .*station)", bench.log())
        assert match is not None, bench.log()
        page.goto(match.group())
        until(page, "document.body.innerText.includes('stored here')", LONG_S)
        until(page, "document.querySelector('#list canvas[data-drawn]') !== null")
        unstopped(page)
        keep(page, "station-phone")
    (home / "station.toml").touch()
    for sums in (home / "store").rglob("SHA256SUMS"):
        os.utime(sums, (0.0, 0.0))  # settled: its sidecar is written at once
    with serving(home) as port, screen(browser, fingers=False) as page:
        page.goto(f"http://localhost:{port}/")
        page.locator("#moments summary").click()
        page.locator("#moments-form [name=throttle_above_share]").fill("5")
        for _ in range(round(LONG_S)):
            page.locator("#moments-find").click()
            until(page, "!document.getElementById('moments-find').disabled", LONG_S)
            if page.locator("#moments-list li").count():
                break
            page.wait_for_timeout(1000)
        until(page, "document.querySelector('#moments-list canvas[data-drawn]') !== null", LONG_S)
        shown(page, "#moments")
        keep(page, "moments-phone")


Take = Callable[[Browser, Path], None]
ALBUM: dict[tuple[str, ...], Take] = {
    ("seat-desktop",): partial(seat, "seat-desktop", DESKTOP, False),
    ("seat-phone-landscape",): partial(seat, "seat-phone-landscape", (844, 390), True),
    ("seat-phone-portrait", "stopped-phone"): partial(seat, "seat-phone-portrait", PHONE, True),
    ("buttons-phone",): buttons,
    ("watching-phone", "who-phone", "trust-phone"): access,
    ("calibration-phone", "calibration-step-phone", "doctor-phone", "network-phone"): menu,
    ("recordings",): recordings,
    ("station-phone", "moments-phone"): station,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Take the pictures, and write docs/pictures/*.png."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    known = sorted(name for names in ALBUM for name in names)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(known))
    chosen = parser.parse_args(argv).names
    if strange := sorted(set(chosen) - set(known)):
        parser.error(f"{', '.join(strange)}: expected some of {', '.join(known)}")
    TARGET.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home, chromium() as browser:
        for names, take in ALBUM.items():
            if chosen and not set(chosen) & set(names):
                continue
            taken(take, browser, Path(home) / names[0])
    return 0


def taken(take: Take, browser: Browser, home: Path) -> None:
    """Take pictures with a new bench after each stopped drive."""
    home.mkdir()
    for number in range(TRIES):
        folder = home / str(number)
        folder.mkdir()
        try:
            take(browser, folder)
        except StoppedDrive:
            continue
        return
    raise OSError(f"{home.name}: this machine is too busy to drive")


if __name__ == "__main__":
    sys.exit(main())
