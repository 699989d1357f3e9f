"""Camera checks: the delay from a lit LED to the picture that shows it.

LED lit at a known time --> camera --> car --> /ws/video --> decoded here --> seen
                                                         --> a browser's page --> seen
                                                             its screen --> a light sensor's edge
"""

import importlib.util
import random
import time
from collections.abc import Iterator
from itertools import islice, pairwise

from fpvcar.devices import backends
from fpvcar.devices.pins import Edge
from fpvcar.hil import led_detector
from fpvcar.hil.driver import Driver, wait_for
from fpvcar.hil.gpio_rig import Rig
from fpvcar.hil.pin_recorder import TICKS
from fpvcar.hil.results import Limit, Measured
from fpvcar.hil.rig import Check, CheckFailed, MissingPart, SeenPicture

SETTLE_S = 0.2
"""Longest delay of a camera that does not timestamp pictures itself; those are
stamped on arrival."""
LEARNT = 5
"""Number of pictures used to learn the dark LED, and again for the lit LED."""
SEEN_S = 3.0
UNITS = 30
DARK_S = 0.5
"""Time without an edge of the light sensor before a flash."""
NOT_SEEN = (
    "the light sensor missed a flash: show the car's page on that screen, place the sensor where "
    "the LED appears, and adjust its threshold"
)
FLICKERS = (
    "the light sensor sees flicker without the LED: set the screen to full brightness, as a dimmed "
    "one pulses, and shade the sensor"
)
STARTED_S = 10.0
DECODER = "PyAV (pip install av; Debian: python3-av)"
Pictures = Iterator[SeenPicture]


def flashed(rig: Rig, pictures: Pictures) -> Measured:
    """Measure from switching the LED to the picture that shows it. The LED's place
    is learnt first. Raises CheckFailed."""

    def shown(lit: bool) -> list[led_detector.Cells]:
        ready_ns = rig.light(lit) + int(SETTLE_S * 1e9)
        later = (picture.cells for picture in pictures if picture.captured_ns > ready_ns)
        return list(islice(later, LEARNT))

    led = led_detector.find(shown(False), shown(True))
    if any(map(led.lit, shown(False))):
        raise CheckFailed("the picture stays bright although the LED is off")
    # out of step with the camera
    time.sleep(random.random() / rig.profile.camera.fps)
    waited_s = rig.waited_s()
    begin_ns = rig.light(True)
    for picture in pictures:
        if led.lit(picture.cells):
            seen_s = (picture.seen_ns - begin_ns) / 1e9
            return Measured(seen_s, waited_s=waited_s())
        if picture.captured_ns > begin_ns + SEEN_S * 1e9:
            break
    raise CheckFailed(f"the LED is not visible in {SEEN_S:g} s of pictures")


def _pictures(driver: Driver) -> Pictures:
    """Yield each access unit, decoded. Raises MissingPart or CheckFailed."""
    if importlib.util.find_spec("av") is None:
        raise MissingPart(f"missing {DECODER}")
    import av

    decoder = av.CodecContext.create("h264", "r")
    taken, end_s = 0, time.monotonic() + SEEN_S
    while time.monotonic() < end_s:
        if taken == len(driver.units):
            time.sleep(0.001)
            continue
        came_ns, header, unit = driver.units[taken]
        taken, end_s = taken + 1, time.monotonic() + SEEN_S
        for frame in decoder.decode(av.Packet(unit)):
            luma = frame.to_ndarray()[: frame.height, : frame.width]
            yield SeenPicture(came_ns, header.capture_us * 1000, led_detector.of_luma(luma))
    raise CheckFailed(f"no picture for {SEEN_S:g} s")


def _seen(rig: Rig) -> Measured:
    """Measure from the LED to the arrival of the access unit that shows it."""
    with rig.driver() as driver:
        driver.look()
        wait_for(lambda: len(driver.units) > 3, "no pictures", STARTED_S)
        return flashed(rig, _pictures(driver))


def _on_glass(rig: Rig) -> Measured:
    """Measure from the LED to the browser's paint that shows it."""
    with rig.glass() as glass:
        return flashed(rig, glass.pictures())


def _on_screen(rig: Rig) -> Measured:
    """Measure from the LED to the edge of the light sensor on the screen."""
    gpio = rig.profile.rig.photodiode
    assert gpio is not None
    waited_s = rig.waited_s()
    with rig.edges((gpio,)) as edges:
        rig.light(False)
        end_s = time.monotonic() + SEEN_S
        while edges.read(DARK_S):
            if time.monotonic() > end_s:
                raise CheckFailed(FLICKERS)
        dark = edges.level(gpio)
        # out of step with the camera
        time.sleep(random.random() / rig.profile.camera.fps)
        if edges.read(0.0):
            raise CheckFailed(FLICKERS)
        begin_ns = rig.light(True)
        while (left_s := SEEN_S - (time.monotonic_ns() - begin_ns) / 1e9) > 0.0:
            for edge in edges.read(left_s):
                if edge.level != dark:
                    return Measured(_after_s(rig, edge, begin_ns), waited_s=waited_s())
    raise CheckFailed(NOT_SEEN)


def _after_s(rig: Rig, edge: Edge, begin_ns: int) -> float:
    """Return the time of an edge that was just read. The kernel stamps it by CLOCK_MONOTONIC, but
    pigpiod by a clock of its own."""
    if backends.pins_backend(rig.profile) == "linux":
        return ((edge.tick_us - begin_ns // 1000) % TICKS) / 1e6
    return (time.monotonic_ns() - begin_ns) / 1e9


def _steady(rig: Rig) -> Measured:
    """Measure the longest pause between two pictures, in frame times, over a second."""
    with rig.driver() as driver:
        driver.look()
        wait_for(lambda: len(driver.units) > UNITS, "too few pictures", STARTED_S)
        stamps = [header.capture_us for _, header, _ in driver.units[1:]]
    longest_us = max(after - before for before, after in pairwise(stamps))
    return Measured(longest_us * rig.profile.camera.fps / 1e6)


CHECKS = (
    Check(
        "camera-flash",
        "camera",
        "A change in front of the camera arrives in an access unit in time.",
        Limit(0.15, "s", "three frame times, and 50 ms for encoder and link"),
        ("camera", "flash"),
        _seen,
    ),
    Check(
        "camera-glass",
        "camera",
        "A change in front of the camera appears in a browser in time.",
        Limit(0.40, "s", "web/video/video.js: a page greys older pictures"),
        ("camera", "flash", "browser"),
        _on_glass,
    ),
    Check(
        "camera-screen",
        "camera",
        "A change in front of the camera lights up on a screen in time.",
        Limit(0.40, "s", "as camera-glass; the screen's own delay counts, too"),
        ("camera", "flash", "photodiode"),
        _on_screen,
        metal=True,
    ),
    Check(
        "camera-steady",
        "camera",
        "No picture is missing between two others.",
        Limit(6.0, "frames", "gate.blind_s: 0.25 s without a picture stop the car"),
        ("camera",),
        _steady,
    ),
)
