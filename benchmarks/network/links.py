"""Effect of bad links: stalls, outages, a narrow link, and their effect on control.

A stall is a proxy that holds every byte; an outage loses every packet between two network
namespaces, at the receivers; a narrow link is a token bucket between them. The picture's age is
read from the page (benchmarks/browser/glass.py).
"""

import json
import random
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Page
from testkit.browsers.phone import on_the_lan, take_wheel
from testkit.harness import RunningBench
from testkit.network.lan import Lan
from testkit.network.proxy import Link

from benchmarks.browser import glass
from benchmarks.browser.video import CANVAS, FPS, VIDEO, source
from benchmarks.network.links_control import under_load
from benchmarks.rig import Settings, opened, running, say, wall_ahead_ms
from benchmarks.rows import Aim, Curve, Result, row

FRAMED = tuple(source("strip", FPS))
CURRENT_MS = 100.0
"""Age up to which a picture is current; without a fault it is 13 to 30 ms old."""
STEADY = 3
"""Number of consecutive current pictures that end a recovery."""
STALL_S, STALLS, STALL_BITS_PER_S = 1.5, 12, 4e6
STALLS_BLOATED = 6
SMALL_BYTES, BLOATED_BYTES = 16_384, 250_000
AFTER_STALL_MS, AFTER_OUTAGE_MS = 1200, 900
OUTAGES, OUTAGES_MSE, OUTAGES_S = 30, 10, (0.5, 5.0)
SEED = 3
NARROW_S, NARROW_BLOATED_BYTES, NARROW_SANE_BYTES = 10.0, 250_000, 20_000
VIDEO_BITRATE = 2_000_000
FULL_WITHIN_S = 5.0


class ShownPicture(NamedTuple):
    """Picture on the screen: wall clock of its paint, and its age then."""

    at_ms: float
    age_ms: float


def shown(page: Page) -> list[ShownPicture]:
    """Return the pictures that the reader in the page has recorded since the last call."""
    ahead_ms = wall_ahead_ms()
    return [
        ShownPicture(at_ms, glass.age_ms(clock, at_ms, ahead_ms))
        for clock, at_ms in page.evaluate("window.glass.painted.splice(0)")
    ]


def recovery_ms(pictures: list[ShownPicture], end_ms: float) -> float:
    """Return the time from the end of the fault to the first of STEADY current pictures."""
    later = [picture for picture in pictures if picture.at_ms >= end_ms]
    for index in range(len(later) - STEADY + 1):
        if all(picture.age_ms < CURRENT_MS for picture in later[index : index + STEADY]):
            return later[index].at_ms - end_ms
    raise RuntimeError(f"no current picture within {len(later)} pictures")


def recovered(page: Page, end_ms: float, wait_ms: float) -> tuple[list[ShownPicture], float]:
    """Return the pictures until one was current again, and the duration of the recovery."""
    pictures: list[ShownPicture] = []
    for is_last in (False, False, False, False, True):
        page.wait_for_timeout(wait_ms)
        pictures += shown(page)
        try:
            return pictures, recovery_ms(pictures, end_ms)
        except RuntimeError:
            if is_last:
                raise
    raise AssertionError("the last try returns or raises")


def course(name: str, pictures: list[ShownPicture], begin_ms: float) -> Curve:
    """Return the age of the displayed picture over time: it rises until the next one arrives."""
    points: list[tuple[float, float]] = []
    for earlier, later in zip(pictures, pictures[1:], strict=False):
        points.append((earlier.at_ms, earlier.age_ms))
        if later.at_ms - earlier.at_ms > CURRENT_MS:
            points.append((later.at_ms, earlier.age_ms + later.at_ms - earlier.at_ms))
    return Curve(
        "links",
        name,
        "ms",
        tuple((at - begin_ms) / 1000.0 for at, _ in points),
        tuple(age for _, age in points),
    )


def now_ms() -> float:
    """Return the wall clock, the clock of the page."""
    return time.time() * 1000.0


def stalls(
    settings: Settings, name: str, path: str, queue_bytes: int, count: int, aim: Aim | None
) -> Iterator[Result]:
    """Measure a stall: every byte is held for 1.5 s, without loss, and then 4 Mbit/s pass."""
    say(f"links: {name}")
    values: list[float] = []
    with (
        settings.chromium() as browser,
        running(*source("strip", FPS)) as bench,
        Link(bench.port, STALL_BITS_PER_S, queue_bytes) as link,
        opened(browser, f"http://localhost:{link.port}/{path}") as page,
    ):
        glass.begin(page, VIDEO if path else CANVAS)
        chance = random.Random(SEED)
        for _ in range(count):
            page.wait_for_timeout(500 + chance.uniform(0, 500))
            earlier = shown(page)
            begin_ms = now_ms()
            link.stall()
            page.wait_for_timeout(STALL_S * 1000)
            end_ms = now_ms()
            link.mend()
            pictures, took_ms = recovered(page, end_ms, AFTER_STALL_MS)
            values.append(took_ms)
    yield row("links", name, "ms", values, aim)
    if aim:
        yield course(f"{name}: age", earlier[-15:] + pictures, begin_ms)


