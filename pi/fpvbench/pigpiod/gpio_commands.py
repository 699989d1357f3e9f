"""Commands on pins, with their checks in pigpio's order: permission, GPIO, value."""

from collections.abc import Callable

from fpvbench import soc as chip
from fpvbench.pigpiod import pwm
from fpvbench.pigpiod.lines import USER_GPIO, Lines
from fpvbench.pigpiod.pins import CLOCK_PINS, PWM_PINS, PWM_RANGE, Pins, Use
from fpvbench.pigpiod.protocol import PERMITTED, Cmd, Err, Outcome, Request, Wait
from fpvbench.pigpiod.waves.transmitter import Transmitter

Handler = Callable[[Request, int], Outcome]
"""Function from (request, now in microseconds) to the outcome."""
TRIGGER_MAX_US = 100
HW_PWM_MAX_HZ = 125_000_000
CLOCK_MIN_HZ, CLOCK_MAX_HZ = 4689, 250_000_000
CLOCK_PASSWORD = 0x5A
DEFAULT_PAD = 3  # 8 mA, as after a reset


def permitted(gpio: int) -> bool:
    """Return whether clients may change a pin; numbers beyond the last pin pass and fail later."""
    return gpio >= chip.PINS or bool(PERMITTED >> gpio & 1)


def guarded(handler: Handler) -> Handler:
    """Make a command refuse pins that clients may not change."""

    def checked(request: Request, now_us: int) -> Outcome:
        if not permitted(request.p1):
            return Err.NOT_PERMITTED
        return handler(request, now_us)

    return checked


