"""Sensor and button checks: the car's readings compared with the true values."""

import statistics
import time
from typing import Any

import msgspec

from fpvcar.devices.chips.hcsr04 import from_width
from fpvcar.hil.checks.pins import listened
from fpvcar.hil.driver import Driver, wait_for
from fpvcar.hil.gpio_rig import Rig
from fpvcar.hil.results import Limit, Measured
from fpvcar.hil.rig import Check, CheckFailed
from fpvcar.runtime.texts import Text

ECHO_S = 0.4
PAIRS, ECHOES = 5, 3
READINGS = 9
ANSWER_S = 8.0
AFTER_S = 1.0


def _range_of(driver: Driver, name: str) -> dict[str, Any]:
    """Return the newest reading of a healthy sensor. Raises CheckFailed."""
    readings: list[dict[str, Any]] = []

    def healthy() -> bool:
        ranges = driver.state.get("ranges", ())
        readings[:] = [reading for reading in ranges if reading["name"] == name]
        return bool(readings) and readings[0]["state"] == "ok"

    try:
        wait_for(healthy, "", ANSWER_S)
    except TimeoutError:
        told = readings[0]["state"] if readings else "not reported by the car"
        state = msgspec.convert(told, str | Text)
        raise CheckFailed(f"{name}: {state}, for {ANSWER_S:g} s") from None
    return readings[0]


def _median_m(driver: Driver, name: str) -> float:
    """Return the median of several ranges. Raises CheckFailed without any."""
    values = list[float]()
    for _ in range(READINGS):
        value = _range_of(driver, name)["range_m"]
        if value is not None:
            values.append(value)
        time.sleep(0.1)
    if not values:
        raise CheckFailed(f"{name}: the car reports no value")
    return statistics.median(values)


def _echo(rig: Rig) -> Measured:
    """Compare the car's range with the echo's own length, timed on an extra pin.

    Each range is compared with the echoes just before it: the car may still roll, or be carried.
    """
    (name, sensor), *_ = rig.profile.sensors.ultrasound.items()
    assert rig.profile.rig.echo is not None
    differences = []
    with rig.driver() as driver, rig.edges((rig.profile.rig.echo,)) as edges:
        for _ in range(PAIRS):
            _range_of(driver, name)
            widths = listened(edges, rig.profile.rig.echo, ECHO_S).widths_us
            reported_m = _range_of(driver, name)["range_m"] or 0.0
            width_us = statistics.median(widths[-ECHOES:])
            sample = from_width(round(width_us), rig.profile.sensors.celsius)
            if sample.range_m is None:
                raise CheckFailed(f"{name}: an echo of {width_us:g} us: {sample.status.value}")
            true_m = max(sample.range_m + sensor.offset_m, 0.0)
            differences.append(abs(reported_m - true_m))
    return Measured(statistics.median(differences))


def _light(rig: Rig) -> Measured:
    """Compare the car's range with the target's, in percent."""
    name = next(iter(rig.profile.sensors.tof))
    true_m = rig.range_m(name)
    with rig.driver() as driver:
        reported_m = _median_m(driver, name)
    return Measured(100.0 * abs(reported_m / true_m - 1.0))


def _amps(rig: Rig) -> Measured:
    """Compare the car's current with the load's."""
    with rig.driver() as driver:

        def amps() -> float | None:
            battery = driver.state.get("battery")
            return battery["amps"] if battery else None

        wait_for(lambda: amps() is not None, "INA219: no current", ANSWER_S)
        differences = []
        for _ in range(READINGS):
            differences.append((amps() or 0.0) - rig.amps())
            time.sleep(0.1)
    return Measured(abs(statistics.median(differences)))


def _button(rig: Rig) -> Measured:
    """Measure from the contact to the buttons page."""
    with rig.driver() as page:
        page.see_buttons()
        wait_for(lambda: not page.glow["lit"], "a button is lit before it is pushed")
        begin_s = time.monotonic()
        rig.close_contact(True)
        try:
            wait_for(lambda: bool(page.glow["lit"] & 1), "the page does not show the contact")
            taken_s = time.monotonic() - begin_s
        finally:
            rig.close_contact(False)
        wait_for(lambda: not page.glow["lit"], "the button stays lit", ANSWER_S + AFTER_S)
    return Measured(taken_s)


CHECKS = (
    Check(
        "echo",
        "sensors",
        "The range of an HC-SR04 matches its echo.",
        Limit(0.02, "m", "HC-SR04: 3 mm; the newest of three readings, 60 ms apart"),
        ("echo",),
        _echo,
    ),
    Check(
        "light",
        "sensors",
        "The range of a VL53L0X matches the target.",
        Limit(7.0, "%", "VL53L0X, DS11555, table 12: 4 % on white, 7 % on grey"),
        ("target",),
        _light,
    ),
    Check(
        "load",
        "sensors",
        "The current of an INA219 matches the load.",
        Limit(0.05, "A", "INA219: 10 uV a step and 0.5 %; a shunt of 1 %"),
        ("load",),
        _amps,
    ),
    Check(
        "button",
        "sensors",
        "A closed contact lights the button on the page.",
        Limit(0.05, "s", "docs/benchmarks.md: 50 ms for 99 of 100 pushes"),
        ("contact",),
        _button,
    ),
)
