"""Bit-banged SPI: BSPIO, BSPIC, BSPIX. The pins move; MISO is read from its pin."""

from dataclasses import dataclass

from fpvbench import soc as chip
from fpvbench.pigpiod.buses.bitbang import Bus, TimedPins, Transfer, Use, opened_at, stepwise
from fpvbench.pigpiod.buses.spi_buses import Devices
from fpvbench.pigpiod.gpio_commands import Handler, permitted
from fpvbench.pigpiod.lines import USER_GPIO, Lines
from fpvbench.pigpiod.pins import Pins
from fpvbench.pigpiod.protocol import Cmd, Err, Outcome, Request

BAUD_MIN, BAUD_MAX = 50, 250_000
CPHA, CPOL, CS_HIGH = 1, 2, 4
TX_LSB_FIRST, RX_LSB_FIRST = 1 << 14, 1 << 15


@dataclass(slots=True)
class SharedPins:
    """Pins of a bus, and the number of selects that use it."""

    miso: int
    mosi: int
    sclk: int
    pins: Bus
    selects: int = 1


@dataclass(slots=True)
class Select:
    """Open chip-select pin, with transfers on its bus."""

    cs: int
    bus: SharedPins
    pins: TimedPins
    flags: int
    mode: int

    def transfer(self, data: bytes, answer: bytes | None, now_us: int) -> Transfer:
        """Send and receive bytes; `answer` holds the bytes that a device puts on MISO."""
        pins, idle, active = self.pins, self.flags & CPOL, self.flags & CS_HIGH
        out = bytearray()
        pins.begin(now_us)
        pins.write(self.bus.sclk, int(bool(idle)))
        pins.delay()
        pins.write(self.cs, int(bool(active)))
        pins.delay()
        for index, byte in enumerate(data):
            out.append(self._byte(byte, None if answer is None else answer[index]))
            yield from pins.byte_done()
        pins.delay()
        pins.write(self.cs, int(not active))
        pins.delay()
        pins.write(self.bus.sclk, int(bool(idle)))
        yield from pins.end()
        return bytes(out)

    def _byte(self, sent: int, answer: int | None) -> int:
        bus, pins = self.bus, self.pins
        idle = int(bool(self.flags & CPOL))
        late = bool(self.flags & CPHA)
        received = 0
        for number in range(8):
            shift = number if self.flags & TX_LSB_FIRST else 7 - number
            if late:
                pins.write(bus.sclk, 1 - idle)
            pins.write(bus.mosi, sent >> shift & 1)
            pins.delay()
            pins.write(bus.sclk, idle if late else 1 - idle)
            bit = pins.read(bus.miso) if answer is None else answer >> 7 - number & 1
            received |= bit << (number if self.flags & RX_LSB_FIRST else 7 - number)
            pins.delay()
            if not late:
                pins.write(bus.sclk, idle)
        return received


class BitBangSpi:
    """Handlers of BSPIO, BSPIC and BSPIX; `uses` maps each open pin to its interface."""

    def __init__(self, uses: dict[int, Use], pins: Pins, lines: Lines, devices: Devices) -> None:
        self._uses, self._pins, self._lines = uses, pins, lines
        self._devices = devices
        self._selects: dict[int, Select] = {}
        self._buses: dict[int, SharedPins] = {}
        """Shared pins of each bus, keyed by SCLK."""

    def table(self) -> dict[int, Handler]:
        """Return the handler of each command number."""
        return {Cmd.BSPIO: self._open, Cmd.BSPIC: self._close, Cmd.BSPIX: self._transfer}

    def _open(self, request: Request, now_us: int) -> int:
        miso, mosi, sclk, baud, flags = (request.word(index) for index in range(5))
        gpios = (cs, *bus) = (request.p1, miso, mosi, sclk)
        if not all(permitted(gpio) for gpio in gpios):
            return Err.NOT_PERMITTED
        if any(gpio >= USER_GPIO for gpio in gpios):
            return Err.BAD_USER_GPIO
        if not BAUD_MIN <= baud <= BAUD_MAX:
            return Err.BAD_SPI_BAUD
        if cs in self._uses or len(set(gpios)) < len(gpios):
            return Err.GPIO_IN_USE
        uses = [self._uses.get(gpio) for gpio in bus]
        if uses not in ([None] * 3, [Use.MISO, Use.MOSI, Use.SCLK]):
            return Err.GPIO_IN_USE
        mode = self._pins.mode(cs)
        self._uses[cs] = Use.CS
        self._pins.write(cs, int(not flags & CS_HIGH), now_us)
        if uses[0] is None:
            self._begin(miso, mosi, sclk, now_us)
        else:
            self._buses[sclk].selects += 1
        pins = TimedPins(self._pins, self._lines, baud)
        self._selects[cs] = Select(cs, self._buses[sclk], pins, flags, mode)
        return 0

    def _begin(self, miso: int, mosi: int, sclk: int, now_us: int) -> None:
        roles = {miso: Use.MISO, mosi: Use.MOSI, sclk: Use.SCLK}
        bus = Bus.open(self._pins, self._uses, roles)
        self._buses[sclk] = SharedPins(miso, mosi, sclk, bus)
        self._pins.set_mode_register(miso, chip.MODE_INPUT, now_us)
        self._pins.set_mode_register(sclk, chip.MODE_OUTPUT, now_us)
        self._pins.write(mosi, 0, now_us)

    def _close(self, request: Request, now_us: int) -> int:
        select = opened_at(self._selects, request, Err.NOT_SPI_GPIO)
        if isinstance(select, Err):
            return select
        del self._selects[request.p1]
        self._pins.set_mode_register(select.cs, select.mode, now_us)
        del self._uses[select.cs]
        bus = select.bus
        bus.selects -= 1
        if not bus.selects:
            bus.pins.close(self._pins, self._uses, now_us)
            del self._buses[bus.sclk]
        return 0

    def _transfer(self, request: Request, now_us: int) -> Outcome:
        select = opened_at(self._selects, request, Err.NOT_SPI_GPIO)
        if isinstance(select, Err):
            return select
        if not request.ext:
            return Err.BAD_POINTER
        bus, answer = select.bus, None
        device = self._devices.at(select.cs, (bus.miso, bus.mosi, bus.sclk))
        if device is not None:
            idle = self._lines.level(bus.miso, now_us)
            answer = device.transfer(request.ext, idle)
        return stepwise(select.transfer(request.ext, answer, now_us))
