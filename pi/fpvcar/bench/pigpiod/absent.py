"""What the bench's chip does not have: serial ports, SPI, bit banging, files.

Arguments are checked as pigpio.c does; what would then need the hardware is refused:

    serial, SPI     the device cannot be opened: -72, -73
    bit banging     the pin is in use: -50
    files           /opt/pigpio/access allows none: -137
    BSC slave       -81
"""

from fpvcar.bench.pigpiod.gpio_commands import Handler
from fpvcar.bench.pigpiod.protocol import Cmd, Err, Request
from fpvcar.bench.pigpiod.scripts import run_program

USER_GPIO = 32
SERIAL_BAUDS = frozenset(
    (50, 75, 110, 134, 150, 200, 300, 600, 1200, 1800, 2400, 4800, 9600, 19200)
    + (38400, 57600, 115200, 230400)
)
SPI_MIN_BAUD, SPI_MAX_BAUD = 32_000, 125_000_000
AUXILIARY_SPI, SPI_FLAGS = 1 << 8, 1 << 22


def _fixed(result: int) -> Handler:
    return lambda request, now_us: result


def _sero(request: Request, now_us: int) -> int:
    if not request.ext.startswith((b"/dev/tty", b"/dev/serial")):
        return Err.BAD_SER_DEVICE
    if request.p1 not in SERIAL_BAUDS:
        return Err.BAD_SER_SPEED
    return Err.BAD_FLAGS if request.p2 else Err.SER_OPEN_FAILED


def _spio(request: Request, now_us: int) -> int:
    flags = request.word()
    if request.p1 >= (3 if flags & AUXILIARY_SPI else 2):
        return Err.BAD_SPI_CHANNEL
    if not SPI_MIN_BAUD <= request.p2 <= SPI_MAX_BAUD:
        return Err.BAD_SPI_SPEED
    return Err.BAD_FLAGS if flags >= SPI_FLAGS else Err.SPI_OPEN_FAILED


def _slro(request: Request, now_us: int) -> int:
    if request.p1 >= USER_GPIO:
        return Err.BAD_USER_GPIO
    if not 50 <= request.p2 <= 250_000:
        return Err.BAD_WAVE_BAUD
    return Err.GPIO_IN_USE if 1 <= request.word() <= 32 else Err.BAD_DATABITS


def _slr(request: Request, now_us: int) -> int:
    if request.p1 >= USER_GPIO:
        return Err.BAD_USER_GPIO
    return Err.NOT_SERIAL_GPIO if request.p2 else Err.BAD_SERIAL_COUNT


def _on_pin(error: Err) -> Handler:
    """A pin that is not open for what the command wants."""
    return lambda request, now_us: (
        error if request.p1 < USER_GPIO else Err.BAD_USER_GPIO
    )


def _bi2co(request: Request, now_us: int) -> int:
    if request.p1 >= USER_GPIO or request.p2 >= USER_GPIO:
        return Err.BAD_USER_GPIO
    return Err.GPIO_IN_USE if 50 <= request.word() <= 500_000 else Err.BAD_I2C_BAUD


def _bspio(request: Request, now_us: int) -> int:
    if any(gpio >= USER_GPIO for gpio in (request.p1, *map(request.word, range(3)))):
        return Err.BAD_USER_GPIO
    return Err.GPIO_IN_USE if 50 <= request.word(3) <= 250_000 else Err.BAD_SPI_BAUD


def _fo(request: Request, now_us: int) -> int:
    fine = 1 <= request.p1 <= 31 and request.p1 & 3
    return Err.NO_FILE_ACCESS if fine else Err.BAD_FILE_MODE


def _shell(request: Request, now_us: int) -> int:
    return run_program(request.ext[: request.p1].decode("latin-1"))


_CLOSED = (
    "SPIC SPIR SPIW SPIX SERC SERRB SERWB SERR SERW SERDA FC FR FW FS"  # -25, first
).split()

TABLE: dict[int, Handler] = {
    **{Cmd[name]: _fixed(Err.BAD_HANDLE) for name in _CLOSED},
    Cmd.SERO: _sero,
    Cmd.SPIO: _spio,
    Cmd.SLRO: _slro,
    Cmd.SLR: _slr,
    Cmd.SLRC: _on_pin(Err.NOT_SERIAL_GPIO),
    Cmd.SLRI: _on_pin(Err.NOT_SERIAL_GPIO),
    Cmd.BI2CO: _bi2co,
    Cmd.BI2CC: _on_pin(Err.NOT_I2C_GPIO),
    Cmd.BI2CZ: _on_pin(Err.NOT_I2C_GPIO),
    Cmd.BSPIO: _bspio,
    Cmd.BSPIC: _on_pin(Err.NOT_SPI_GPIO),
    Cmd.BSPIX: _on_pin(Err.NOT_SPI_GPIO),
    Cmd.BSCX: _fixed(Err.BAD_PARAM),
    Cmd.CF1: _fixed(0),
    Cmd.CF2: _fixed(0),
    Cmd.FO: _fo,
    Cmd.FL: _fixed(Err.NO_FILE_ACCESS),
    Cmd.SHELL: _shell,
}