@contextmanager
def far_away(
    path: str = "",
    over: Lan | None = None,
    options: Sequence[str] = (),
    camera: Sequence[str] = FRAMED,
) -> Iterator[tuple[Lan, RunningBench, Page]]:
    """Yield a driver's page on another host, with the reader in it. `over` is the caller's own
    Lan, `options` are additional options of the bench, `camera` those of its camera."""
    with ExitStack() as stack:
        lan = over or stack.enter_context(Lan())
        bench = stack.enter_context(running("--host=0.0.0.0", *camera, *options))
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        browser = stack.enter_context(on_the_lan(lan, home, bench.port))
        url = f"http://{lan.near}:{bench.port}/{path}"
        page = stack.enter_context(opened(browser, url))
        take_wheel(page, bench)
        glass.begin(page, VIDEO if path else CANVAS)
        yield lan, bench, page


def outages(settings: Settings, name: str, count: int, path: str = "") -> Iterator[Result]:
    """Measure an outage: every packet is lost, both ways, at the receivers."""
    chance = random.Random(SEED)
    lengths = [chance.uniform(*OUTAGES_S) for _ in range(min(settings.runs, count))]
    values = []
    with far_away(path) as (lan, _, page):
        for index, length_s in enumerate(lengths):
            say(f"links: {name} ({index + 1} of {len(lengths)}, {length_s:.1f} s)")
            page.wait_for_timeout(400 + chance.uniform(0, 200))
            earlier = shown(page)
            begin_ms = now_ms()
            lan.lose()
            page.wait_for_timeout(length_s * 1000)
            lan.find()
            end_ms = now_ms()
            pictures, took_ms = recovered(page, end_ms, AFTER_OUTAGE_MS)
            values.append(took_ms)
    note = f"{len(values)} of {OUTAGES_S[0]:g} to {OUTAGES_S[1]:g} s, all packets lost"
    yield row("links", f"current after {name}", "ms", values, Aim(median=230, worst=420), note)
    yield course(f"{name}: age", earlier[-15:] + pictures, begin_ms)


class Status(threading.Thread):
    """Poller of the car's status, every 50 ms, on its own host: (wall ms, status)."""

    def __init__(self, bench: RunningBench) -> None:
        super().__init__(daemon=True)
        self.statuses: list[tuple[float, dict[str, object]]] = []
        self._url = f"{bench.url}api/status"
        self._end = threading.Event()

    def run(self) -> None:
        while not self._end.wait(0.05):
            with urllib.request.urlopen(self._url, timeout=5.0) as answer:
                self.statuses.append((now_ms(), json.load(answer)))

    def __enter__(self) -> "Status":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self.join()

    def wanted(self) -> list[tuple[float, float]]:
        """Return (wall ms, bit/s requested from the camera)."""
        return [(at_ms, float(str(status["bitrate_wanted"]))) for at_ms, status in self.statuses]


def narrow(settings: Settings, name: str, queue_bytes: int, path: str = "") -> Iterator[Result]:
    """Measure a third of the video's bitrate for 10 s, and then the full rate again."""
    say(f"links: {name}")
    with far_away(path) as (lan, bench, page), Status(bench) as status:
        page.wait_for_timeout(2000)
        earlier = shown(page)
        begin_ms = now_ms()
        lan.narrow(VIDEO_BITRATE // 3, queue_bytes)
        page.wait_for_timeout(NARROW_S * 1000)
        lan.widen()
        end_ms = now_ms()
        page.wait_for_timeout(FULL_WITHIN_S * 1000)
        pictures = shown(page)
    late = [picture for picture in pictures if begin_ms + 1000 <= picture.at_ms <= end_ms]
    yield row("links", f"{name}: age", "ms", [picture.age_ms for picture in late], Aim(worst=300))
    seconds = [int((picture.at_ms - begin_ms) // 1000) for picture in late]
    rates = [seconds.count(second) for second in range(1, int(NARROW_S))]
    yield row("links", f"{name}: least rate", "fps", [min(rates)], Aim(least=10))
    bitrates = status.wanted()
    low_ms = [at_ms for at_ms, rate in bitrates if rate < VIDEO_BITRATE]
    full_s = (max(low_ms, default=end_ms) - end_ms) / 1000.0
    yield row("links", f"{name}: full quality after", "s", [full_s], Aim(worst=3))
    yield course(f"{name}: age", earlier[-15:] + pictures, begin_ms)
    yield Curve(
        "links",
        f"{name}: bitrate",
        "kbit/s",
        tuple((at_ms - begin_ms) / 1000.0 for at_ms, _ in bitrates),
        tuple(rate / 1000.0 for _, rate in bitrates),
    )


def rows(settings: Settings) -> Iterator[Result]:
    """Measure stalls, outages, a narrow link, control: each with its own bench."""
    aim = Aim(worst=200)
    name = "current after a 1.5 s stall"
    yield from stalls(settings, name, "", SMALL_BYTES, STALLS, aim)
    yield from stalls(settings, f"{name}, MSE", "?path=mse", SMALL_BYTES, STALLS, aim)
    yield from stalls(settings, f"{name}, bloated link", "", BLOATED_BYTES, STALLS_BLOATED, None)
    yield from outages(settings, "an outage", OUTAGES)
    yield from outages(settings, "an outage, MSE", OUTAGES_MSE, "?path=mse")
    yield from narrow(settings, "a third of the bitrate", NARROW_SANE_BYTES)
    yield from narrow(settings, "a third, MSE", NARROW_SANE_BYTES, "?path=mse")
    yield from narrow(settings, "a third, bloated queue", NARROW_BLOATED_BYTES)
    yield from under_load()
