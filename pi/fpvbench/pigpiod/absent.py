"""Commands for hardware and files missing on the bench: serial ports, files, programs.

Arguments are checked as in pigpio.c. A valid request is then refused:

    serial ports    the device cannot be opened: -72
    files           /opt/pigpio/access allows no file: -137
    programs        /opt/pigpio/cgi is empty: the shell's exit status for a missing program
"""

from fpvbench.pigpiod.gpio_commands import Handler
from fpvbench.pigpiod.protocol import Cmd, Err, Request
from fpvbench.pigpiod.text.scripts import run_program

SERIAL_BAUDS = frozenset(
    (50, 75, 110, 134, 150, 200, 300, 600, 1200, 1800, 2400, 4800, 9600, 19200)
    + (38400, 57600, 115200, 230400)
)


def _fixed(result: int) -> Handler:
    return lambda request, now_us: result


def _sero(request: Request, now_us: int) -> int:
    if not request.ext.startswith((b"/dev/tty", b"/dev/serial")):
        return Err.BAD_SER_DEVICE
    if request.p1 not in SERIAL_BAUDS:
        return Err.BAD_SER_SPEED
    return Err.BAD_FLAGS if request.p2 else Err.SER_OPEN_FAILED


def _fo(request: Request, now_us: int) -> int:
    fine = 1 <= request.p1 <= 31 and request.p1 & 3
    return Err.NO_FILE_ACCESS if fine else Err.BAD_FILE_MODE


def _shell(request: Request, now_us: int) -> int:
    return run_program(request.ext[: request.p1].decode("latin-1"))


_CLOSED = "SERC SERRB SERWB SERR SERW SERDA FC FR FW FS".split()

TABLE: dict[int, Handler] = {
    **{Cmd[name]: _fixed(Err.BAD_HANDLE) for name in _CLOSED},
    Cmd.SERO: _sero,
    Cmd.CF1: _fixed(0),
    Cmd.CF2: _fixed(0),
    Cmd.FO: _fo,
    Cmd.FL: _fixed(Err.NO_FILE_ACCESS),
    Cmd.SHELL: _shell,
}
