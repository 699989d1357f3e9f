"""The car's own kernel back end on the bench's kernel: lines, edges, echoes and I2C."""

import contextlib
import os
import signal
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import smbus2
from testkit.harness import wait_for
from testkit.pins.pigpiod import Emulator, emulator, make_core

from fpvbench import kernel
from fpvbench import soc as chip
from fpvbench.outside import drive
from fpvbench.pigpiod.parts import echo_us
from fpvbench.pigpiod.protocol import Cmd
from fpvcar import config
from fpvcar.devices import backends
from fpvcar.devices.chips import tfmini
from fpvcar.devices.i2c import I2cError
from fpvcar.devices.linux import gpio, gpiochip
from fpvcar.devices.linux.gpio import LinuxPins
from fpvcar.devices.linux.i2c import SmbusI2c
from fpvcar.devices.pins import Edge, Edges, PinsLost, PinsRefused

MOTOR, REVERSE, BUTTON, TRIGGER, ECHO, WIRED = 17, 27, 7, 20, 21, 22
BATTERY, BUS_VOLTAGE = 0x40, 2
RANGE_M, BATTERY_V = 1.0, 8.0
WRITES_MOST = 80
"""Fewer writes than a socket's queue can hold."""


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulator]:
    """A bench's kernel with two range sensors and a battery monitor, not this computer's."""
    buses = ("--i2c", f"1:{BATTERY}:ina219", "--i2c", "1:0:tfmini")
    options = ("--hcsr04", f"{TRIGGER},{ECHO},0", *buses, "--wire", f"{MOTOR},{WIRED}")
    with emulator(tmp_path, "--kernel", str(tmp_path / kernel.SOCKET), *options) as running:
        monkeypatch.setattr(gpiochip, "find", lambda: kernel.Chip(tmp_path))
        monkeypatch.setattr(gpio, "Pulses", kernel.Pulses)
        monkeypatch.setattr(kernel.SMBus, "runtime", tmp_path, raising=False)
        monkeypatch.setattr(smbus2, "SMBus", kernel.SMBus)
        yield running


@pytest.fixture
def pins(bench: Emulator) -> Iterator[LinuxPins]:
    with contextlib.closing(LinuxPins("test")) as opened:
        yield opened


@contextlib.contextmanager
def paused(bench: Emulator) -> Iterator[None]:
    """Let the bench's kernel hang."""
    bench.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        bench.process.send_signal(signal.SIGCONT)


def collected(edges: Edges, count: int) -> list[Edge]:
    """Return the next edges, at least `count`."""
    found: list[Edge] = []
    while len(found) < count:
        more = edges.read(5.0)
        assert more, f"no more edges after {found}"
        found += more
    return found


def test_outputs_drive_the_chip_until_their_owner_is_gone(bench: Emulator) -> None:
    pins, forward = LinuxPins("wheels"), bench.soc.pin[MOTOR]
    pins.claim((MOTOR, REVERSE))
    pins.write(MOTOR, 1)
    assert forward.duty() == 1.0
    pins.set_frequency(MOTOR, 100)
    pins.pwm(MOTOR, 0.25)
    assert forward.duty() == 0.25
    pins.close()
    wait_for(lambda: forward.mode == chip.MODE_INPUT, "not released")
    assert forward.duty() == 0.0


def test_busy_line_is_refused_with_its_holder(pins: LinuxPins) -> None:
    pins.claim((MOTOR,))
    other = LinuxPins("other")
    with pytest.raises(PinsRefused, match="17.*test"):
        other.claim((REVERSE, MOTOR))
    other.claim((REVERSE,))
    assert backends.pin_holders((MOTOR, REVERSE, BUTTON)) == {17: "test", 27: "other", 7: ""}
    other.close()
    wait_for(lambda: not backends.pin_holders((REVERSE,))[REVERSE], "not released")


