"""Checks through pigpiod, on the event loop, that the motors' dead man has switched them off.

The answer is a proof only if the dead man has not been fed for longer than its time-out.
"""

import asyncio
import contextlib
import struct

import pigpio

from fpvcar.devices.pigpio.dead_man import MAGIC
from fpvcar.devices.pigpio.pins import COMMAND, OTHER_LOOPBACK

SLOTS = 32
HEAD_B = 16
STATUS = struct.Struct("<11i")
"""Answer to PROCP: status, then ten parameters (pigpio.h)."""
ASK_ALL = b"".join(COMMAND.pack(pigpio._PI_CMD_PROCP, slot, 0, 0) for slot in range(SLOTS))


async def motors_off(host: str, port: int, within_s: float) -> bool:
    """Return True if pigpiod answers in time, and no dead man of the motors is awake.

    If there is no dead man in any slot the motors are off, too: `wheels` removes it after it has
    switched them off, and stores it before they move.
    """
    try:
        async with asyncio.timeout(within_s):
            reader, writer = await _connect(host, port)
            try:
                writer.write(ASK_ALL)
                return not await _awake(reader)
            finally:
                writer.transport.abort()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()
    except (OSError, EOFError):  # TimeoutError is an OSError
        return False


async def _connect(host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    try:
        return await asyncio.open_connection(host, port)
    except ConnectionRefusedError:
        if host not in OTHER_LOOPBACK:
            raise
    return await asyncio.open_connection(OTHER_LOOPBACK[host], port)


async def _awake(reader: asyncio.StreamReader) -> bool:
    awake = False
    for _ in range(SLOTS):
        head = await reader.readexactly(HEAD_B)
        size = int.from_bytes(head[12:], "little", signed=True)
        if size < STATUS.size:
            continue  # an empty slot: an error, without further bytes
        _, *values = STATUS.unpack(await reader.readexactly(size))
        awake = awake or (values[7] == MAGIC and values[8] == 0)
    return awake
