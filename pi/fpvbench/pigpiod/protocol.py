"""Wire protocol of pigpiod: command and error numbers, requests in, replies out.

request   u32 cmd | u32 p1 | u32 p2 | u32 p3 | p3 bytes of extension
reply     u32 cmd | u32 p1 | u32 p2 | i32 result | payload, if the command has one
"""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum

VERSION = 79
HARDWARE_REVISION = 0xA020D3
"""Raspberry Pi 3 Model B+, as in its /proc/cpuinfo."""
EXTENSION_MAX = 65536
"""Extension size in bytes at which the connection is closed."""
PERMITTED = 0x0FFFFFFC
"""GPIO that clients of a Pi 3 may change: 2 to 27."""
REQUEST = struct.Struct("<IIII")
REPLY = struct.Struct("<IIIi")


class Cmd(IntEnum):
    """Command numbers, as defined in pigpio.h."""

    MODES, MODEG, PUD, READ, WRITE, PWM, PRS, PFS, SERVO, WDOG = range(10)
    BR1, BR2, BC1, BC2, BS1, BS2, TICK, HWVER, NO, NB = range(10, 20)
    NP, NC, PRG, PFG, PRRG, HELP, PIGPV, WVCLR, WVAG, WVAS = range(20, 30)
    WVGO, WVGOR, WVBSY, WVHLT, WVSM, WVSP, WVSC, TRIG, PROC, PROCD = range(30, 40)
    PROCR, PROCS, SLRO, SLR, SLRC, PROCP, MICS, MILS, PARSE, WVCRE = range(40, 50)
    WVDEL, WVTX, WVTXR, WVNEW, I2CO, I2CC, I2CRD, I2CWD, I2CWQ, I2CRS = range(50, 60)
    I2CWS, I2CRB, I2CWB, I2CRW, I2CWW, I2CRK, I2CWK, I2CRI, I2CWI, I2CPC = range(60, 70)
    I2CPK, SPIO, SPIC, SPIR, SPIW, SPIX, SERO, SERC, SERRB, SERWB = range(70, 80)
    SERR, SERW, SERDA, GDC, GPW, HC, HP, CF1, CF2, BI2CC = range(80, 90)
    BI2CO, BI2CZ, I2CZ, WVCHA, SLRI, CGI, CSI, FG, FN, NOIB = range(90, 100)
    WVTXM, WVTAT, PADS, PADG, FO, FC, FR, FW, FS, FL = range(100, 110)
    SHELL, BSPIC, BSPIO, BSPIX, BSCX, EVM, EVT, PROCU, WVCAP = range(110, 119)


