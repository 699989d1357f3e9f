"""Ports of the bench: a busy one is refused before a process starts, with a command that works."""

import errno
import itertools
import os
import socket

from fpvcar.config import ConfigError
from fpvcar.http import addresses
from fpvcar.http.listener import listening

HTTP, PINS = 8080, 8888
"""Ports of `make run` without options."""
HTTP_STEP, PINS_STEP = 10, 1
OTHER_ADDRESS = "an address of this computer, or 0.0.0.0 for all"


def refuse_busy(host: str, port: int, pins_host: str, pins_port: int) -> None:
    """Raise ConfigError if a port cannot be bound: http, https or the one of the emulated pins."""
    served = _refusals(host, _served(host, port))
    refusals = served | _refusals(pins_host, (pins_port,))
    if not refusals:
        return
    where = " and ".join(f"port {number}" for number in refusals)
    place = host if served else pins_host
    reason = ", ".join(dict.fromkeys(map(os.strerror, refusals.values())))
    raise ConfigError(
        f"cannot listen on {place} {where}: {reason}; is another `make run` open? End it with "
        f"Ctrl-C, or try {_command(host, port, pins_host, pins_port, len(refusals) > len(served))}"
    )


def refuse_shared(host: str, port: int, pins_port: int) -> None:
    """Raise ConfigError if the emulated pins would listen where `run` does."""
    uses = dict(zip(_served(host, port), ("http", "https"), strict=False))
    if pins_port in uses:
        free = next(candidate for candidate in range(PINS, PINS + 3) if candidate not in uses)
        raise ConfigError(
            f"pins.port = {pins_port}: the page uses this port for {uses[pins_port]}; "
            f"try make run PIGPIO_PORT={free}"
        )


def _served(host: str, port: int) -> tuple[int, ...]:
    """Return the ports of the page: https is off at a loopback address."""
    return (port,) if addresses.is_loopback(host) else (port, port + 1)


def _refusals(host: str, ports: tuple[int, ...]) -> dict[int, int]:
    """Return each port that cannot be bound, with the errno. Raises ConfigError for an address
    that is not this computer's."""
    refusals = {}
    for port in ports:
        if not 1 <= port <= 65535:
            raise ConfigError(f"port {port}: expected 1 to 65535")
        try:
            for probe in listening(host, port):
                probe.close()
        except OSError as fault:
            if isinstance(fault, socket.gaierror):
                reason = f"cannot listen on {host} port {port}: {fault.strerror}"
                raise ConfigError(f"{reason}; try {OTHER_ADDRESS}") from None
            if fault.errno == errno.EADDRNOTAVAIL:
                raise ConfigError(f"{fault.strerror}; try {OTHER_ADDRESS}") from None
            refusals[port] = fault.errno or 0
    return refusals


def _command(host: str, port: int, pins_host: str, pins_port: int, pins_busy: bool) -> str:
    """Return the command of a second bench, on free ports. The first one's station has locked its
    store, and its recorder its folder."""
    http, pins = itertools.count(port, HTTP_STEP), itertools.count(pins_port, PINS_STEP)
    free = next(each for each in http if not _refusals(host, _served(host, each)))
    free_pins = next(
        each
        for each in pins
        if each not in _served(host, free) and not _refusals(pins_host, (each,))
    )
    words = [f"PORT={free}"] if free != HTTP else []
    words += [f"PIGPIO_PORT={free_pins}"] if free_pins != PINS else []
    words += ["STATION=0", f"RECORDINGS=~/drives-{free}"] if pins_busy else []
    return " ".join(["make run", *words])
