"""Comparison with a tuned WebRTC sender (baselines/rival): Pion with a playout delay of 0.

Camera program, browser and reader of the clock are those of our rows. The contenders take turns, so
that each round of ours has a round of the rival in the same minutes. A ratio is that of one round.
"""

import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page
from testkit.network.air import Air
from testkit.network.lan import Lan
from testkit.network.ports import free_port

from benchmarks import load
from benchmarks.baselines.baseline import started
from benchmarks.browser import glass
from benchmarks.browser.video import CANVAS, FPS, plain, source, visited
from benchmarks.network.links import ShownPicture, far_away, shown
from benchmarks.network.links_loss import (
    FAR_AND_NEAR,
    FAR_WEATHER,
    ages_ms,
    gaps_ms,
    visited_far_away,
    watched,
)
from benchmarks.rig import Settings, opened, running, say
from benchmarks.rows import RATIO, Aim, Result, Row, row

SOURCES = Path(__file__).with_name("rival")
ROUNDS = 3
SIZES = ((640, 480), (1280, 720))
FRAMED, PLAIN = "framed camera", "plain camera"
PION, DOUBLED = "tuned Pion", "tuned Pion, doubled"
RIVALS = {PION: 1, DOUBLED: 2}
"""Name of a rival -> number of times that it sends each packet."""
GLASS, AGE, GAP = "capture to glass", "age on the glass", "longest gap of each round"
SERIES: dict[str, Callable[[Sequence[ShownPicture]], list[float]]] = {
    GLASS: lambda pictures: [picture.age_ms for picture in pictures],
    AGE: ages_ms,
    GAP: lambda pictures: [max(gaps_ms(pictures))],
}

Contender = Callable[[], Sequence[ShownPicture]]


@dataclass(frozen=True)
class Ratio:
    """Upper limit for ours divided by theirs, in one statistic of a series."""

    ours: str
    theirs: str
    series: str
    statistic: str
    most: float


NO_LOSS = [
    Ratio(ours, PION, GLASS, statistic, most)
    for ours in (FRAMED, PLAIN)
    for statistic, most in (("median", 0.95), ("p99", 1.0))
]
LOSS = [
    Ratio(FRAMED, DOUBLED, GLASS, "p99", 1.0),
    Ratio(FRAMED, DOUBLED, AGE, "p95", 0.95),
    Ratio(FRAMED, DOUBLED, GAP, "worst", 0.5),
]
JITTER = [Ratio(FRAMED, DOUBLED, GLASS, "p99", 1.0), Ratio(FRAMED, DOUBLED, AGE, "p95", 1.0)]
GO_LEAST = (1, 24)
GO_HELP = "apt install golang-go (Debian 13), or unpack Go below /usr/local/go"
SETTLED_MS = 1000
HTTPS = "fpvcar run, https"
VIEWERS = (1, 10, 50)


def order(contenders: Iterable[str]) -> Iterator[str]:
    """Return the turns of all rounds: every second round is in reverse order."""
    labels = list(contenders)
    for number in range(ROUNDS):
        yield from reversed(labels) if number % 2 else labels


def compare(
    part: str, name: str, contenders: dict[str, Contender], ratios: Sequence[Ratio]
) -> Iterator[Row]:
    """Measure all contenders in each round. Yield the series that have a ratio, and the ratios."""
    rounds: dict[str, list[Sequence[ShownPicture]]] = {label: [] for label in contenders}
    for label in order(contenders):
        say(f"{part}: {name}, {label} ({len(rounds[label]) + 1} of {ROUNDS})")
        rounds[label].append(contenders[label]())
    for series in dict.fromkeys(ratio.series for ratio in ratios):
        for label, runs in rounds.items():
            values = [value for pictures in runs for value in SERIES[series](pictures)]
            beside = "beside: " if label in RIVALS else ""
            yield row(part, f"{beside}{label}, {name}: {series}", "ms", values)
    for ratio in ratios:
        values = [
            _statistic(ratio, ours) / _statistic(ratio, theirs)
            for ours, theirs in zip(rounds[ratio.ours], rounds[ratio.theirs], strict=True)
        ]
        title = f"{ratio.ours} / {ratio.theirs}, {name}: {ratio.series}, {ratio.statistic}"
        spread = f"{min(values):.2f} to {max(values):.2f}"
        yield row(part, title, RATIO, values, Aim(ratio.most), spread)


def _statistic(ratio: Ratio, pictures: Sequence[ShownPicture]) -> float:
    series = row("", ratio.series, "ms", SERIES[ratio.series](pictures))
    value: float = getattr(series, ratio.statistic)
    return value


@contextmanager
def built() -> Iterator[Path]:
    """Build the rival within the context; yield its program. Go downloads the modules that go.mod
    pins. Raises RuntimeError if Go is missing or too old."""
    go = shutil.which("go")
    version = subprocess.run([go, "version"], capture_output=True, text=True).stdout if go else ""
    if too_old(version):
        least = ".".join(map(str, GO_LEAST))
        found = version.strip() or "no go in PATH"
        raise RuntimeError(f"the rival needs Go {least} or newer, found: {found}. {GO_HELP}")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "rival"
        subprocess.run([str(go), "build", "-o", program, "."], cwd=SOURCES, check=True)
        yield program


