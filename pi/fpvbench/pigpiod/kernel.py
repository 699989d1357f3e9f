"""The kernel's part of the bench: GPIO lines with owners, their edges, and I2C transfers.

The emulator of the hardware serves them beside pigpiod's protocol. Each request of lines, and each
open bus, is a socket of its own (SEQPACKET) from fpvbench/kernel.py, and ends with its process:

    Request of lines --> Answer: the holder of a busy line, or ""; the levels of inputs
        an input     <-- gpio_v2_line_event, with the edge's time
        an output    --> WRITE: its edge, or its pulses; the owner itself sets the chip's file
        closed       the lines are free; outputs become inputs, as with dtparam=strict_gpiod
    Request of a bus --> Answer
        a transfer   --> address, number of bytes to read, bytes to write
                     <-- an errno or 0, bytes read
"""

import asyncio
import errno
import socket
import struct
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

from fpvbench import soc as chip
from fpvbench.chips.i2c import Bus, Nack
from fpvbench.kernel import PACKET_B, WRITE, Answer, Request
from fpvbench.pigpiod.daemon import Client
from fpvbench.pigpiod.edges.notify import REPORT
from fpvbench.pigpiod.protocol import Cmd
from fpvbench.pigpiod.protocol import Request as Command
from fpvbench.pigpiod.pwm import PulseTrain
from fpvbench.pigpiod.server import BACKLOG, Server, clock_us
from fpvcar.devices.linux import gpiochip

EVENT = struct.Struct("=QII32x")
"""gpio_v2_line_event: time in ns, RISING or FALLING, offset."""
RISING, FALLING = 1, 2
TICKS = 0xFFFFFFFF