class GpioCommands:
    """Handlers of the commands on modes, levels, PWM, servos, clocks, triggers and pads."""

    def __init__(self, pins: Pins, lines: Lines, transmitter: Transmitter) -> None:
        self._pins, self._lines, self._transmitter = pins, lines, transmitter
        self._pads = [DEFAULT_PAD] * 3

    def table(self) -> dict[int, Handler]:
        """Return the handler of each command number."""
        return {
            Cmd.MODES: guarded(self._modes),
            Cmd.MODEG: self._modeg,
            Cmd.PUD: guarded(self._pud),
            Cmd.READ: self._read,
            Cmd.WRITE: guarded(self._write),
            Cmd.PWM: guarded(self._pwm),
            Cmd.PRS: guarded(self._prs),
            Cmd.PFS: guarded(self._pfs),
            Cmd.SERVO: guarded(self._servo),
            Cmd.TRIG: guarded(self._trig),
            Cmd.BR1: lambda request, now: self._lines.word(now),
            Cmd.BR2: self._br2,
            Cmd.BC1: lambda request, now: self._bits(request, now, 0, 0),
            Cmd.BC2: lambda request, now: self._bits(request, now, 1, 0),
            Cmd.BS1: lambda request, now: self._bits(request, now, 0, 1),
            Cmd.BS2: lambda request, now: self._bits(request, now, 1, 1),
            Cmd.PRG: self._prg,
            Cmd.PFG: self._pfg,
            Cmd.PRRG: self._prrg,
            Cmd.GDC: self._gdc,
            Cmd.GPW: self._gpw,
            Cmd.HP: guarded(self._hp),
            Cmd.HC: self._hc,
            Cmd.PADS: self._padset,
            Cmd.PADG: self._padget,
        }

    def _modes(self, request: Request, now_us: int) -> int:
        if request.p1 >= chip.PINS:
            return Err.BAD_GPIO
        if request.p2 > 7:
            return Err.BAD_MODE
        self._pins.set_mode(request.p1, request.p2, now_us)
        return 0

    def _modeg(self, request: Request, now_us: int) -> int:
        if request.p1 >= chip.PINS:
            return Err.BAD_GPIO
        return self._pins.mode(request.p1)

    def _pud(self, request: Request, now_us: int) -> int:
        if request.p1 >= chip.PINS:
            return Err.BAD_GPIO
        if request.p2 > chip.PULL_UP:
            return Err.BAD_PUD
        self._pins.set_pull(request.p1, request.p2, now_us)
        return 0

    def _read(self, request: Request, now_us: int) -> int:
        if request.p1 >= chip.PINS:
            return Err.BAD_GPIO
        return self._lines.level(request.p1, now_us)

    def _write(self, request: Request, now_us: int) -> int:
        if request.p1 >= chip.PINS:
            return Err.BAD_GPIO
        if request.p2 > 1:
            return Err.BAD_LEVEL
        self._pins.write(request.p1, request.p2, now_us)
        return 0

    def _pwm(self, request: Request, now_us: int) -> int:
        if request.p1 >= USER_GPIO:
            return Err.BAD_USER_GPIO
        if request.p2 > self._pins.info[request.p1].range:
            return Err.BAD_DUTYCYCLE
        self._pins.set_pwm(request.p1, request.p2, now_us)
        return 0

    def _prs(self, request: Request, now_us: int) -> int:
        if request.p1 >= USER_GPIO:
            return Err.BAD_USER_GPIO
        if not pwm.RANGE_MIN <= request.p2 <= pwm.RANGE_MAX:
            return Err.BAD_DUTYRANGE
        self._pins.set_range(request.p1, request.p2, now_us)
        return pwm.REAL_RANGES[self._pins.info[request.p1].index]

    def _pfs(self, request: Request, now_us: int) -> int:
        if request.p1 >= USER_GPIO:
            return Err.BAD_USER_GPIO
        return self._pins.set_frequency(request.p1, request.p2, now_us)

    def _servo(self, request: Request, now_us: int) -> Outcome:
        if request.p1 >= USER_GPIO:
            return Err.BAD_USER_GPIO
        width_us = request.p2
        if width_us and not pwm.SERVO_MIN_US <= width_us <= pwm.SERVO_MAX_US:
            return Err.BAD_PULSEWIDTH
        end_us = self._pins.set_servo(request.p1, width_us, now_us)
        if end_us:
            return Wait(end_us, lambda at_us: self._servo(request, at_us))
        return 0

    def _trig(self, request: Request, now_us: int) -> Outcome:
        level = request.word()
        if request.p1 >= USER_GPIO:
            return Err.BAD_USER_GPIO
        if level > 1:
            return Err.BAD_LEVEL
        if not 1 <= request.p2 <= TRIGGER_MAX_US:
            return Err.BAD_PULSELEN
        self._pins.trigger(request.p1, request.p2, level, now_us)
        return 0

    def _br2(self, request: Request, now_us: int) -> int:
        gpios = range(32, chip.PINS)
        return sum(self._lines.level(g, now_us) << (g - 32) for g in gpios)

    def _bits(self, request: Request, now_us: int, bank: int, level: int) -> int:
        allowed = request.p1 & (PERMITTED >> 32 * bank) & 0xFFFFFFFF
        self._pins.write_bits(bank, allowed, level, now_us)
        return Err.SOME_PERMITTED if allowed != request.p1 else 0

    def _prg(self, request: Request, now_us: int) -> int:
        if request.p1 >= USER_GPIO:
            return Err.BAD_USER_GPIO
        info = self._pins.info[request.p1]
        return PWM_RANGE if info.use in (Use.HW_PWM, Use.HW_CLOCK) else info.range

    def _pfg(self, request: Request, now_us: int) -> int:
        if request.p1 >= USER_GPIO:
            return Err.BAD_USER_GPIO
        info = self._pins.info[request.p1]
        if info.use is Use.HW_PWM:
            return self._pins.channels[PWM_PINS[request.p1][0]].hz
        if info.use is Use.HW_CLOCK:
            return self._pins.clock_hz[CLOCK_PINS[request.p1][0]]
        return pwm.FREQUENCIES[info.index]

    def _prrg(self, request: Request, now_us: int) -> int:
        if request.p1 >= USER_GPIO:
            return Err.BAD_USER_GPIO
        info = self._pins.info[request.p1]
        if info.use is Use.HW_PWM:
            return self._pins.channels[PWM_PINS[request.p1][0]].real_range
        if info.use is Use.HW_CLOCK:
            return PWM_RANGE
        return pwm.REAL_RANGES[info.index]

    def _gdc(self, request: Request, now_us: int) -> int:
        if request.p1 >= USER_GPIO:
            return Err.BAD_USER_GPIO
        info = self._pins.info[request.p1]
        if info.use is Use.PWM:
            return info.width
        if info.use is Use.HW_PWM:
            return self._pins.channels[PWM_PINS[request.p1][0]].duty
        return PWM_RANGE // 2 if info.use is Use.HW_CLOCK else Err.NOT_PWM_GPIO

    def _gpw(self, request: Request, now_us: int) -> int:
        if request.p1 >= USER_GPIO:
            return Err.BAD_USER_GPIO
        info = self._pins.info[request.p1]
        return info.width if info.use is Use.SERVO else Err.NOT_SERVO_GPIO

    def _hp(self, request: Request, now_us: int) -> int:
        hz, duty = request.p2, request.word()
        if request.p1 >= chip.PINS:
            return Err.BAD_GPIO
        if request.p1 not in PWM_PINS:
            return Err.NOT_HPWM_GPIO
        if duty > PWM_RANGE:
            return Err.BAD_HPWM_DUTY
        if hz > HW_PWM_MAX_HZ:
            return Err.BAD_HPWM_FREQ
        if hz:
            self._transmitter.stop()
            self._transmitter.clocked = False
        self._pins.set_hardware_pwm(request.p1, hz, duty, now_us)
        return 0

    def _hc(self, request: Request, now_us: int) -> int:
        gpio, hz = request.p1 & 0xFFFFFF, request.p2
        if not permitted(gpio):
            return Err.NOT_PERMITTED
        if gpio >= chip.PINS:
            return Err.BAD_GPIO
        if gpio not in CLOCK_PINS:
            return Err.NOT_HCLK_GPIO
        if hz and not CLOCK_MIN_HZ <= hz <= CLOCK_MAX_HZ:
            return Err.BAD_HCLK_FREQ
        if CLOCK_PINS[gpio][0] == 1 and request.p1 >> 24 != CLOCK_PASSWORD:
            return Err.BAD_HCLK_PASS
        self._pins.set_clock(gpio, hz, now_us)
        return 0

    def _padset(self, request: Request, now_us: int) -> int:
        if request.p1 >= len(self._pads):
            return Err.BAD_PAD
        if not 1 <= request.p2 <= 16:
            return Err.BAD_STRENGTH
        self._pads[request.p1] = (request.p2 + 1) // 2 - 1
        return 0

    def _padget(self, request: Request, now_us: int) -> int:
        if request.p1 >= len(self._pads):
            return Err.BAD_PAD
        return 2 * self._pads[request.p1] + 2
