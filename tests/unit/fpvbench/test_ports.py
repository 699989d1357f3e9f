"""Busy ports of the bench: one sentence, and a command that works."""

import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from testkit.network.ports import free_port

from fpvbench import ports
from fpvcar.config import ConfigError

HOST = "127.0.0.1"


@pytest.fixture
def taken() -> Iterator[list[int]]:
    """Two ports that another program has."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(2)]
        for one in sockets:
            one.bind((HOST, 0))
            one.listen()
        yield [one.getsockname()[1] for one in sockets]


def refusal(port: int, pins_port: int) -> str:
    with pytest.raises(ConfigError) as refused:
        ports.refuse_busy(HOST, port, HOST, pins_port)
    return str(refused.value)


def test_second_bench_gets_a_command_with_free_ports(taken: list[int]) -> None:
    said = refusal(*taken)
    assert said.startswith(f"cannot listen on {HOST} port {taken[0]} and port {taken[1]}: Address")
    command = re.search(r"make run PORT=(\d+) PIGPIO_PORT=(\d+) STATION=0 RECORDINGS=", said)
    assert command
    ports.refuse_busy(HOST, int(command[1]), HOST, int(command[2]))


def test_command_keeps_the_free_port_and_leaves_out_the_usual_one(taken: list[int]) -> None:
    free = free_port()
    assert f"PORT={free} PIGPIO_PORT=" in refusal(free, taken[1])
    said = refusal(taken[0], free)
    assert said.endswith(f" PIGPIO_PORT={free}") and "STATION" not in said


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_busy_https_port_is_refused_at_a_lan_address(host: str, taken: list[int]) -> None:
    with pytest.raises(ConfigError, match=f" port {taken[0]}: Address already in use"):
        ports.refuse_busy(host, taken[0] - 1, HOST, free_port())


def test_free_ports_are_taken() -> None:
    ports.refuse_busy(HOST, free_port(), HOST, free_port())


@pytest.mark.parametrize(
    ("host", "port", "pins_port", "words"),
    [
        (HOST, 9000, 9000, "for http; try make run PIGPIO_PORT=8888"),
        ("0.0.0.0", 9000, 9001, "for https; try make run PIGPIO_PORT=8888"),
        ("0.0.0.0", 8888, 8889, "for https; try make run PIGPIO_PORT=8890"),
    ],
)
def test_pins_port_that_the_page_has_is_refused(
    host: str, port: int, pins_port: int, words: str
) -> None:
    with pytest.raises(ConfigError, match=f"pins.port = {pins_port}: .*{words}"):
        ports.refuse_shared(host, port, pins_port)


@pytest.mark.parametrize(
    ("host", "port", "pins_port"),
    [(HOST, 8887, 8888), ("0.0.0.0", 8080, 8888), ("0.0.0.0", 8889, 8888)],
)
def test_pins_port_that_is_free_is_taken(host: str, port: int, pins_port: int) -> None:
    ports.refuse_shared(host, port, pins_port)
