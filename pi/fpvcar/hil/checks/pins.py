"""Pin checks: levels and pulses that are written, and read back on a second, wired pin.

The suite drives `rig.out` itself and reads `rig.back`. A page drives the car, the car
drives the motors' pins, and each of them is read on its pin of `rig.loops`.
"""

import time

from fpvcar.config import Profile
from fpvcar.devices import backends
from fpvcar.devices.pins import Edges
from fpvcar.hil.driver import Driver, wait_for
from fpvcar.hil.gpio_rig import Rig
from fpvcar.hil.pin_recorder import Pulses, Scope, pulses
from fpvcar.hil.results import Limit, Measured
from fpvcar.hil.rig import Check, CheckFailed, InvalidMeasurement, MissingPart

LISTEN_S = 0.25
"""Seconds for which pulses are counted: 200 of them at 800 Hz."""
SETTLE_S = 0.1
ANSWER_S = 1.0
SHARES = (0.1, 0.5, 0.9)
HZ = 100
"""Frequency that every back end supports."""
SERVO_US = 1500
TRIGGER_US = 50
WHEEL = 0.8
SAMPLED = "pigpio samples pins every 5 us; a kernel's edge is late by its interrupt"


def _pair(profile: Profile) -> tuple[int, int]:
    rig = profile.rig
    assert rig.out is not None and rig.back is not None
    return rig.out, rig.back


def _levels(rig: Rig) -> Measured:
    """Measure the delay of a written level; returns the slower of the two edges."""
    out, back = _pair(rig.profile)
    slowest_s = 0.0
    with rig.pins() as pins:
        pins.write(out, 0)
        with rig.edges((back,)) as edges:
            for level in (1, 0):
                begin_s = time.monotonic()
                pins.write(out, level)
                _await_level(edges, back, level)
                slowest_s = max(slowest_s, time.monotonic() - begin_s)
    return Measured(slowest_s)


def _await_level(edges: Edges, gpio: int, level: int) -> None:
    end_s = time.monotonic() + ANSWER_S
    while edges.level(gpio) != level:
        edges.read(0.05)
        if time.monotonic() > end_s:
            raise CheckFailed(f"GPIO {gpio} did not reach level {level}")


def listened(edges: Edges, gpio: int, seconds: float = LISTEN_S) -> Pulses:
    """Return the pulses of a pin during `seconds`. Raises CheckFailed if it did not change."""
    while edges.read(0.0):
        pass  # a kernel's queue is longer than one read
    transitions: list[tuple[int, int]] = []
    end_s = time.monotonic() + seconds
    while (left_s := end_s - time.monotonic()) > 0.0:
        read = edges.read(min(left_s, 0.05))
        transitions += [(edge.tick_us, edge.level) for edge in read if edge.gpio == gpio]
    seen = pulses(transitions)
    if seen is None:
        raise CheckFailed(f"GPIO {gpio}: {len(transitions)} edges in {seconds:g} s")
    return seen


def _pwm(rig: Rig, duty: float) -> Pulses:
    out, back = _pair(rig.profile)
    with rig.pins() as pins:
        pins.set_frequency(out, HZ)
        with rig.edges((back,)) as edges:
            pins.pwm(out, duty)
            time.sleep(SETTLE_S)
            try:
                return listened(edges, back)
            finally:
                pins.write(out, 0)


def _duty(rig: Rig) -> Measured:
    worst = 0.0
    trace: list[tuple[float, float]] = []
    for share in SHARES:
        seen = _pwm(rig, share)
        worst = max(worst, abs(seen.duty - share))
        trace += _drawn(seen, len(trace) / 4.0 / HZ)
    return Measured(100.0 * worst, tuple(trace))


def _drawn(seen: Pulses, begin_s: float) -> list[tuple[float, float]]:
    """Return two periods of a pulse train as plot points."""
    period_s = 1.0 / seen.hz
    return [
        (round(begin_s + at * period_s, 6), level)
        for whole in (0, 1)
        for at, level in ((whole, 1.0), (whole + seen.duty, 0.0))
    ]


def _frequency(rig: Rig) -> Measured:
    return Measured(100.0 * abs(_pwm(rig, 0.5).hz / HZ - 1.0))


def _servo(rig: Rig) -> Measured:
    out, back = _pair(rig.profile)
    with rig.pins() as pins, rig.edges((back,)) as edges:
        pins.servo(out, SERVO_US)
        time.sleep(SETTLE_S)
        try:
            widths = listened(edges, back).widths_us
        finally:
            pins.write(out, 0)
    return Measured(max(abs(width_us - SERVO_US) for width_us in widths))


