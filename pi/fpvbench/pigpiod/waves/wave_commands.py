"""Commands on waves, checked in the order of pigpio.c."""

from collections.abc import Callable

from fpvbench.pigpiod.gpio_commands import Handler, guarded
from fpvbench.pigpiod.lines import USER_GPIO
from fpvbench.pigpiod.pins import Pins
from fpvbench.pigpiod.protocol import PERMITTED, Cmd, CommandError, Err, Request
from fpvbench.pigpiod.waves import chain
from fpvbench.pigpiod.waves.pulses import PULSE, generic, serial
from fpvbench.pigpiod.waves.transmitter import Transmitter
from fpvbench.pigpiod.waves.waves import MICROS_MAX, Node, Statistic, Waves

BAUD_MIN, BAUD_MAX = 50, 1_000_000
DATA_BITS_MAX = 32
HALF_STOPS_MIN, HALF_STOPS_MAX = 2, 8
BYTES_MAX = 1200
REPEAT, IN_STEP = 1, 2
"""Bits of the mode of WVTXM: repeat the wave, start it in step with the last one."""
NOT_FOUND, NOTHING_SENT = 9998, 9999
ALL = 0xFFFFFFFF


class WaveCommands:
    """Handlers of the commands that store waves, or play them with the transmitter."""

    def __init__(self, transmitter: Transmitter, pins: Pins) -> None:
        self._waves, self._transmitter, self._pins = Waves(), transmitter, pins

    def table(self) -> dict[int, Handler]:
        """Return the handler of each command number."""
        waves = self._waves
        return {
            Cmd.WVCLR: _done(waves.clear),
            Cmd.WVNEW: _done(waves.new),
            Cmd.WVAG: self._wvag,
            Cmd.WVAS: guarded(self._wvas),
            Cmd.WVCRE: lambda request, now_us: waves.create(),
            Cmd.WVCAP: self._wvcap,
            Cmd.WVDEL: lambda request, now_us: waves.delete(request.p1),
            Cmd.WVGO: lambda request, now_us: Err.DEPRECATED,
            Cmd.WVGOR: lambda request, now_us: Err.DEPRECATED,
            Cmd.WVTX: lambda request, now_us: self._send(request.p1, 0, now_us),
            Cmd.WVTXR: lambda request, now_us: self._send(request.p1, REPEAT, now_us),
            Cmd.WVTXM: lambda request, now_us: self._send(request.p1, request.p2, now_us),
            Cmd.WVCHA: self._wvcha,
            Cmd.WVTAT: self._wvtat,
            Cmd.WVBSY: lambda request, now_us: int(self._transmitter.busy),
            Cmd.WVHLT: _done(self._transmitter.stop),
            Cmd.WVSM: _figure(waves.micros, Err.BAD_WVSM_COMMND),
            Cmd.WVSP: _figure(waves.pulses, Err.BAD_WVSP_COMMND),
            Cmd.WVSC: _figure(waves.blocks, Err.BAD_WVSC_COMMND),
        }

    def _wvag(self, request: Request, now_us: int) -> int:
        end = len(request.ext) // PULSE.size * PULSE.size
        triples = list(PULSE.iter_unpack(request.ext[:end]))
        result = self._waves.add(
            generic((on & PERMITTED, off & PERMITTED, us) for on, off, us in triples)
        )
        strange = any((on | off) & ALL & ~PERMITTED for on, off, _ in triples)
        return Err.SOME_PERMITTED if strange and result >= 0 else result

    def _wvas(self, request: Request, now_us: int) -> int:
        gpio, baud = request.p1, request.p2
        data_bits, half_stops, offset_us = (request.word(index) for index in range(3))
        data = request.ext[12:]
        checks = (
            (gpio < USER_GPIO, Err.BAD_USER_GPIO),
            (BAUD_MIN <= baud <= BAUD_MAX, Err.BAD_WAVE_BAUD),
            (1 <= data_bits <= DATA_BITS_MAX, Err.BAD_DATABITS),
            (HALF_STOPS_MIN <= half_stops <= HALF_STOPS_MAX, Err.BAD_STOPBITS),
            (len(data) <= BYTES_MAX, Err.TOO_MANY_CHARS),
            (offset_us <= MICROS_MAX, Err.BAD_SER_OFFSET),
        )
        refused = next((error for fine, error in checks if not fine), None)
        if refused is not None:
            return refused
        pulses = serial(gpio, baud, data_bits, half_stops, offset_us, data)
        return self._waves.add(pulses) if len(pulses.pulses) > 1 else 0

    def _wvcap(self, request: Request, now_us: int) -> int:
        """Store a wave with spare memory: one share for all, two, or three shares."""
        first, second = request.p1, request.p2
        if len(request.ext) == 4:
            return self._waves.create((first, second, request.word()))
        if request.ext:
            return Err.BAD_WAVE_ID
        return self._waves.create((first, second or first, 0))

    def _send(self, number: int, mode: int, now_us: int) -> int:
        wave = self._waves.get(number)
        if wave is None:
            return Err.BAD_WAVE_ID
        if mode > REPEAT | IN_STEP:
            return Err.BAD_WAVE_MODE
        self._take_clock(now_us)
        wave.next = wave if mode & REPEAT else None
        if mode & IN_STEP:
            self._transmitter.follow(wave, now_us)
        else:
            self._transmitter.send(wave, now_us)
        return wave.size.blocks

    def _wvcha(self, request: Request, now_us: int) -> int:
        self._take_clock(now_us)
        self._transmitter.stop()  # also if the chain is refused
        try:
            node: Node = chain.parse(request.ext, self._waves.get)
        except CommandError as fault:
            return fault.error
        self._transmitter.send(node, now_us)
        return 0

    def _take_clock(self, now_us: int) -> None:
        if not self._transmitter.clocked:
            self._transmitter.clocked = True
            self._pins.stop_hardware_pwm(now_us)

    def _wvtat(self, request: Request, now_us: int) -> int:
        if not self._transmitter.busy:
            return NOTHING_SENT
        number = self._waves.number(self._transmitter.wave)
        return NOT_FOUND if number is None else number


def _done(act: Callable[[], object]) -> Handler:
    def handler(request: Request, now_us: int) -> int:
        act()
        return 0

    return handler


def _figure(figure: Statistic, error: Err) -> Handler:
    def handler(request: Request, now_us: int) -> int:
        values = (figure.now, figure.high, figure.most)
        return values[request.p1] if request.p1 < len(values) else error

    return handler