class Kernel:
    """Register of the lines' owners, and master of the I2C buses."""

    def __init__(self, server: Server, buses: Mapping[int, Bus]) -> None:
        self.holders: dict[int, str] = {}
        self._server, self._daemon, self._buses = server, server.daemon, buses
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.setblocking(False)
        self._sockets = {self._listener}

    def listen(self, path: Path) -> None:
        """Listen at a path, also after a process that was killed. Raises OSError."""
        path.unlink(missing_ok=True)
        self._listener.bind(str(path))
        self._listener.listen(BACKLOG)
        asyncio.get_running_loop().add_reader(self._listener, self._accept)

    def close(self) -> None:
        """Close all sockets: to the clients, the chip and the buses are gone."""
        for line in self._sockets:
            asyncio.get_running_loop().remove_reader(line)
            line.close()

    def _accept(self) -> None:
        with suppress(BlockingIOError):
            line, _ = self._listener.accept()
            line.setblocking(False)
            self._sockets.add(line)
            self._serve(line, self._first, lambda: None)

    def _serve(
        self, line: socket.socket, act: Callable[..., None], ended: Callable[[], None]
    ) -> None:
        """Call `act` with each further packet, and `ended` at the end of the socket."""

        def ready() -> None:
            try:
                packet = line.recv(PACKET_B)
            except BlockingIOError:
                return
            except ConnectionError:
                packet = b""
            if packet:
                act(line, packet)
                return
            asyncio.get_running_loop().remove_reader(line)
            self._sockets.discard(line)
            line.close()
            ended()

        asyncio.get_running_loop().add_reader(line, ready)

    def _first(self, line: socket.socket, packet: bytes) -> None:
        request = msgspec.json.decode(packet, type=Request)
        if request.bus is not None:
            bus = self._buses.get(request.bus)
            _send(line, Answer(0 if bus else errno.ENOENT))
            if bus:
                self._serve(line, partial(_transfer, bus), lambda: None)
            return
        busy = [self.holders[gpio] for gpio in request.gpios if gpio in self.holders]
        if busy or not request.flags:
            _send(line, Answer(holder=busy[0] if busy else ""))
            return
        self.holders.update(dict.fromkeys(request.gpios, request.consumer))
        if request.flags & gpiochip.OUTPUT:
            self._take_outputs(line, request)
        else:
            self._take_inputs(line, request)

    def _take_outputs(self, line: socket.socket, request: Request) -> None:
        now_us = clock_us()
        for gpio in request.gpios:
            self._daemon.pins.write(gpio, 0, now_us)
        self._daemon.lines.reported.update(request.gpios)
        _send(line, Answer())
        self._serve(line, self._written, partial(self._release_outputs, request.gpios))

    def _written(self, _: socket.socket, packet: bytes) -> None:
        time_us, gpio, level = WRITE.unpack(packet)
        now_us, lines = clock_us(), self._daemon.lines
        former = lines.trains.get(gpio)
        if level > 1:
            on_ns, period_ns = (level >> 32) * 1000, (level & TICKS) * 1000
            before = lines.level(gpio, now_us)
            train = PulseTrain.replacing(former, on_ns, period_ns, now_us, before, chip.MODE_OUTPUT)
            lines.set_train(gpio, train, now_us)
            lines.changed(gpio, now_us)
        elif former is not None:
            lines.set_train(gpio, None, now_us)
            lines.emit(gpio, now_us, level)
        else:
            lines.emit(gpio, time_us, level)
        self._server.after_commands(now_us)

    def _release_outputs(self, gpios: tuple[int, ...]) -> None:
        now_us = clock_us()
        self._daemon.lines.reported.difference_update(gpios)
        for gpio in gpios:
            self._daemon.lines.set_train(gpio, None, now_us)
            self._daemon.pins.set_pull(gpio, chip.PULL_DOWN, now_us)
            self._daemon.pins.set_mode(gpio, chip.MODE_INPUT, now_us)
            del self.holders[gpio]

    def _take_inputs(self, line: socket.socket, request: Request) -> None:
        now_us, pull = clock_us(), request.flags & gpiochip.PULL_UP
        for gpio in request.gpios:
            self._daemon.pins.set_mode(gpio, chip.MODE_INPUT, now_us)
            pull_to = chip.PULL_UP if pull else chip.PULL_DOWN
            self._daemon.pins.set_pull(gpio, pull_to, now_us)
            self._command(None, Cmd.FG, gpio, request.debounce_us)
        levels: dict[int, int] = {}
        client = Client(partial(_report, line, levels))
        handle = self._daemon.execute(client, Command(Cmd.NOIB), now_us)
        assert isinstance(handle, int)
        self._command(client, Cmd.NB, handle, sum(1 << gpio for gpio in request.gpios))
        # Each edge from now on is reported, also one that comes before the answer.
        levels |= {gpio: self._daemon.lines.level(gpio, clock_us()) for gpio in request.gpios}
        _send(line, Answer(levels=tuple(levels.values())))
        self._serve(line, lambda *_: None, partial(self._release_inputs, client, request.gpios))

    def _release_inputs(self, client: Client, gpios: tuple[int, ...]) -> None:
        self._daemon.disconnect(client, clock_us())
        for gpio in gpios:
            self._command(None, Cmd.FG, gpio, 0)
            del self.holders[gpio]

    def _command(self, client: Client | None, cmd: int, p1: int, p2: int) -> None:
        self._daemon.execute(client, Command(cmd, p1, p2), clock_us())
        self._server.after_commands(clock_us())


def _send(line: socket.socket, answer: Answer) -> None:
    with suppress(OSError):  # its process was killed while it waited
        line.send(msgspec.json.encode(answer))


def _transfer(bus: Bus, line: socket.socket, packet: bytes) -> None:
    address, count, *written = packet
    try:
        if written:
            bus.write(address, bytes(written))
        reply = b"\0" + (bus.read(address, count) if count else b"")
    except Nack:
        reply = bytes((errno.EREMOTEIO,))
    with suppress(OSError):  # its process was killed while it waited
        line.send(reply)


def _report(line: socket.socket, levels: dict[int, int], data: bytes) -> bool:
    """Send pigpio's reports as the kernel's events; False if the reader is gone."""
    now_us, events = clock_us(), []
    for _, flags, tick, word in REPORT.iter_unpack(data):
        if flags:
            continue
        time_ns = (now_us - (now_us - tick & TICKS)) * 1000
        for gpio, level in levels.items():
            if word >> gpio & 1 != level:
                levels[gpio] = 1 - level
                events.append(EVENT.pack(time_ns, FALLING if level else RISING, gpio))
    try:
        for at in range(0, len(events), gpiochip.EVENTS):
            line.send(b"".join(events[at : at + gpiochip.EVENTS]))
    except BlockingIOError:
        pass  # the kernel, too, drops what its queue cannot hold
    except OSError:
        return False
    return True
