"""Drive over a far link: the page's own modules on another host, without a browser, and figures of
what its driver would see."""

import json
import re
import shutil
import statistics
import subprocess
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

from fpvcar.recordings import codec, reader
from fpvcar.recordings.messages import WISH, WishIn
from testkit.browsers.phone import drive_code
from testkit.harness import RunningBench, wait_for
from testkit.network.air import Air, Weather

SCRIPT = Path(__file__).with_name("far_page.js")
SETTLES_S = 6.0
"""Time after a change of the link before anything is counted: the bitrate follows the link, and the
share of lost packets is known after 5 s."""
POLL_S = 0.25
WRITTEN_S = 2.0
"""Time until the newest wishes are in the recording's file."""


@dataclass(frozen=True)
class FarLink:
    """Far link: round trip in seconds, share of packets lost each way, and its MTU."""

    round_trip_s: float
    loss: float = 0.0
    mtu: int = 1500

    @property
    def weather(self) -> Weather:
        return Weather(delay_s=self.round_trip_s / 2, loss=self.loss)

    def __str__(self) -> str:
        mtu = "" if self.mtu == 1500 else f", MTU {self.mtu}"
        return f"{self.round_trip_s * 1000:.0f} ms, {self.loss:.0%} lost{mtu}"


LINKS = (
    *(FarLink(trip_s, loss) for trip_s in (0.04, 0.1, 0.24) for loss in (0.0, 0.01, 0.03, 0.05)),
    FarLink(0.1, 0.01, 1280),
)
AIMED = FarLink(0.1, 0.01)
"""Link whose stops and standstills have an aim."""
CUBIC = "cubic"
"""Congestion control of Raspberry Pi OS and of most phones."""


@dataclass(frozen=True)
class FarDrive:
    """Figures of one drive over a link."""

    seconds: float
    ages_ms: Sequence[float]
    """Ages of the pictures, each at its arrival at the page."""
    gaps_ms: Sequence[float]
    """Times between two pictures, the ends of the drive included."""
    wishes: int
    """Number of fresh wishes that the car accepted."""
    stops: Mapping[str, int]
    """Number of stops by cause."""
    driven: float
    """Share of the time in which the motors turned."""
    bitrates: Sequence[float]
    """bit/s requested from the camera, four times a second."""
    late: float
    """Share of the time in which the page held wishes back, as the round trip was too long."""
    round_trip_ms: float
    """Median that the page measured."""

    @property
    def fps(self) -> float:
        return len(self.ages_ms) / self.seconds

    def __str__(self) -> str:
        p95_ms = statistics.quantiles(self.ages_ms, n=20)[-1]
        return (
            f"picture {statistics.median(self.ages_ms):.0f} ms, p95 {p95_ms:.0f}; standstill "
            f"{self.standstill_ms:.0f} ms; {self.fps:.1f} fps; "
            f"{statistics.median(self.bitrates) / 1000:.0f} kbit/s; "
            f"{self.wishes / self.seconds:.1f} wishes/s; stops {dict(self.stops)}; "
            f"driven {self.driven:.0%}, held back {self.late:.0%}; "
            f"round trip {self.round_trip_ms:.0f} ms"
        )

    @property
    def standstill_ms(self) -> float:
        """Longest time without a new picture."""
        return max(self.gaps_ms)


class FarPage:
    """Page of a driver on the far host, as a context manager."""

    def __init__(self, air: Air, bench: RunningBench) -> None:
        self.lines: list[dict[str, Any]] = []
        url = f"http://{air.near}:{bench.port}/"
        node = ["node", "--experimental-websocket", "--no-warnings", str(SCRIPT)]
        self._process = subprocess.Popen(
            ["setpriv", "--pdeathsig=KILL", *air.enter, *node, url, drive_code(bench)],
            stdout=subprocess.PIPE,
        )
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(json.loads(line))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(10.0)
        self._thread.join()
        assert self._process.stdout is not None
        self._process.stdout.close()


def _stops(bench: RunningBench) -> Counter[str]:
    """Return the number of stops so far by their cause."""
    with urllib.request.urlopen(f"{bench.url}metrics", timeout=10.0) as answer:
        found = re.findall(
            r'^fpvcar_stops_total\{cause="(\w+)"\} (\S+)', answer.read().decode(), re.M
        )
    return Counter({cause: int(float(count)) for cause, count in found})


def _bitrate(bench: RunningBench) -> float:
    with urllib.request.urlopen(f"{bench.url}api/status", timeout=10.0) as answer:
        return float(json.load(answer)["bitrate_wanted"])


def _accepted(bench: RunningBench, since_ns: int, until_ns: int) -> int:
    """Return the number of fresh wishes in the car's recordings, between two wall clock times."""
    count = 0
    for path in (bench.state / "recordings").iterdir():
        if not path.name.endswith((".mcap", ".mcap.part")):
            continue
        with reader.read(path) as recording:
            for wish in recording.messages([WISH], since_ns, until_ns):
                message = codec.decode(WISH, wish.data)
                count += isinstance(message, WishIn) and message.verdict == "fresh"
    return count


def works() -> bool:
    """Return whether this computer's Node.js has WebSockets: version 20 has."""
    words = ["--experimental-websocket", "--eval", "new WebSocket('ws://localhost:9').close()"]
    node = shutil.which("node")
    return node is not None and not subprocess.run([node, *words], capture_output=True).returncode


def measured(air: Air, bench: RunningBench, link: FarLink, seconds: float) -> FarDrive:
    """Drive over this link for so long. Packets are lost once the car drives: the start would only
    take longer."""
    air.mtu(link.mtu)
    air.set(replace(link.weather, loss=0.0))
    try:
        with FarPage(air, bench) as page, bench.watch() as watch:
            wait_for(lambda: watch.now.driving, "the car does not drive", 60.0)
            air.set(link.weather)
            time.sleep(SETTLES_S)
            stops, begin_ns, begin_us = _stops(bench), time.time_ns(), time.monotonic_ns() // 1000
            until_s, bitrates, drove = time.monotonic() + seconds, list[float](), list[bool]()
            while (now_s := time.monotonic()) < until_s:
                bitrates.append(_bitrate(bench))
                while time.monotonic() < now_s + POLL_S:
                    drove.append(watch.now.driving)
                    time.sleep(0.01)
            end_us, end_ns = time.monotonic_ns() // 1000, time.time_ns()
            stops = _stops(bench) - stops  # a Counter keeps those above 0
    finally:
        air.find()
        air.mtu(1500)
    time.sleep(WRITTEN_S)
    lines = [line for line in page.lines if begin_us <= line["at_us"] <= end_us]
    pictures = [line for line in lines if line["kind"] == "picture"]
    beats = [line for line in lines if line["kind"] == "beat"]
    if not beats:
        raise RuntimeError(f"the page had no link: {page.lines[-3:]}")
    at_us = [begin_us, *(picture["at_us"] for picture in pictures), end_us]
    return FarDrive(
        seconds=(end_us - begin_us) / 1e6,
        ages_ms=[(picture["at_us"] - picture["capture_us"]) / 1000.0 for picture in pictures],
        gaps_ms=[(b - a) / 1000.0 for a, b in pairwise(at_us)],
        wishes=_accepted(bench, begin_ns, end_ns),
        stops=stops,
        driven=statistics.mean(drove),
        bitrates=bitrates,
        late=statistics.mean(beat["late"] for beat in beats),
        round_trip_ms=statistics.median(beat["round_trip_ms"] or 0.0 for beat in beats),
    )