def test_button_gives_edges_with_their_times(bench: Emulator, pins: LinuxPins) -> None:
    pins.input_pull_up(BUTTON, 5000)
    with contextlib.closing(pins.edges((BUTTON,))) as edges:
        assert edges.level(BUTTON) == 1
        drive(bench.soc, BUTTON, 0)
        (pushed,) = edges.read(5.0)
        drive(bench.soc, BUTTON, chip.FLOATING)
        (released,) = edges.read(5.0)
    assert (pushed.gpio, pushed.level, released.level) == (BUTTON, 0, 1)
    assert pushed.tick_us != released.tick_us


def test_wired_pin_has_the_edges_of_pulses(pins: LinuxPins) -> None:
    pins.claim((MOTOR, REVERSE))
    pins.set_frequency(MOTOR, 100)
    pins.input_pull_down(WIRED)
    with contextlib.closing(pins.edges((WIRED,))) as edges:
        pins.pwm(MOTOR, 0.25)
        found = collected(edges, 6)
        pins.write_together((MOTOR, REVERSE), 0)
        wait_for(lambda: not edges.read(0.1), "pulses without end")
        assert edges.level(WIRED) == 0
    rise, fall, again = found[-3:] if found[-1].level else found[-4:-1]
    assert (rise.level, fall.level, again.level) == (1, 0, 1)
    assert fall.tick_us - rise.tick_us == pytest.approx(2500, abs=10)
    assert again.tick_us - rise.tick_us == pytest.approx(10_000, abs=10)


def test_write_shows_no_level_of_before_its_pulses(bench: Emulator, pins: LinuxPins) -> None:
    """A chip whose PWM ends before its level is set would drive with full power for a moment."""
    pins.write(MOTOR, 1)
    pins.pwm(MOTOR, 0.25)
    duties: list[float] = []
    pin = bench.soc.pin[MOTOR]

    class Watched:
        """A pin whose duty is read after each store."""

        def __setattr__(self, name: str, value: int) -> None:
            setattr(pin, name, value)
            duties.append(pin.duty())

    lines = pins._outputs[MOTOR]
    assert isinstance(lines, kernel.Lines)
    lines._soc = types.SimpleNamespace(pin={MOTOR: Watched()})  # type: ignore[assignment]
    pins.write(MOTOR, 0)
    assert max(duties) == 0.25 and duties[-1] == 0.0


def test_range_sensor_answers_a_trigger(bench: Emulator, pins: LinuxPins) -> None:
    bench.soc.world.range_m[0] = RANGE_M
    pins.input_pull_down(ECHO)
    pins.write(TRIGGER, 0)
    with contextlib.closing(pins.edges((ECHO,))) as edges:
        pins.trigger(TRIGGER, 10)
        found = collected(edges, 2)
    assert [edge.level for edge in found] == [1, 0]
    assert found[1].tick_us - found[0].tick_us == pytest.approx(echo_us(RANGE_M), abs=10)


