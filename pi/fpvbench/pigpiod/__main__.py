"""python -m fpvbench.pigpiod: the pin daemon of the bench, as one process.

A stand-alone process creates its own chip; the bench passes a chip with --soc.
"""

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from fpvbench import attached
from fpvbench import soc as chip
from fpvbench.chips.i2c import Bus
from fpvbench.chips.mcp3008 import CHANNELS, Mcp3008, fixed_inputs
from fpvbench.pigpiod.buses.spi_buses import AUXILIARY, MAIN, SpiDevice
from fpvbench.pigpiod.daemon import AttachedDevices, Daemon, Pipes
from fpvbench.pigpiod.edges.pipes import FifoDirectory
from fpvbench.pigpiod.nets import wire
from fpvbench.pigpiod.server import Server, clock_us
from fpvbench.pigpiod.text.command_pipe import CommandPipe
from fpvcar.runtime.arguments import log_level

T = TypeVar("T")
SPI = "SELECT_GPIO:mcp3008[:SHARE,SHARE...]"
PINS = "GPIO 0 to 31"
INDEX = f"RANGE 0 to {chip.RANGES_MAX - 1}"
BUSES = (1,)
"""I2C buses that a Pi 3 has without further options: /dev/i2c-1."""


def _or(read: Callable[[str], T], expected: str) -> Callable[[str], T]:
    """Return a parser for an option; its error gives the value and the expected form."""

    def parse(text: str) -> T:
        try:
            return read(text)
        except ValueError:
            refusal = f"{text!r}: expected {expected}"
            raise argparse.ArgumentTypeError(refusal) from None

    return parse


def _spi_device(text: str) -> tuple[int, SpiDevice]:
    """Parse --spi: return the GPIO that selects the device, and the device."""
    select, kind, *inputs = text.split(":")
    if kind != "mcp3008" or len(inputs) > 1:
        raise ValueError
    gpio = int(select, 0)
    shares = [float(part) for part in inputs[0].split(",")] if inputs else []
    if gpio not in (*MAIN.selects, *AUXILIARY.selects) or len(shares) > CHANNELS:
        raise ValueError
    return gpio, Mcp3008(fixed_inputs(shares))


def _spi_choices() -> str:
    main, auxiliary = (", ".join(map(str, bus.selects)) for bus in (MAIN, AUXILIARY))
    return (
        f"{SPI}, SELECT_GPIO {main} (main bus) or {auxiliary} (auxiliary), up to "
        f"{CHANNELS} shares of 0 to 1"
    )


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("fpvbench.pigpiod", description=__doc__)
    parser.add_argument(
        "--soc",
        type=Path,
        metavar="FILE",
        help="the chip's file; made if it is absent (default: a temporary one)",
    )
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8888, help="0: any that is free")
    parser.add_argument(
        "--pipe-dir",
        type=Path,
        metavar="DIR",
        help="stands for /dev: the command pipe pigpio, pigout, and what NO makes",
    )
    parser.add_argument(
        "--hcsr04",
        type=_or(attached.ultrasonic, f"{attached.HCSR04}, {PINS}, {INDEX}"),
        action="append",
        default=[],
        metavar=attached.HCSR04,
        help="an ultrasonic range sensor; OFF_M: each range is off by up to so much",
    )
    parser.add_argument(
        "--i2c",
        type=_or(attached.i2c_device, f"{attached.I2C}, {INDEX}"),
        action="append",
        default=[],
        metavar=attached.I2C,
        help="a device on an I2C bus",
    )
    parser.add_argument(
        "--wire",
        type=_or(wire, f"two different pins, {PINS}, as in 22,27"),
        action="append",
        default=[],
        metavar="GPIO,GPIO",
        help="two pins that are wired together",
    )
    parser.add_argument(
        "--spi",
        type=_or(_spi_device, _spi_choices()),
        action="append",
        default=[],
        metavar=SPI,
        help="a device on an SPI bus; SHARE: an input's voltage, 0 to 1",
    )
    parser.add_argument(
        "--kernel", type=Path, metavar="SOCKET", help="also emulate the kernel's gpiochip and I2C"
    )
    return parser.parse_args(argv)


def _attached(options: argparse.Namespace, soc: chip.Soc) -> AttachedDevices:
    buses = {number: Bus() for number in BUSES}
    for number, device in options.i2c:
        buses.setdefault(number, Bus()).devices.extend(device(soc))
    pipes = Pipes()
    if options.pipe_dir is not None:
        directory = FifoDirectory(options.pipe_dir)
        pipes = Pipes(directory.open, directory.close)
    return AttachedDevices(buses, options.hcsr04, pipes, options.wire, dict(options.spi))


@contextlib.contextmanager
def _soc(path: Path | None) -> Iterator[chip.Soc]:
    """Open the chip in a file, or create a temporary one that lasts as long as this process.
    Raises OSError, ValueError."""
    with contextlib.ExitStack() as stack:
        if path is None:
            folder = tempfile.TemporaryDirectory(prefix="fpvcar-chip-")
            path = Path(stack.enter_context(folder)) / "soc"
        if not path.exists():
            chip.create(path)
        yield chip.attach(path)


async def _serve(options: argparse.Namespace, soc: chip.Soc) -> None:
    """Run the daemon until SIGTERM or SIGINT. Raises OSError, ValueError."""
    attached_devices = _attached(options, soc)
    server = Server(Daemon(soc, attached_devices, clock_us()))
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    pipe = None
    if options.pipe_dir is not None:
        options.pipe_dir.mkdir(parents=True, exist_ok=True)
        pipe = CommandPipe(options.pipe_dir, server.execute, clock_us)
        pipe.open()
    kernel = None
    if options.kernel is not None:
        from fpvbench.pigpiod.kernel import Kernel  # not above: it would delay other starts

        kernel = Kernel(server, attached_devices.buses)
        kernel.listen(options.kernel)
    listener = await server.listen(options.host, options.port)
    port = listener.sockets[0].getsockname()[1]
    if log_level() <= logging.INFO:
        print(f"pigpiod emulator: listening on {options.host}:{port}", flush=True)
    await stop.wait()
    listener.close()
    if pipe is not None:
        pipe.close()
    if kernel is not None:
        kernel.close()
    server.close()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the daemon; return 0 after a signal, 1 if it could not start."""
    logging.basicConfig(format="pigpiod emulator: %(message)s")
    options = _arguments(argv)
    try:
        with _soc(options.soc) as soc:
            asyncio.run(_serve(options, soc))
    except OSError as fault:
        number = fault.errno or 0
        reason = os.strerror(number) if number > 0 else str(fault)
        resource = fault.filename or f"{options.host}:{options.port}"
        print(f"pigpiod emulator: {resource}: {reason}", file=sys.stderr)
        return 1
    except ValueError as fault:
        print(f"pigpiod emulator: {fault}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
