"""Core of pigpiod, free of sockets and clocks: executes commands, runs due work."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from fpvbench import soc as chip
from fpvbench.chips.i2c import Bus
from fpvbench.pigpiod import absent
from fpvbench.pigpiod.buses.bitbang import Use
from fpvbench.pigpiod.buses.bitbang_i2c import BitBangI2c
from fpvbench.pigpiod.buses.bitbang_serial import SerialReads
from fpvbench.pigpiod.buses.bitbang_spi import BitBangSpi
from fpvbench.pigpiod.buses.bsc import Bsc
from fpvbench.pigpiod.buses.i2c_commands import I2cCommands
from fpvbench.pigpiod.buses.spi_buses import Devices, SpiDevice
from fpvbench.pigpiod.buses.spi_commands import SpiCommands
from fpvbench.pigpiod.edges.alerts import Alerts
from fpvbench.pigpiod.edges.notify import Notifier, Sink
from fpvbench.pigpiod.edges.watchdogs import Watchdogs
from fpvbench.pigpiod.gpio_commands import GpioCommands, Handler
from fpvbench.pigpiod.lines import Lines
from fpvbench.pigpiod.parts import HcSr04
from fpvbench.pigpiod.pins import Pins
from fpvbench.pigpiod.protocol import HARDWARE_REVISION, VERSION, Cmd, Err, Outcome, Request, Wait
from fpvbench.pigpiod.text.scripts import Scripts
from fpvbench.pigpiod.waves.transmitter import Transmitter
from fpvbench.pigpiod.waves.wave_commands import WaveCommands

DELAY_MAX_US, DELAY_MAX_MS = 1_000_000, 60_000


@dataclass(frozen=True)
class Ultrasonic:
    """HC-SR04 sensor: its pins, the index of its range in the world, and its error in metres."""

    trigger: int
    echo: int
    index: int
    off_m: float = 0.0


@dataclass
class Pipes:
    """FIFO factory for NO: `open(handle)` returns a sink, or None if it fails."""

    open: Callable[[int], Sink | None] = lambda handle: None
    close: Callable[[int], None] = lambda handle: None


@dataclass
class AttachedDevices:
    """Devices and wires attached to the chip."""

    buses: dict[int, Bus] = field(default_factory=lambda: {1: Bus()})
    ultrasonics: Sequence[Ultrasonic] = ()
    pipes: Pipes = field(default_factory=Pipes)
    wires: Sequence[tuple[int, int]] = ()
    spi: Mapping[int, SpiDevice] = field(default_factory=dict)
    """SPI devices, keyed by the GPIO that selects them."""


@dataclass(eq=False)
class Client:
    """Connection of a client; `sink` takes its reports after NOIB."""

    sink: Sink


class Daemon:
    """State of pigpiod. Every method takes the time in microseconds.

    Ticks are the time modulo 2**32, as the chip's system timer counts.
    """

    def __init__(self, soc: chip.Soc, attached: AttachedDevices, now_us: int) -> None:
        self.lines = Lines(soc, attached.wires)
        self.pins = Pins(soc, self.lines, now_us)
        self.transmitter = Transmitter(self.lines)
        self.scripts = Scripts()
        self.notifier = Notifier()
        self._pipes = attached.pipes
        self._pipe_handles: set[int] = set()
        uses: dict[int, Use] = {}
        watchdogs = Watchdogs()
        serial = SerialReads(uses, watchdogs)
        self.alerts = Alerts(self.lines, self.notifier, serial, watchdogs, self.scripts.waited_bits)
        serial.changed = self.alerts.refresh
        self._internals = 0
        for sensor in attached.ultrasonics:
            HcSr04(soc, self.lines, sensor.trigger, sensor.echo, sensor.index, sensor.off_m)
        self._table: dict[int, Handler] = {
            **absent.TABLE,
            **GpioCommands(self.pins, self.lines, self.transmitter).table(),
            **WaveCommands(self.transmitter, self.pins).table(),
            **self.alerts.table(),
            **serial.table(),
            **I2cCommands(attached.buses).table(),
            **self._buses_table(uses, Devices(attached.spi)),
            **self._own_table(),
        }

    def _buses_table(self, uses: dict[int, Use], spi: Devices) -> dict[int, Handler]:
        pins, lines = self.pins, self.lines
        return {
            **BitBangI2c(uses, pins, lines).table(),
            **BitBangSpi(uses, pins, lines, spi).table(),
            **SpiCommands(pins, lines, spi).table(),
            Cmd.BSCX: Bsc(pins).transfer,
        }

    def _own_table(self) -> dict[int, Handler]:
        return {
            Cmd.TICK: lambda request, now_us: now_us & 0xFFFFFFFF,
            Cmd.HWVER: lambda request, now_us: HARDWARE_REVISION,
            Cmd.PIGPV: lambda request, now_us: VERSION,
            Cmd.HELP: lambda request, now_us: 0,
            Cmd.CGI: lambda request, now_us: self._internals,
            Cmd.CSI: self._csi,
            Cmd.MICS: self._mics,
            Cmd.MILS: self._mils,
            Cmd.NO: self._no,
            Cmd.NC: self._nc,
            Cmd.PROC: self.scripts.store,
            Cmd.PROCR: self.scripts.start,
            Cmd.PROCU: self.scripts.update,
            Cmd.PROCS: self.scripts.stop,
            Cmd.PROCP: self.scripts.status,
            Cmd.PROCD: self.scripts.delete,
        }

    def execute(self, client: Client | None, request: Request, now_us: int) -> Outcome:
        """Execute one command, after all work that was due before it."""
        self.lines.settle(now_us)
        self._run_due_scripts(now_us)
        if request.cmd == Cmd.NOIB and client is not None:
            return self._noib(client, now_us)
        return self._do(request, now_us)

    def _do(self, request: Request, now_us: int) -> Outcome:
        handler = self._table.get(request.cmd)
        return handler(request, now_us) if handler else Err.UNKNOWN_COMMAND

    def advance(self, now_us: int) -> None:
        """Do all due work: waves, scripts, reports."""
        self.lines.settle(now_us)
        self._run_due_scripts(now_us)
        due_us = self.alerts.next_us(now_us)
        if due_us is not None and due_us <= now_us:
            changed, events = self.alerts.batch(now_us)
            if changed or events:
                for script in self.scripts.all():
                    script.notice(changed, events, now_us)
                self._run_due_scripts(now_us)
            self._forget_closed_pipes()
            self.alerts.refresh(now_us)

    def due_us(self, now_us: int) -> int | None:
        """Return the time at which `advance` is due, or None if only a command can create work."""
        dues = (self.scripts.next_us(), self.alerts.next_us(now_us), self.transmitter.next_us())
        return min((due for due in dues if due is not None), default=None)

    def disconnect(self, client: Client, now_us: int) -> None:
        """Free the in-band notifications of a connection that has ended."""
        self.notifier.close_owned(client)
        self.alerts.refresh(now_us)

    def close(self, now_us: int) -> None:
        """Shut the daemon down in order: DMA stops, levels and modes stay."""
        self.pins.close(now_us)
        for number in list(self._pipe_handles):
            self._pipes.close(number)

    def _run_due_scripts(self, now_us: int) -> None:
        due_us = self.scripts.next_us()
        if due_us is not None and due_us <= now_us:
            self.scripts.run(now_us, self._do)
            self.alerts.refresh(now_us)

    def _forget_closed_pipes(self) -> None:
        for number in list(self._pipe_handles):
            if self.notifier.get(number) is None:
                self._pipe_handles.discard(number)
                self._pipes.close(number)

    def _noib(self, client: Client, now_us: int) -> int:
        number = self.notifier.free()
        if number >= 0:
            self.notifier.open(number, client.sink, client, now_us)
            self.notifier.close_owned(client, keep=number)
            self.alerts.refresh(now_us)
        return number

    def _no(self, request: Request, now_us: int) -> int:
        number = self.notifier.free()
        if number < 0:
            return number
        sink = self._pipes.open(number)
        if sink is None:
            return Err.BAD_PATHNAME
        self.notifier.open(number, sink, None, now_us)
        self._pipe_handles.add(number)
        return number

    def _nc(self, request: Request, now_us: int) -> int:
        handle = self.notifier.get(request.p1)
        if handle is None:
            return Err.BAD_HANDLE
        self.notifier.close(handle)
        if request.p1 in self._pipe_handles:
            self._pipe_handles.discard(request.p1)
            self._pipes.close(request.p1)
        self.alerts.refresh(now_us)
        return 0

    def _csi(self, request: Request, now_us: int) -> int:
        self._internals = request.p1
        return 0

    def _mics(self, request: Request, now_us: int) -> Outcome:
        if request.p1 > DELAY_MAX_US:
            return Err.BAD_MICS_DELAY
        return _rest(now_us + request.p1)

    def _mils(self, request: Request, now_us: int) -> Outcome:
        if request.p1 > DELAY_MAX_MS:
            return Err.BAD_MILS_DELAY
        return _rest(now_us + 1000 * request.p1)


def _rest(until_us: int) -> Wait:
    return Wait(until_us, lambda now_us: 0)
