"""Drive over far links: pictures, wishes, stops of the gate, and the bitrate to which the car
settles; and the cost of the WireGuard tunnel beside a direct connection.

The page is the seat's own modules on another host (testkit/network/far.py), without a browser: its
pictures arrive, and are not drawn. Packets are lost at random in each direction.
"""

import os
import shutil
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

from testkit.browsers.phone import on_the_lan, take_wheel
from testkit.driver import make_whole
from testkit.network import tunnel
from testkit.network.air import Air
from testkit.network.far import AIMED, CUBIC, LINKS, FarDrive, FarLink, measured
from testkit.network.lan import Lan

from benchmarks.browser import glass
from benchmarks.browser.control import press_to_pin
from benchmarks.browser.video import CANVAS, FPS, source
from benchmarks.rig import Settings, opened, running, say
from benchmarks.rows import Aim, Note, Result, row

PART = "far"
SECONDS = 60.0
TURNS, SETTLES_MS = 3, 2000
WAYS = ("direct", "tunnel")
MORE = Aim(worst=1.0)
"""ms that the tunnel may cost."""


def rows(settings: Settings) -> Iterator[Result]:
    """Measure each link with a bench and connections of its own."""
    for link in LINKS:
        say(f"far: {link}")
        with Air() as air, running("--host=0.0.0.0", *source("strip", FPS)) as bench:
            air.congestion(CUBIC)
            yield from judged(link, measured(air, bench, link, SECONDS))


def judged(link: FarLink, drive: FarDrive) -> Iterator[Result]:
    """Yield the rows of one drive."""
    aimed = link == AIMED
    stops = sum(drive.stops.values()) * 60.0 / drive.seconds
    causes = ", ".join(f"{count} {cause}" for cause, count in drive.stops.items())
    aims = (Aim(worst=300), Aim(worst=0)) if aimed else (None, None)
    yield row(PART, f"{link}: picture", "ms", drive.ages_ms, note="age at its arrival")
    yield row(PART, f"{link}: longest standstill", "ms", [drive.standstill_ms], aims[0])
    yield row(PART, f"{link}: pictures", "fps", [drive.fps])
    yield row(PART, f"{link}: bitrate", "kbit/s", [rate / 1000.0 for rate in drive.bitrates])
    yield row(PART, f"{link}: wishes accepted", "/s", [drive.wishes / drive.seconds])
    yield row(PART, f"{link}: stops in a minute", "", [stops], aims[1], causes)
    note = f"round trip {drive.round_trip_ms:.0f} ms; page held back {drive.late:.0%}"
    yield row(PART, f"{link}: driven", "%", [100.0 * drive.driven], note=note)


def beside(settings: Settings) -> Iterator[Result]:
    """Measure the same page of another host by the car's own address and through the tunnel of
    `fpvcar remote`, in turns."""
    if missing := [name for name in ("wg-quick", tunnel.USERSPACE) if not shutil.which(name)]:
        yield Note(PART, f"the tunnel beside a direct connection: not installed: {missing}")
        return
    ages: dict[str, list[float]] = {way: [] for way in WAYS}
    presses: dict[str, list[float]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as folder, Lan() as lan:
        with open(os.devnull, "w") as null, redirect_stdout(null):
            made, address = tunnel.remote(lan, Path(folder), lan.far, phones=0)
        options = ("--host=0.0.0.0", f'--set=server.allowed_hosts = ["{address}"]')
        with (
            tunnel.wireguard(made, server=lan.enter, car=tunnel.HERE),
            running(*options, *source("strip", FPS)) as bench,
            on_the_lan(lan, Path(folder), bench.port, address=address) as browser,
        ):
            hosts = dict(zip(WAYS, (lan.near, address), strict=True))
            for turn, way in [(turn, way) for turn in range(TURNS) for way in WAYS]:
                say(f"far: {way} ({turn + 1} of {TURNS})")
                with opened(browser, f"http://{hosts[way]}:{bench.port}/") as page:
                    take_wheel(page, bench)
                    page.wait_for_timeout(SETTLES_MS)
                    ages[way] += glass.watch(page, CANVAS, settings.seconds)[0].ages_ms
                    presses[way] += press_to_pin(page, bench, settings.runs)
                make_whole(bench)
    for name, values in (("picture", ages), ("key press to pin", presses)):
        for way in WAYS:
            yield row(PART, f"{name}, {way}", "ms", values[way])
        more = statistics.median(values["tunnel"]) - statistics.median(values["direct"])
        yield row(PART, f"{name}, more through the tunnel", "ms", [more], MORE)