def too_old(version: str) -> bool:
    """Return whether Go with this `go version` cannot build the rival; "" is no Go."""
    found = re.search(r"go(\d+)\.(\d+)", version)
    return not found or (int(found[1]), int(found[2])) < GO_LEAST


@contextmanager
def serving(
    program: Path, copies: int = 1, size: tuple[int, int] = SIZES[0], host: str = "localhost"
) -> Iterator[tuple[str, int]]:
    """Serve the strip by the rival within the context; yield the URL of its page, and its
    process id."""
    address = f"{host}:{free_port()}"
    camera = ["-m", "fpvcar", "camera", "bench", "--source=strip", f"--fps={FPS}"]
    camera += [f"--width={size[0]}", f"--height={size[1]}"]
    argv = [str(program), f"-listen={address}", f"-copies={copies}", "--", sys.executable, *camera]
    url = f"http://{address}/"
    with started(argv, url) as pid:
        yield url, pid


def video_rows(settings: Settings) -> Iterator[Result]:
    """Measure all contenders on this machine, without loss. The rounds of a contender share the
    seconds of a row."""

    def look(page: Page) -> Sequence[ShownPicture]:
        glass.begin(page, CANVAS)
        page.wait_for_timeout(SETTLED_MS)
        shown(page)
        page.wait_for_timeout(settings.seconds * 1000 / ROUNDS)
        return shown(page)

    def ours(browser: Browser, camera: list[str]) -> Sequence[ShownPicture]:
        with running(*camera) as bench, opened(browser, bench.url) as page:
            return look(page)

    def theirs(browser: Browser, size: tuple[int, int]) -> Sequence[ShownPicture]:
        with serving(program, size=size) as (url, _), visited(browser, url) as page:
            return look(page)

    with built() as program, settings.chromium() as browser:
        for size in SIZES:
            contenders: dict[str, Contender] = {
                FRAMED: partial(ours, browser, source("strip", FPS, *size)),
                PLAIN: partial(ours, browser, plain(FPS, *size)),
                PION: partial(theirs, browser, size),
            }
            yield from compare("video", f"{size[0]}x{size[1]}@{FPS}", contenders, NO_LOSS)


def loss_rows(settings: Settings) -> Iterator[Result]:
    """Measure 3 and 10 % of the packets lost each way, with a page on another host."""
    with built() as program:
        for share in (0.03, 0.10):
            worsen = partial(Lan.drop, share=share)
            yield from _far(program, f"{share:.0%} lost each way", Lan, worsen, LOSS)


def jitter_rows(settings: Settings) -> Iterator[Result]:
    """Measure a long link with jitter and some loss."""
    with built() as program:
        worsen = partial(Air.set, weather=FAR_WEATHER)
        yield from _far(program, FAR_AND_NEAR, Air, worsen, JITTER)


def _far(
    program: Path,
    name: str,
    link: type[Lan],
    worsen: Callable[[Any], object],
    ratios: Sequence[Ratio],
) -> Iterator[Result]:
    def ours() -> Sequence[ShownPicture]:
        with link() as lan, far_away(over=lan) as (_, _, page):
            return watched(page, partial(worsen, lan))[0]

    def theirs(copies: int) -> Sequence[ShownPicture]:
        with link() as lan:
            with (
                serving(program, copies, host=lan.near) as (url, _),
                visited_far_away(lan, url) as page,
            ):
                return watched(page, partial(worsen, lan))[0]

    contenders: dict[str, Contender] = {FRAMED: ours}
    for label, copies in RIVALS.items():
        contenders[label] = partial(theirs, copies)
    yield from compare("links", name, contenders, ratios)


def load_rows(settings: Settings) -> Iterator[Result]:
    """Measure the CPU of `run` over https and of the rival, without their camera program, with
    the same number of viewers."""
    seconds = min(settings.seconds, load.SECONDS_MOST)

    def ours(count: int) -> load.Load:
        with running(*load.SOURCE, *load.CROWDED) as bench:
            return load.measure(bench, count, seconds, FPS, scheme="https")

    def theirs(count: int) -> load.Load:
        with serving(program) as (url, pid):
            crowd = load.Crowd([str(program), f"-watch={url}", f"-viewers={count}"], count)
            return load.watched(crowd, {"run": pid}, seconds, FPS)

    with built() as program:
        for count in VIEWERS:
            contenders = {HTTPS: ours, PION: theirs}
            rounds: dict[str, list[load.Load]] = {HTTPS: [], PION: []}
            for label in order(contenders):
                say(f"load: {count} viewers, {label}")
                rounds[label].append(contenders[label](count))
            for label, loads in rounds.items():
                beside = "beside: " if label in RIVALS else ""
                values = [statistics.mean(each.cpu["run"]) for each in loads]
                name = f"{beside}CPU, {count} viewers, {label}"
                yield row("load", name, "%", values, note=loads[-1].note)
            ratios = [
                statistics.mean(ours.cpu["run"]) / statistics.mean(theirs.cpu["run"])
                for ours, theirs in zip(rounds[HTTPS], rounds[PION], strict=True)
            ]
            aim = Aim(0.4) if count == VIEWERS[-1] else None
            yield row("load", f"CPU, {count} viewers, {HTTPS} / {PION}", RATIO, ratios, aim)