def _trigger(rig: Rig) -> Measured:
    """Measure how far the width of a trigger pulse is off."""
    out, back = _pair(rig.profile)
    with rig.pins() as pins:
        pins.write(out, 0)
        with rig.edges((back,)) as edges:
            transitions: list[tuple[int, int]] = []
            for _ in range(2):  # the second rising edge completes a period
                pins.trigger(out, TRIGGER_US)
                end_s = time.monotonic() + SETTLE_S
                while (left_s := end_s - time.monotonic()) > 0.0:
                    read = edges.read(left_s)
                    transitions += [(edge.tick_us, edge.level) for edge in read]
    seen = pulses(transitions)
    if seen is None:
        raise CheckFailed(f"GPIO {back} received no trigger")
    return Measured(max(abs(width_us - TRIGGER_US) for width_us in seen.widths_us))


def _motors(rig: Rig) -> Measured:
    """Count the pins that disagree with the command, over four commands."""
    _bridges(rig)
    wrong = 0
    with rig.driver() as driver, rig.scope() as scope:
        for number, wish in enumerate(((1, 0), (-1, 0), (0, 1), (0, -1))):
            driver.ready()
            wait_for(lambda: scope.released, "the motors are not released")
            on = _driven(driver, scope, (wish[0] * WHEEL, wish[1] * WHEEL))
            expected = _on(rig.profile, number)
            motors = rig.profile.motor_pins()
            wrong += sum((gpio == expected) != lit for gpio, lit in zip(motors, on, strict=True))
    return Measured(float(wrong))


def _bridges(rig: Rig) -> None:
    """Raise MissingPart for a car that an ESC drives."""
    if rig.profile.motors.esc is not None:
        raise MissingPart("no bridge: an ESC drives the car, see esc-pulses")


def _driven(driver: Driver, scope: Scope, wish: tuple[float, float]) -> list[bool]:
    """Return which pins were on while driving. Raises InvalidMeasurement."""
    number = len(scope.samples)
    driver.drive(*wish)
    try:
        wait_for(lambda: scope.driving, f"no motor turns for {wish}")
        time.sleep(SETTLE_S)
        seen = [sample.duties for sample in scope.samples[number:]]
    finally:
        stop = driver.state["stop"]
        driver.drive(0.0, 0.0)
        if stop:
            raise InvalidMeasurement(f"another cause stopped the car: {stop['cause']}")
    return [any(duties) for duties in zip(*seen, strict=True)]


def _on(profile: Profile, number: int) -> int:
    """Return the pin that is on while the car goes forward, back, left or right."""
    motor = profile.motors.pair[number // 2]
    forward, reverse = motor.pins()
    ways = (reverse, forward) if motor.invert else (forward, reverse)
    return ways[number % 2]


def _motor_frequency(rig: Rig) -> Measured:
    """Measure the PWM frequency at the driver, on the pin wired to it."""
    _bridges(rig)
    motor = rig.profile.motors.pair[0]
    expected_hz = getattr(motor, "pwm_hz", HZ)
    if backends.pins_backend(rig.profile) == "linux":
        expected_hz = min(expected_hz, HZ)
    with rig.driver() as driver, rig.edges(rig.profile.rig.loops[:1]) as edges:
        driver.ready().drive(0.3, 0.0)
        time.sleep(SETTLE_S + 1.0 / motor.slew_per_s)
        seen = listened(edges, rig.profile.rig.loops[0])
        driver.drive(0.0, 0.0)
    return Measured(100.0 * abs(seen.hz / expected_hz - 1.0), tuple(_drawn(seen, 0.0)))


CHECKS = (
    Check(
        "pins-levels",
        "pins",
        "A written level appears on the wire.",
        Limit(0.1, "s", "an answer of the pins may take 0.1 s while motors run"),
        ("out",),
        _levels,
    ),
    Check(
        "pins-duty",
        "pins",
        "A PWM has the requested duty.",
        Limit(1.0, "%", f"{SAMPLED}: 5 us of 10 ms, twice"),
        ("out",),
        _duty,
    ),
    Check(
        "pins-frequency",
        "pins",
        "A PWM has the requested frequency.",
        Limit(1.0, "%", "docs/reference/profile.md: the nearest available one, such as 100 Hz"),
        ("out",),
        _frequency,
    ),
    Check(
        "pins-servo",
        "pins",
        "A servo pulse has the requested length.",
        Limit(20.0, "us", f"{SAMPLED}; 20 us are 2 degrees"),
        ("out",),
        _servo,
    ),
    Check(
        "pins-trigger",
        "pins",
        "A trigger pulse has the requested length.",
        Limit(20.0, "us", "HC-SR04: needs at least 10 us"),
        ("out",),
        _trigger,
    ),
    Check(
        "motor-pins",
        "pins",
        "Forward, back, left and right switch the pins of the profile.",
        Limit(0.0, "pins", "the profile"),
        ("loops",),
        _motors,
    ),
    Check(
        "motor-frequency",
        "pins",
        "The PWM of a motor has the profile's frequency.",
        Limit(2.0, "%", "docs/reference/profile.md: pwm_hz, the nearest available one"),
        ("loops",),
        _motor_frequency,
    ),
)
