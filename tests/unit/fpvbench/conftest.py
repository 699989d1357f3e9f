"""Fixtures: a core, a running emulator, the `pigpio` client on it, and gpiozero's factory."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pigpio
import pytest
from gpiozero.pins.pigpio import PiGPIOFactory
from testkit.pins.pigpio_clients import ECHO, LIMIT_S, MCP3008_SELECT, SHARES, TRIGGER, WIRES, stop
from testkit.pins.pigpiod import Core, Emulator, emulator, make_core


@pytest.fixture
def core(request: pytest.FixtureRequest, tmp_path: Path) -> Core:
    """A core with the wires of the test's module."""
    return make_core(tmp_path, wires=getattr(request.module, "WIRED", ()))


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Emulator]:
    sensor, monitor = f"{TRIGGER},{ECHO},0", "1:0x40:ina219"
    options = ["--hcsr04", sensor, "--i2c", monitor, "--pipe-dir", str(tmp_path)]
    options += [f"--wire={one},{other}" for one, other in WIRES]
    inputs = ",".join(map(str, SHARES))
    options += ["--spi", f"{MCP3008_SELECT}:mcp3008:{inputs}"]
    with emulator(tmp_path, *options) as started:
        yield started


@pytest.fixture
def pi(running: Emulator) -> Iterator[Any]:
    client = pigpio.pi("127.0.0.1", running.port)
    assert client.connected
    yield client
    stop(client)


@pytest.fixture
def factory(running: Emulator) -> Iterator[PiGPIOFactory]:
    made = PiGPIOFactory(host="127.0.0.1", port=running.port)
    thread = made._connection._notify
    yield made
    made.close()
    thread.join(LIMIT_S)
    assert not thread.is_alive()
