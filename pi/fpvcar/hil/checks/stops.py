"""Stop checks: each cause of stop_causes.py, timed at the pins."""

import random
import time
from collections.abc import Callable
from functools import partial
from signal import SIGCONT

from fpvcar.hil.driver import NO_ANSWER, SEAT_S, Driver, stop_cause, wait_for
from fpvcar.hil.gpio_rig import Rig
from fpvcar.hil.pin_recorder import Scope
from fpvcar.hil.results import Limit, Measured
from fpvcar.hil.rig import Check, CheckFailed, InvalidMeasurement
from fpvcar.hil.stop_causes import CAUSES, StopCause

STAYS_S = 0.12
"""Seconds for which the car is watched after the cause has been mended."""
TICK_S = 0.04
"""Random delay before the failure, so that the suite never keeps step with the car."""
GONE_S = 3.0
BUSY = ("blind", "silence", "wheels_stopped", "wheels_lost", "pins")
"""Causes that a car reports when its processes waited too long for a core."""
SOURCE = "docs/safety.md"


def _stop_sending(driver: Driver) -> None:
    driver.sending = False


PAGES: dict[str, Callable[[Driver], object]] = {
    "finger lifts": lambda page: page.drive(0.0, 0.0),
    "only heartbeats": _stop_sending,
    "half-open socket": Driver.fall_silent,
    "connection reset": Driver.cut,
}
"""Name of a page's failure -> the failure."""


def _fail(cause: StopCause, rig: Rig, driver: Driver) -> int:
    """Cause the failure; return CLOCK_MONOTONIC in ns just before."""
    if cause.unit:
        return rig.signal(cause.unit, cause.number)
    now_ns = time.monotonic_ns()
    PAGES[cause.name](driver)
    return now_ns


def stopped(cause: StopCause, rig: Rig) -> Measured:
    """Drive, cause the failure, and measure how soon the motors are off; then check
    that they stay off with the stick held. Raises InvalidMeasurement or CheckFailed."""
    with rig.driver() as driver, rig.scope() as scope:
        _start_driving(driver, scope)
        time.sleep(random.random() * TICK_S)
        waited_s = rig.waited_s()
        at_ns = _fail(cause, rig, driver)
        try:
            wait_for(lambda: scope.stands, "the car keeps driving", GONE_S)
        finally:
            number, idle_s = len(scope.samples), waited_s()
            if cause.hung:
                rig.signal(cause.unit, SIGCONT)
        if not scope.drove_at(at_ns):
            raise InvalidMeasurement("the car stopped before the failure")
        time.sleep(STAYS_S)
        if scope.moved_since(number):
            raise CheckFailed("a motor turned again while the stick was still held")
        if (
            rig.profile.motors.esc
            and cause.unit != "pigpiod"
            and not scope.neutral_before_silence()
        ):
            raise CheckFailed("the pulses of the ESC ended without neutral")
        _check_cause(rig, cause)
        return Measured(scope.stopped_after_s(at_ns), scope.trace(at_ns), idle_s)


def _start_driving(driver: Driver, scope: Scope) -> None:
    """Check that the car drives before the failure: otherwise a stop proves nothing.
    Raises InvalidMeasurement."""
    try:
        driver.ready().drive(1.0, 0.0)
        wait_for(lambda: scope.driving, "the car does not drive")
    except TimeoutError as fault:
        raise InvalidMeasurement(str(fault)) from None


def _check_cause(rig: Rig, cause: StopCause) -> None:
    """Check the stop cause that the car reports, once it answers."""
    reported: list[str | None] = []

    def expected() -> bool:
        reported[:] = [stop_cause(rig.port)]
        return reported[0] in cause.shown

    wait_for(lambda: expected() or reported[0] != NO_ANSWER, "no answer", SEAT_S)
    try:
        wait_for(expected, "")
    except TimeoutError:
        causes = " or ".join(map(str, cause.shown))
        message = f"the car reports {reported[0]}, expected {causes}"
        raise (InvalidMeasurement if reported[0] in BUSY else CheckFailed)(message) from None


def _check(cause: StopCause) -> Check:
    return Check(
        f"stop-{cause.check}",
        "stops",
        cause.proves,
        Limit(cause.limit_s, "s", SOURCE),
        ("loops", *(("processes",) if cause.unit else ()), *cause.needs),
        partial(stopped, cause),
    )


CHECKS = tuple(map(_check, CAUSES))
