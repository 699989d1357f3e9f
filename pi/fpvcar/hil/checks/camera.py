"""The camera: from something that happens to the access unit in which it is seen.

flash at a known time --> camera --> car --> /ws/video --> decoded here --> seen
"""

import importlib.util
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from fpvcar.hil.driver import Driver, wait_for
from fpvcar.hil.results import Limit, Measured
from fpvcar.hil.rig import Check, Failed, NotHere, Rig

SEEN_S = 3.0
UNITS = 30
STARTED_S = 10.0
DECODER = "PyAV (pip install av; Debian: python3-av)"


def _pictures(driver: Driver) -> Iterator[tuple[int, Any]]:
    """(when it came, luma) of each access unit, as they come."""
    if importlib.util.find_spec("av") is None:
        raise NotHere(f"no {DECODER}")
    import av

    decoder = av.CodecContext.create("h264", "r")
    taken, end_s = 0, time.monotonic() + SEEN_S
    while time.monotonic() < end_s:
        if taken == len(driver.units):
            time.sleep(0.001)
            continue
        came_ns, _, unit = driver.units[taken]
        taken += 1
        for frame in decoder.decode(av.Packet(unit)):
            yield came_ns, frame.to_ndarray()[: frame.height, : frame.width]


def _seen(rig: Rig) -> Measured:
    """From the flash to the arrival of the unit that shows it."""
    with rig.driver() as driver:
        driver.look()
        wait_for(lambda: len(driver.units) > 3, "no pictures", STARTED_S)
        flash = None
        for came_ns, luma in _pictures(driver):
            if flash is None:  # the decoder works: now
                flash = rig.flash(luma)
            elif came_ns > flash.at_ns and flash.seen(luma):
                return Measured((came_ns - flash.at_ns) / 1e9)
    raise Failed(f"nothing of the flash in {SEEN_S:g} s of pictures")


def _steady(rig: Rig) -> Measured:
    """The longest pause between two pictures, in frame times, over a second."""
    with rig.driver() as driver:
        driver.look()
        wait_for(lambda: len(driver.units) > UNITS, "too few pictures", STARTED_S)
        stamps = [header.capture_us for _, header, _ in driver.units[1:]]
    longest_us = max(after - one for one, after in pairwise(stamps))
    return Measured(longest_us * rig.profile.camera.fps / 1e6)


CHECKS = (
    Check("camera-flash", "camera", "What happens is in an access unit soon.",
          Limit(0.15, "s", "three frame times, and 50 ms for encoder and link"),
          ("camera", "flash"), _seen),
    Check("camera-steady", "camera", "No picture is missing between two others.",
          Limit(6.0, "frames", "gate.blind_s: 0.25 s without a picture stop the car"),
          ("camera",), _steady),
)  # fmt: skip
