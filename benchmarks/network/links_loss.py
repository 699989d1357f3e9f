"""Edge of the Wi-Fi: random loss of packets, in both directions."""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import product
from pathlib import Path

from playwright.sync_api import Page
from testkit.browsers.phone import on_the_lan
from testkit.browsers.seat import holds
from testkit.network.air import Air, Weather
from testkit.network.lan import Lan

from benchmarks.baselines.baseline import serving
from benchmarks.browser import glass
from benchmarks.browser.video import CANVAS, FPS, plain, visited
from benchmarks.network.links import (
    FRAMED,
    ShownPicture,
    course,
    far_away,
    now_ms,
    recovered,
    recovery_ms,
    shown,
)
from benchmarks.network.links_control import presses
from benchmarks.reference import cpu_s
from benchmarks.rig import Settings, say
from benchmarks.rows import Aim, Result, Row, row

SETTLES_MS = 2000
LOSSY_MS = 25_000
FREEZE_MS = 150.0
BURSTS, DRIVES_MS = 12, 60_000
ROAMS, ROAMED_MS = 3, 1000
SILENCE = "fpvcar.gate: stopped: silence"
SAMPLE_MS = 10.0
ROUNDS, ROUND_MS, ROUND_SHARE = 5, 15_000, 0.10
CAMERAS = {"framed camera": FRAMED, "plain camera": tuple(plain(FPS))}
FAR_AND_NEAR = "20 ms and up to 10 ms of jitter, 2 % lost, each way"
FAR_WEATHER = Weather(delay_s=0.020, jitter_s=0.010, loss=0.02)
KERNELS = {"": None, ", cubic, Linux before 6.15": ("cubic", 200)}
"""Arguments of Lan.congestion for a kernel without TCP_RTO_MIN_US; None: this kernel."""
CPU_MORE = 0.3
"""Additional CPU of `run` permitted with packet loss, in percent of a core."""
AIMS = {
    0.0: (Aim(p99=28, worst=120), 0),
    0.01: (Aim(p99=28, worst=120), 0),
    0.03: (Aim(p99=32, worst=120), 0),
    0.10: (Aim(p99=80), 3),
}
"""Aims by share lost: age of each picture at its paint, and the number of freezes."""


def ages_ms(pictures: Sequence[ShownPicture]) -> list[float]:
    """Return the age of the displayed picture every 10 ms: it rises until the next picture."""
    ages: list[float] = []
    for earlier, later in zip(pictures, pictures[1:], strict=False):
        steps = int((later.at_ms - earlier.at_ms) / SAMPLE_MS) + 1
        ages += [earlier.age_ms + step * SAMPLE_MS for step in range(steps)]
    return ages


def gaps_ms(pictures: Sequence[ShownPicture]) -> list[float]:
    """Return the times between pictures."""
    return [b.at_ms - a.at_ms for a, b in zip(pictures, pictures[1:], strict=False)]


def watched(
    page: Page, worsen: Callable[[], object], look_ms: float = LOSSY_MS
) -> tuple[list[ShownPicture], float]:
    """Return the pictures that a page showed after `worsen` had changed its link, and the wall
    clock at the first."""
    page.wait_for_timeout(SETTLES_MS)
    worsen()
    page.wait_for_timeout(SETTLES_MS)
    shown(page)
    begin_ms = now_ms()
    page.wait_for_timeout(look_ms)
    pictures = shown(page)
    if len(pictures) < 2:
        raise RuntimeError(f"{len(pictures)} pictures were seen")
    return pictures, begin_ms


def lossy(share: float, cpus: list[float]) -> Iterator[Result]:
    """Measure one bench and one page on another host. `cpus` collects the CPU of `run`, in %;
    the first value plus CPU_MORE is the limit for the others."""
    name = f"{share:.0%} lost each way"
    say(f"links: {name}")
    with far_away() as (lan, bench, page):
        run = bench.pid("run")
        before_s, begin_s = cpu_s(run), time.monotonic()
        pictures, begin_ms = watched(page, partial(lan.drop, share))
        took_s = time.monotonic() - begin_s
        cpus.append(100 * (cpu_s(run) - before_s) / took_s)
    yield row("links", f"{name}: CPU of run", "%", [cpus[-1]], Aim(worst=cpus[0] + CPU_MORE))
    aim, freezes_most = AIMS[share]
    yield from judged(name, pictures, (aim, Aim(p95=120), Aim(least=27), freezes_most))
    yield course(f"{name}: age", pictures, begin_ms)


def standstills() -> Iterator[Result]:
    """Measure rounds at the wheel, each with its own bench, page and connections, as one round
    may be lucky."""
    for (kernel, tcp), (camera, options) in product(KERNELS.items(), CAMERAS.items()):
        name = f"{ROUND_SHARE:.0%} lost each way, {camera}{kernel}"
        longest, ages = [], []
        for number in range(ROUNDS):
            say(f"links: {name} ({number + 1} of {ROUNDS})")
            with far_away(camera=options) as (lan, _, page):
                if tcp is not None:
                    lan.congestion(*tcp)
                pictures, _ = watched(page, partial(lan.drop, ROUND_SHARE), ROUND_MS)
            longest.append(max(gaps_ms(pictures)))
            ages.append(row("links", name, "ms", ages_ms(pictures)).p95)
        yield row(
            "links", f"{name}: longest standstill of each round", "ms", longest, Aim(worst=500)
        )
        yield row("links", f"{name}: p95 of the age of each round", "ms", ages, Aim(worst=120))