def test_slow_call_to_the_bench_lengthens_no_trigger(
    pins: LinuxPins, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a clock of the test's own: a loaded machine may pause a process between two calls."""
    slow_us, step_us, write = 100_000, 20, os.write
    now_us = time.monotonic_ns() // 1000

    def clock() -> int:
        nonlocal now_us
        now_us += step_us
        return now_us

    def slow(*arguments: Any) -> int:
        nonlocal now_us
        now_us += slow_us
        return write(*arguments)

    pins.write(MOTOR, 0)
    pins.input_pull_down(WIRED)
    with contextlib.closing(pins.edges((WIRED,))) as edges:
        monkeypatch.setattr(kernel, "_clock_us", clock)
        monkeypatch.setattr(os, "write", slow)
        pins.trigger(MOTOR, 10)
        rise, fall = collected(edges, 2)
    assert fall.tick_us - rise.tick_us == step_us


def test_reported_edges_are_seen_only_as_reported(tmp_path: Path) -> None:
    """The kernel looks at the chip also between the two writes of a trigger."""
    core = make_core(tmp_path)
    lines, heard = core.daemon.lines, list[tuple[int, int]]()
    core(Cmd.WRITE, TRIGGER, 0)
    lines.listeners[TRIGGER] = lambda time_us, level: heard.append((time_us, level))
    lines.reported.add(TRIGGER)
    core.reader(1 << BUTTON)
    core.soc.pin[TRIGGER].out = 1
    lines.take(core.now_us)
    for edge in ((core.now_us - 20, 1), (core.now_us - 10, 0)):
        lines.emit(TRIGGER, *edge)
    assert heard == [(core.now_us - 20, 1), (core.now_us - 10, 0)]


def test_hung_kernel_ends_every_wait_and_lets_go_of_motors(
    bench: Emulator, pins: LinuxPins
) -> None:
    pins.claim((MOTOR, REVERSE))
    with contextlib.closing(SmbusI2c(1, BATTERY)) as monitor, paused(bench):
        with pytest.raises(PinsLost):
            for _ in range(WRITES_MOST // 2):
                pins.write(MOTOR, 1)
                pins.pwm(MOTOR, 0.25)
                time.sleep(kernel.HANGS_US / 1e6 / 20)
        assert bench.soc.pin[MOTOR].duty() in (1.0, 0.25), "either of the two calls failed"
        with pytest.raises(PinsLost):
            pins.write_together((MOTOR, REVERSE), 0)
        assert bench.soc.pin[MOTOR].duty() == 0.0
        with pytest.raises(I2cError):
            monitor.read(BUS_VOLTAGE, 2)
        with pytest.raises(PinsRefused):
            pins.write(WIRED, 1)


def test_output_switched_off_while_the_kernel_hung_is_off_for_its_wires(
    bench: Emulator, pins: LinuxPins
) -> None:
    pins.claim((MOTOR, REVERSE))
    pins.input_pull_down(WIRED)
    with contextlib.closing(pins.edges((WIRED,))) as edges:
        pins.write(MOTOR, 1)
        assert collected(edges, 1)[0].level
        with paused(bench):
            pins.write(MOTOR, 0)
        assert not collected(edges, 1)[0].level


def test_i2c_reaches_the_models(bench: Emulator) -> None:
    bench.soc.world.battery_v = BATTERY_V
    with contextlib.closing(SmbusI2c(1, BATTERY)) as monitor:
        raw = int.from_bytes(monitor.read(BUS_VOLTAGE, 2), "big")
    assert (raw >> 3) * 0.004 == pytest.approx(BATTERY_V)
    bench.soc.world.range_m[0] = RANGE_M
    with contextlib.closing(SmbusI2c(1, config.Tfmini().address)) as sensor:
        assert tfmini.read(sensor) == pytest.approx(RANGE_M, abs=0.1)
    with contextlib.closing(SmbusI2c(1, 0x29)) as absent, pytest.raises(I2cError):
        absent.read(0, 1)
    with pytest.raises(I2cError, match="/dev/i2c-7"):
        SmbusI2c(7, BATTERY)


def test_chip_that_is_gone_is_lost_and_drives_no_motor(bench: Emulator, pins: LinuxPins) -> None:
    pins.claim((MOTOR, REVERSE))
    pins.write(MOTOR, 1)
    pins.write(REVERSE, 1)
    pins.check()
    bench.process.kill()
    bench.process.wait()
    with pytest.raises(PinsLost):
        pins.check()
    with pytest.raises(PinsLost):
        pins.write_together((MOTOR, REVERSE), 0)
    assert [bench.soc.pin[gpio].duty() for gpio in (MOTOR, REVERSE)] == [0.0, 0.0]
    with pytest.raises(PinsLost):
        pins.write(MOTOR, 1)
    with pytest.raises(PinsLost):
        pins.pwm(MOTOR, 0.25)
    assert bench.soc.pin[MOTOR].duty() == 0.0
