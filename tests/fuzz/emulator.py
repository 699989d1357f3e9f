"""Oracles of the emulated pigpiod for arbitrary input of its clients."""

import random
import tempfile
from pathlib import Path

from testkit.pins.pigpiod import Core, make_core

from fpvbench.chips.mcp3008 import Mcp3008, fixed_inputs
from fpvbench.pigpiod.protocol import (
    Cmd,
    CommandError,
    Err,
    Outcome,
    Parser,
    Request,
    Wait,
    encode_reply,
)
from fpvbench.pigpiod.text import command_text


def pieces(data: bytes) -> list[bytes]:
    """Cut the bytes into pieces. The input itself seeds the cuts, so every input has its own."""
    dice, parts = random.Random(data), []
    while data:
        size = dice.choice((1, 2, 3, 7, 16, 64, 4096))
        parts.append(data[:size])
        data = data[size:]
    return parts


_folder = tempfile.TemporaryDirectory()


def pigpiod(data: bytes) -> None:
    """Check the emulator's port: cuts do not matter, every request has a complete answer."""
    seen: list[list[Request | str]] = []
    for parts in ([data], pieces(data)):
        parser, found = Parser(), list[Request | str]()
        try:
            for part in parts:
                parser.feed(part)
                found += parser.requests()
        except ValueError as fault:
            found = [str(fault)]
        seen.append(found)
    assert seen[0] == seen[1]
    core = _daemon()
    for request in seen[0][:40]:
        if isinstance(request, str):
            assert "at most" in request
            break
        outcome = _executed(core, request)
        if not isinstance(outcome, Wait):
            reply = encode_reply(request, outcome)
            assert len(reply) == 16 + (len(outcome) if isinstance(outcome, bytes) else 0)
    _bounds_hold(core)


def pipe(data: bytes) -> None:
    """Check the emulator's command pipe: every command of a line has its answer."""
    core = _daemon()
    for line in data.decode("latin-1").split("\n")[:20]:
        try:
            for request in command_text.commands(line):
                outcome = _executed(core, request)
                if not isinstance(outcome, Wait):
                    said = command_text.answer(request, outcome)
                    assert said.endswith("\n") or request.cmd == Cmd.BSCX
        except CommandError as fault:
            assert fault.error == Err.BAD_FIFO_COMMAND
    _bounds_hold(core)


def _daemon() -> Core:
    """Return an emulator with devices at its pins."""
    adc = Mcp3008(fixed_inputs([0.5]))
    return make_core(Path(_folder.name), wires=[(22, 27), (9, 10)], spi={7: adc})


def _executed(core: Core, request: Request) -> Outcome:
    """Return the outcome of a request, after a few waits and 2 ms more."""
    outcome = core.start(request.cmd, request.p1, request.p2, request.ext)
    for _ in range(3):
        if isinstance(outcome, Wait):
            core.run(max(0, min(outcome.until_us - core.now_us, 100_000)))
            outcome = outcome.finish(outcome.until_us)
    core.run(2000)
    return outcome


def _bounds_hold(core: Core) -> None:
    for gpio in (0, 1, *range(28, 54)):
        assert core.soc.pin[gpio].mode == 0, "a pin that no client may have"
