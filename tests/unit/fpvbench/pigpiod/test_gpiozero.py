"""Library gpiozero that drives the emulator."""

import gc
import math
import time

import pytest
from gpiozero import LED, MCP3008, Button, DistanceSensor, Motor, Robot
from gpiozero.pins.pigpio import PiGPIOFactory
from testkit.pins.pigpio_clients import ECHO, LIMIT_S, SHARES, TRIGGER, settled, until
from testkit.pins.pigpiod import Emulator

from fpvbench import soc as chip
from fpvbench.outside import drive


def test_led_and_button(factory: PiGPIOFactory, running: Emulator) -> None:
    with LED(5, pin_factory=factory) as led:
        led.on()
        assert running.soc.pin[5].duty() == 1.0
        led.toggle()
        assert running.soc.pin[5].duty() == 0.0
    # GPIO 7 is high after a reset; on a pin that was low when it connected, the
    # pigpio client would swallow the first press (reports carry levels, not edges).
    with Button(7, pin_factory=factory) as button:
        assert not button.is_pressed and running.soc.pin[7].pull == chip.PULL_UP
        presses: list[int] = []
        button.when_pressed = lambda: presses.append(1)
        drive(running.soc, 7, 0)
        assert button.wait_for_press(LIMIT_S)
        assert until(lambda: presses == [1])
        drive(running.soc, 7, 1)
        assert button.wait_for_release(LIMIT_S)


def test_button_with_bounce_time(factory: PiGPIOFactory, running: Emulator) -> None:
    """No push at first; then a press and a release, both of which bounce."""
    with Button(7, bounce_time=0.02, pin_factory=factory) as button:
        events: list[str] = []
        button.when_pressed = lambda: events.append("pressed")
        button.when_released = lambda: events.append("released")
        begin_us = factory.connection.get_current_tick()
        assert until(lambda: _passed_us(factory, begin_us) > 50_000)
        settled(factory.connection)
        assert events == [] and not button.is_pressed
        for level, told in ((0, ["pressed"]), (1, ["pressed", "released"])):
            bounce(running, level)
            assert until(lambda told=told: events == told)  # type: ignore[misc]
        begin_us = factory.connection.get_current_tick()
        assert until(lambda: _passed_us(factory, begin_us) > 50_000)
        settled(factory.connection)
        assert events == ["pressed", "released"]


def bounce(running: Emulator, level: int) -> None:
    """Set GPIO 7 to a level with 4 ms of bouncing."""
    now_us = time.monotonic_ns() // 1000
    for number in range(9):
        drive(running.soc, 7, level ^ number % 2, now_us + 500 * number)


def _passed_us(factory: PiGPIOFactory, since_us: int) -> int:
    return int(factory.connection.get_current_tick() - since_us) % 2**32


def test_robot(factory: PiGPIOFactory, running: Emulator) -> None:
    drive = Motor(17, 27, pin_factory=factory)
    other = Motor(24, 23, pin_factory=factory)
    with Robot(drive, other, pin_factory=factory) as robot:
        robot.forward(0.5)
        duties = [running.soc.pin[pin].duty() for pin in (17, 27, 24, 23)]
        assert duties == pytest.approx([0.5, 0, 0.5, 0], abs=0.01)
        robot.backward()
        duties = [running.soc.pin[pin].duty() for pin in (17, 27, 24, 23)]
        assert duties == [0, 1, 0, 1]
        robot.stop()
        assert not any(running.soc.pin[pin].duty() for pin in (17, 27, 24, 23))


def test_distance_sensor(factory: PiGPIOFactory, running: Emulator) -> None:
    running.soc.world.range_m[0] = 0.8
    with DistanceSensor(
        echo=ECHO, trigger=TRIGGER, max_distance=2, queue_len=3, pin_factory=factory
    ) as sensor:
        assert until(lambda: math.isclose(sensor.distance, 0.8, abs_tol=0.01))
        running.soc.world.range_m[0] = 1.6
        assert until(lambda: math.isclose(sensor.distance, 1.6, abs_tol=0.01))


@pytest.mark.parametrize("hardware", [True, False])
def test_mcp3008(factory: PiGPIOFactory, hardware: bool) -> None:
    """Test on the SPI hardware, or bit-banged by gpiozero's software SPI."""
    for channel, share in enumerate((*SHARES, 0.0)):
        pins = (
            {"device": 1}
            if hardware
            else {"clock_pin": 11, "mosi_pin": 10, "miso_pin": 9, "select_pin": 7}
        )
        with MCP3008(channel, pin_factory=factory, **pins) as adc:
            assert adc.value == pytest.approx(share, abs=0.001)
            assert adc.voltage == pytest.approx(3.3 * share, abs=0.005)
        # Its SPI releases the pins in __del__, under a lock that gpiozero holds while it makes the
        # next one: a collection in there would deadlock.
        gc.collect()


def test_button_on_a_wire_is_pressed_by_an_led_pin(factory: PiGPIOFactory) -> None:
    """A program pushes the button of another one: both are the same here."""
    with (
        LED(27, pin_factory=factory) as led,
        Button(22, pull_up=None, active_state=True, pin_factory=factory) as button,
    ):
        led.on()
        assert button.wait_for_press(LIMIT_S)
        led.off()
        assert button.wait_for_release(LIMIT_S)