@contextmanager
def visited_far_away(lan: Lan, url: str) -> Iterator[Page]:
    """Yield the page of a rival's server on another host, with the reader in it."""
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        browser = stack.enter_context(on_the_lan(lan, home))
        page = stack.enter_context(visited(browser, url))
        glass.begin(page, CANVAS)
        yield page


def beside(share: float) -> Iterator[Result]:
    """Measure aiortc's H.264 with the same camera, browser and reader."""
    name = f"beside: aiortc, {share:.0%} lost each way"
    say(f"links: {name}")
    with Lan() as lan, serving(FPS, lan.near) as url, visited_far_away(lan, url) as page:
        pictures, _ = watched(page, partial(lan.drop, share))
    yield from judged(name, pictures, (None, None, None, None))


def judged(
    name: str,
    pictures: Sequence[ShownPicture],
    aims: tuple[Aim | None, Aim | None, Aim | None, int | None],
) -> Iterator[Row]:
    """Yield rows for ages at the paint and on the screen, rate, freezes."""
    glass_aim, age_aim, rate_aim, freezes_most = aims
    gaps = gaps_ms(pictures)
    fps = len(gaps) / sum(gaps) * 1000.0
    freezes = sum(gap > FREEZE_MS for gap in gaps)
    freezes_aim = None if freezes_most is None else Aim(worst=freezes_most)
    yield row(
        "links",
        f"{name}: capture to glass",
        "ms",
        [picture.age_ms for picture in pictures],
        glass_aim,
    )
    yield row("links", f"{name}: age on the glass", "ms", ages_ms(pictures), age_aim)
    yield row("links", f"{name}: rate", "fps", [fps], rate_aim)
    yield row("links", f"{name}: freezes over {FREEZE_MS:g} ms", "", [float(freezes)], freezes_aim)


def bursts(settings: Settings) -> Iterator[Result]:
    """Measure bursts: half of all packets are lost for 300 ms, every 5 s."""
    name, times = "300 ms of 50 % lost every 5 s", min(settings.runs, BURSTS)
    say(f"links: {name}")
    weather = Weather(burst_loss=0.5, burst_s=0.3, every_s=5.0)
    with Air() as air, far_away(over=air) as (_, _, page):
        page.wait_for_timeout(SETTLES_MS)
        shown(page)
        air.set(weather)
        begin_ms = now_ms()
        page.wait_for_timeout(times * weather.every_s * 1000)
        pictures = shown(page)
    ends_ms = [
        begin_ms + (number * weather.every_s + weather.burst_s) * 1000 for number in range(times)
    ]
    values = [recovery_ms(pictures, end_ms) for end_ms in ends_ms]
    yield row("links", f"current after {name}", "ms", values, Aim(p99=250))
    yield course(f"{name}: age", pictures, begin_ms)


def far_and_near() -> Iterator[Result]:
    """Measure a long link, with jitter and some loss."""
    say(f"links: {FAR_AND_NEAR}")
    with Air() as air, far_away(over=air) as (_, _, page):
        pictures, _ = watched(page, partial(air.set, FAR_WEATHER))
    ages = [picture.age_ms for picture in pictures]
    yield row("links", f"{FAR_AND_NEAR}: capture to glass", "ms", ages, Aim(p99=90))


def at_the_wheel() -> Iterator[Result]:
    """Measure key press to pin, and a minute of driving, with 10 % lost each way."""
    name = "10% lost each way"
    with far_away() as (lan, bench, page):
        lan.drop(0.10)
        page.wait_for_timeout(SETTLES_MS)
        yield from presses(page, bench, name, Aim(p99=120), "guard off")
        with bench.watch() as watch:
            holds(page, watch, "ArrowUp")
            earlier = bench.log().count(SILENCE)
            page.wait_for_timeout(DRIVES_MS)
            stops = bench.log().count(SILENCE) - earlier
            page.keyboard.up("ArrowUp")
    yield row("links", f"{name}: stops in a minute", "", [float(stops)], Aim(worst=0))


def roaming(settings: Settings) -> Iterator[Result]:
    """Measure a sudden change of the address of the page's host."""
    values = []
    for _ in range(min(settings.runs, ROAMS)):
        say("links: another Wi-Fi")
        with far_away() as (lan, _, page):
            page.wait_for_timeout(SETTLES_MS)
            shown(page)
            lan.roam()
            end_ms = now_ms()
            values.append(recovered(page, end_ms, ROAMED_MS)[1])
    yield row("links", "current with another address", "ms", values, Aim(worst=1000))


def rows(settings: Settings) -> Iterator[Result]:
    """Measure with increasing loss of packets."""
    cpus: list[float] = []
    for share in AIMS:
        yield from lossy(share, cpus)
        yield from beside(share)
    yield from standstills()
    yield from bursts(settings)
    yield from far_and_near()
    yield from at_the_wheel()
    yield from roaming(settings)
