"""Figures of a soak, by name: the car's processes, and pages that measure."""

import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.memory import resident_mb
from benchmarks.rig import wall_ahead_ms
from playwright.sync_api import Browser, Page
from testkit.browsers.seat import opened, probe, until
from testkit.harness import RunningBench

Figures = dict[str, float]
READER = Path(__file__).parents[2] / "benchmarks" / "browser" / "glass.js"
PICTURE = {"webcodecs": "#picture", "mse": "#picture-mse"}
TAKE = "() => { glass.presented.length = 0; return glass.painted.splice(0); }"
COUNT_SOCKETS = """
window.socketsOpened = 0;
window.WebSocket = class extends WebSocket {
  constructor(...given) {
    super(...given);
    window.socketsOpened += !this.url.includes('/ws/copies');
  }
};
"""


def threads(pid: int) -> int:
    """Return the number of threads of a process."""
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


class Processes:
    """The car's own processes. Each keeps its id for as long as it lives."""

    def __init__(self, bench: RunningBench) -> None:
        self._bench = bench
        self._pids = self._now()
        self.restarted: list[str] = []

    def _now(self) -> dict[str, int]:
        units = {name: self._bench.pid(name) for name in ("run", "wheels", "pigpiod")}
        return {**units, "camera": self._bench.cameras()[0]}

    def figures(self) -> Figures:
        """Return memory, descriptors and threads of each process, and note restarted ones."""
        found: Figures = {}
        before, self._pids = self._pids, self._now()
        for name, pid in self._pids.items():
            self.restarted += [name] if before[name] != pid else []
            found[f"{name}, resident MB"] = resident_mb(pid)
            found[f"{name}, descriptors"] = len(list(Path(f"/proc/{pid}/fd").iterdir()))
            found[f"{name}, threads"] = threads(pid)
        return found


class Glass:
    """A page, its clock strip read before every paint, and its heap."""

    def __init__(self, page: Page, name: str) -> None:
        self.page, self.name = page, name
        # Relative to the page's own time origin: NTP may move the wall clock during an hour.
        self._ahead_ms = wall_ahead_ms()
        self._inspector = page.context.new_cdp_session(page)
        self._inspector.send("Performance.enable")
        page.evaluate(READER.read_text(encoding="utf-8"), PICTURE[name])
        until(page, "glass.painted.length >= 2", 20.0)  # a second page takes longer to start
        self._shown_ms: float | None = None

    def figures(self) -> Figures:
        """Return age of the pictures at their paint, rate and longest freeze since the last
        call, and the heap's size now."""
        samples = self.page.evaluate(TAKE)
        shown = [at_ms for _, at_ms in samples]
        if self._shown_ms is not None:
            shown.insert(0, self._shown_ms)
        if len(shown) < 2:
            raise AssertionError(f"{self.name}: no pictures: {probe(self.page, 'video')}")
        self._shown_ms = shown[-1]
        self._inspector.send("HeapProfiler.collectGarbage")  # only retained memory is left
        ages = [(at - self._ahead_ms - clock + 2**31) % 2**32 - 2**31 for clock, at in samples]
        pairs = zip(shown, shown[1:], strict=False)
        return {
            f"{self.name}, age ms": statistics.median(ages),
            f"{self.name}, pictures/s": 1000 * (len(shown) - 1) / (shown[-1] - shown[0]),
            f"{self.name}, longest freeze ms": max(b - a for a, b in pairs),
            f"{self.name}, heap MB": self._metric("JSHeapUsedSize") / 1e6,
            f"{self.name}, nodes": self._metric("Nodes"),
        }

    def _metric(self, name: str) -> float:
        answer: dict[str, Any] = self._inspector.send("Performance.getMetrics")
        return next(float(one["value"]) for one in answer["metrics"] if one["name"] == name)

    @property
    def sockets(self) -> int:
        """Return the number of WebSockets that the page has opened: two, unless it reconnected.
        The one for copies comes and goes by itself, also where a busy machine answers late."""
        return int(self.page.evaluate("window.socketsOpened"))


@contextmanager
def watching(browser: Browser, url: str, path: str) -> Iterator[Glass]:
    """A page of its own session that shows pictures by `path`."""
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    context.add_init_script(COUNT_SOCKETS)
    yield Glass(opened(context.new_page(), f"{url}?path={path}"), path)
    context.close()


def renderers_mb(browser: Browser) -> Figures:
    """Return the resident memory of all the browser's renderers together."""
    session = browser.new_browser_cdp_session()
    try:
        found = session.send("SystemInfo.getProcessInfo")["processInfo"]
        pids = [one["id"] for one in found if one["type"] == "renderer"]
        return {"renderers, resident MB": sum(resident_mb(pid) for pid in pids)}
    finally:
        session.detach()
