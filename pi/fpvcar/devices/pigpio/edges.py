"""Edges of input pins, sampled by pigpiod every 5 us, with its own time stamps.

pigpiod sends reports of 12 bytes over a connection of their own: u16 sequence, u16 flags, u32 tick
in us (wraps), u32 levels of GPIO 0-31 (pigpio.h, gpioReport_t).
"""

import socket
import struct
from collections.abc import Sequence

import pigpio

from fpvcar.devices.pigpio.pins import TIMEOUT_S, PigpioPins, set_timeout
from fpvcar.devices.pins import Edge, PinsLost

REPORT = struct.Struct("<HHII")
RECEIVE_BYTES = 4096
NEAR_S = 0.001
"""Difference up to which a new time-out keeps the previous one."""


class PigpioEdges:
    """Reader for changes of some pins. Raises PinsFault."""

    def __init__(
        self, host: str, port: int, gpios: Sequence[int], timeout_s: float = TIMEOUT_S
    ) -> None:
        """Open two connections: one for requests, one for reports."""
        self._gpios = tuple(gpios)
        self._rest, self._timeout_s = b"", timeout_s
        self._level_client = PigpioPins(host, port, timeout_s)
        self._edge_client: PigpioPins | None = None
        try:
            self._edge_client = PigpioPins(host, port, timeout_s)
            self._begin()
        except Exception:
            self.close()
            raise

    def _begin(self) -> None:
        assert self._edge_client is not None
        line = self._edge_client.client.sl
        self._stream: socket.socket = self._edge_client.connection
        handle = self._edge_client.call(
            "notifications", pigpio._pigpio_command, line, pigpio._PI_CMD_NOIB, 0, 0
        )
        bits = sum(1 << gpio for gpio in self._gpios)
        self._level_client.call(
            "notifications", self._level_client.client.notify_begin, handle, bits
        )
        self._levels = (
            self._level_client.call("levels", self._level_client.client.read_bank_1) & bits
        )

    def read(self, timeout_s: float, changes: int = 1) -> list[Edge]:
        """Return the changes; wait up to the time-out (give or take NEAR_S) for so many. Returns
        [] for no change.

        The kernel waits for all of them. It acknowledges the first report during the wait, so that
        pigpiod sends the second one (its Nagle is on), and the thread wakes once.
        """
        size, flags = RECEIVE_BYTES, socket.MSG_DONTWAIT
        if timeout_s > 0.0:
            size, flags = changes * REPORT.size - len(self._rest), socket.MSG_WAITALL
            if abs(timeout_s - self._timeout_s) > NEAR_S:
                set_timeout(self._stream, timeout_s)
                self._timeout_s = timeout_s
        try:
            data = self._stream.recv(size, flags)
        except BlockingIOError:
            return []
        except OSError as fault:
            raise PinsLost(f"edges: {fault.strerror or fault}") from None
        if not data:
            raise PinsLost("edges: closed by pigpiod")
        data = self._rest + data
        complete_b = len(data) - len(data) % REPORT.size
        self._rest = data[complete_b:]
        edges = []
        for _, flags, tick_us, levels in REPORT.iter_unpack(data[:complete_b]):
            if flags:  # a watchdog, an event, or a keep-alive
                continue
            changed, self._levels = self._levels ^ levels, levels
            for gpio in self._gpios:
                if changed >> gpio & 1:
                    edges.append(Edge(tick_us, gpio, levels >> gpio & 1))
        return edges

    def fileno(self) -> int:
        """Return a descriptor for select, readable when `read` has data."""
        return self._stream.fileno()

    def level(self, gpio: int) -> int:
        """Return the pin's level after the last edge."""
        return 1 if self._levels & 1 << gpio else 0

    def close(self) -> None:
        """Close both connections; pigpiod then frees the handle."""
        for connection in (self._edge_client, self._level_client):
            if connection is not None:
                connection.close()
