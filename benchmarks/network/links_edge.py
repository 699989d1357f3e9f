"""Drive of the bench's car to the edge of the Wi-Fi and back, and its replay.

The room represents a field: the car's distance from its start sets rate and loss of the link, by
testkit/network/wifi.py.
"""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

from playwright.sync_api import Page
from testkit.browsers.seat import go_on, holds
from testkit.harness import PinWatch, RunningBench, wait_for
from testkit.network import wifi
from testkit.network.air import Air, Weather

from benchmarks.network.links import course, far_away, now_ms, shown
from benchmarks.network.links_loss import SETTLES_MS, ages_ms
from benchmarks.rig import Settings, say
from benchmarks.rows import Curve, Result, row
from fpvbench.world.scene import START_X_M
from fpvcar.recordings import codec, messages, reader

FROM_M, EDGE_M = 100.0, 128.0
"""Distances by wifi.py: no loss at 115 m, 1 % at 125 m, full loss at 135 m."""
WAY_M = 1.8
"""Length of the free way in front of the car."""
OPTIONS = ("--set=gate.limit = 0.2",)
STEP_MS, WAY_MOST_S = 100, 90.0


class Field:
    """Position of the car, and its effect on the link."""

    def __init__(self, air: Air, bench: RunningBench, page: Page) -> None:
        self._air, self._bench, self._page = air, bench, page
        self.begin_ms = now_ms()
        self.course: list[tuple[float, float, float]] = []
        """Course of the drive: seconds, metres, % of the packets lost each way."""

    def share(self) -> float:
        """Return the share of the way to the edge; set the link for the current position."""
        share: float = (self._bench.world().x_m - START_X_M) / WAY_M
        metres = FROM_M + (EDGE_M - FROM_M) * min(max(share, 0.0), 1.0)
        rate, lost = wifi.link(metres)
        self._air.set(Weather(loss=lost, bits_per_s=rate))
        self.course.append(((now_ms() - self.begin_ms) / 1000, metres, 100 * lost))
        return share

    def drive(self, watch: PinWatch, key: str, goal: float) -> None:
        """Hold a key until the car reaches `goal` (share of the way); press it again after a
        stop."""
        ahead, began_ms = key == "ArrowUp", now_ms()
        while (self.share() < goal) if ahead else (self.share() > goal):
            if now_ms() - began_ms > WAY_MOST_S * 1000:
                raise RuntimeError(f"it does not get there: {self.course[-1]}")
            if not watch.now.driving:
                self._page.keyboard.up(key)
                go_on(self._page)
                holds(self._page, watch, key)
            self._page.wait_for_timeout(STEP_MS)
        self._page.keyboard.up(key)


def lost_shares(bench: RunningBench, begin_ms: float) -> list[tuple[float, float]]:
    """Return seconds, and % of the packets sent again, from the car's recording."""
    (path,) = (bench.state / "recordings").glob("*.mcap*")
    shares = []
    with reader.read(path) as recording:
        for message in recording.messages([messages.LATENCY]):
            latency = codec.decode(messages.LATENCY, message.data)
            assert isinstance(latency, messages.Latency)
            if latency.drives and latency.lost is not None:
                shares.append((message.log_ns / 1e9 - begin_ms / 1000, 100 * latency.lost))
    return [share for share in shares if share[0] >= 0.0]


def replayed(bench: RunningBench) -> None:
    """Replay the gate's decisions. Raises RuntimeError if they differ."""
    (path,) = (bench.state / "recordings").glob("*.mcap*")
    argv = [sys.executable, "-m", "fpvcar", "replay", "--partial", str(path)]
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"replay: {done.stdout}{done.stderr}")


def rows(settings: Settings) -> Iterator[Result]:
    """Measure one drive there and back."""
    name = f"a drive to {EDGE_M:g} m and back"
    say(f"links: {name}")
    with Air() as air, far_away(over=air, options=OPTIONS) as (_, bench, page):
        page.wait_for_timeout(SETTLES_MS)
        shown(page)
        with bench.watch() as watch:
            field = Field(air, bench, page)
            field.drive(watch, "ArrowUp", 1.0)
            field.drive(watch, "ArrowDown", 0.1)
        pictures = shown(page)
        air.set(Weather())
        recorded: list[tuple[float, float]] = []

        def all_there() -> bool:
            recorded[:] = lost_shares(bench, field.begin_ms)
            return bool(recorded) and recorded[-1][0] >= field.course[-1][0] - 1.0

        wait_for(all_there, "it is not recorded", 20.0, 0.5)
        replayed(bench)
    yield row("links", f"{name}: age on the glass", "ms", ages_ms(pictures))
    shares = [lost for _, lost in recorded]
    yield row("links", f"{name}: sent again, as recorded", "%", shares)
    yield replace(course(f"{name}: age", pictures, field.begin_ms), part="edge")
    times, metres, lost = zip(*field.course, strict=True)
    yield Curve("edge", "distance", "m", times, metres)
    yield Curve("edge", "packets lost each way", "%", times, lost)
    at_s, lost_again = zip(*recorded, strict=True)
    yield Curve("edge", "sent again, as recorded", "%", at_s, lost_again)