class Err(IntEnum):
    """Error numbers, as defined in pigpio.h, limited to the errors that the emulator returns."""

    BAD_USER_GPIO = -2
    BAD_GPIO = -3
    BAD_MODE = -4
    BAD_LEVEL = -5
    BAD_PUD = -6
    BAD_PULSEWIDTH = -7
    BAD_DUTYCYCLE = -8
    BAD_WDOG_TIMEOUT = -15
    BAD_DUTYRANGE = -21
    BAD_PATHNAME = -23
    NO_HANDLE = -24
    BAD_HANDLE = -25
    BAD_FIFO_COMMAND = -29
    BAD_WAVE_MODE = -33
    BAD_WAVE_BAUD = -35
    TOO_MANY_PULSES = -36
    TOO_MANY_CHARS = -37
    NOT_SERIAL_GPIO = -38
    NOT_PERMITTED = -41
    SOME_PERMITTED = -42
    BAD_WVSC_COMMND = -43
    BAD_WVSM_COMMND = -44
    BAD_WVSP_COMMND = -45
    BAD_PULSELEN = -46
    BAD_SCRIPT_ID = -48
    BAD_SER_OFFSET = -49
    GPIO_IN_USE = -50
    BAD_SERIAL_COUNT = -51
    DUP_TAG = -53
    TOO_MANY_TAGS = -54
    BAD_SCRIPT_CMD = -55
    NO_SCRIPT_ROOM = -57
    TOO_MANY_PARAM = -61
    SCRIPT_NOT_READY = -62
    BAD_TAG = -63
    BAD_MICS_DELAY = -64
    BAD_MILS_DELAY = -65
    BAD_WAVE_ID = -66
    TOO_MANY_CBS = -67
    TOO_MANY_OOL = -68
    EMPTY_WAVEFORM = -69
    NO_WAVEFORM_ID = -70
    SER_OPEN_FAILED = -72
    BAD_I2C_BUS = -74
    BAD_I2C_ADDR = -75
    BAD_SPI_CHANNEL = -76
    BAD_FLAGS = -77
    BAD_SPI_SPEED = -78
    BAD_SER_DEVICE = -79
    BAD_SER_SPEED = -80
    BAD_PARAM = -81
    I2C_WRITE_FAILED = -82
    I2C_READ_FAILED = -83
    UNKNOWN_COMMAND = -88
    BAD_POINTER = -90
    NOT_PWM_GPIO = -92
    NOT_SERVO_GPIO = -93
    NOT_HCLK_GPIO = -94
    NOT_HPWM_GPIO = -95
    BAD_HPWM_FREQ = -96
    BAD_HPWM_DUTY = -97
    BAD_HCLK_FREQ = -98
    BAD_HCLK_PASS = -99
    BAD_DATABITS = -101
    BAD_STOPBITS = -102
    BAD_I2C_SEG = -106
    BAD_SMBUS_CMD = -107
    NOT_I2C_GPIO = -108
    BAD_I2C_WLEN = -109
    BAD_I2C_RLEN = -110
    BAD_I2C_CMD = -111
    BAD_I2C_BAUD = -112
    BAD_CHAIN_LOOP = -114
    CHAIN_COUNTER = -115
    BAD_CHAIN_CMD = -116
    CHAIN_NESTING = -118
    CHAIN_TOO_BIG = -119
    DEPRECATED = -120
    BAD_SER_INVERT = -121
    BAD_FOREVER = -124
    BAD_FILTER = -125
    BAD_PAD = -126
    BAD_STRENGTH = -127
    BAD_FILE_MODE = -129
    NO_FILE_ACCESS = -137
    BAD_SCRIPT_NAME = -140
    BAD_SPI_BAUD = -141
    NOT_SPI_GPIO = -142
    BAD_EVENT_ID = -143


@dataclass(frozen=True, slots=True)
class Request:
    """Command as received from a client. All numbers are u32."""

    cmd: int
    p1: int = 0
    p2: int = 0
    ext: bytes = b""

    def word(self, index: int = 0) -> int:
        """Return the index-th u32 of the extension; missing bytes read as 0."""
        part = self.ext[4 * index : 4 * index + 4]
        return int.from_bytes(part, "little")

    def words(self) -> tuple[int, ...]:
        """Return all whole u32 of the extension."""
        return tuple(self.word(i) for i in range(len(self.ext) // 4))


@dataclass(frozen=True, slots=True)
class Wait:
    """Postponed end of a command: call `finish` with the time, at `until_us`."""

    until_us: int
    finish: "Callable[[int], Outcome]"


Outcome = int | bytes | Wait
"""Result (negative: an Err), payload (its length is the result), or Wait."""


def encode_reply(request: Request, outcome: int | bytes) -> bytes:
    """Pack a reply: 16 bytes, followed by the payload."""
    payload = outcome if isinstance(outcome, bytes) else b""
    result = len(payload) if isinstance(outcome, bytes) else outcome
    head = REPLY.pack(request.cmd, request.p1, request.p2, signed(result))
    return head + payload


def signed(value: int) -> int:
    """Return the value as a C int of 32 bits."""
    return ((value + 0x80000000) & 0xFFFFFFFF) - 0x80000000


class CommandError(Exception):
    """Raised for a refused chain, script, program or line of the pipe; `error` is pigpio's
    number."""

    def __init__(self, error: Err, detail: str = "") -> None:
        super().__init__(f"{error.name}: {detail}" if detail else error.name)
        self.error = error


class Parser:
    """Parser of requests, fed with bytes in pieces of any size; buffers only these bytes."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> None:
        """Append received bytes to the buffer."""
        self._buffer += data

    def requests(self) -> Iterator[Request]:
        """Yield the complete requests so far. Raises ValueError at one that is too long."""
        while len(self._buffer) >= REQUEST.size:
            cmd, p1, p2, p3 = REQUEST.unpack_from(self._buffer)
            if p3 >= EXTENSION_MAX:
                raise ValueError(f"{p3} bytes of extension, at most {EXTENSION_MAX - 1}")
            end = REQUEST.size + p3
            if len(self._buffer) < end:
                return
            ext = bytes(self._buffer[REQUEST.size : end])
            del self._buffer[:end]
            yield Request(cmd, p1, p2, ext)
