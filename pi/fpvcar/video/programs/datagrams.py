"""Access units of rpicam-vid by UDP on loopback, and the stamps of its metadata.

rpicam-vid sends each buffer of its encoder as one datagram; a longer buffer as several of 65,507
bytes and a shorter one. On a Pi 5 libav does the sending, set to the same size. Its metadata, one
block a frame, arrives through a pipe just after the datagrams; SensorTimestamp is CLOCK_BOOTTIME in
ns.
"""

import os
import re
import select
import socket
import time
from collections import deque
from pathlib import Path
from typing import NamedTuple

from fpvcar.wire.video import UNIT_MAX_BYTES

DATAGRAM_BYTES = 65_507
STARTS = (b"\0\0\0\1", b"\0\0\1")
RECEIVE_BYTES = 4 << 20
SO_RXQ_OVFL = 40  # asm-generic/socket.h; Python has no name for it
STAMP = re.compile(rb"^SensorTimestamp=(\d+)$", re.MULTILINE)
META_MAX_BYTES = 1 << 16
LOOSE_S = 0.05
"""Age after which a stamp without a unit belongs to a lost one."""


class ReceivedBuffer(NamedTuple):
    """Buffer of the encoder, and the arrival time of its last datagram."""

    data: bytes
    time_us: int


class Reassembly:
    """Reassembles buffers from datagrams. `lost` counts incomplete buffers."""

    def __init__(self) -> None:
        self.lost = 0
        self._parts: list[bytes] = []
        self._skipping = False

    def gap(self) -> None:
        """Discard the current buffer after a loss of datagrams."""
        self.lost += 1
        self._parts.clear()
        self._skipping = True

    def feed(self, datagram: bytes) -> bytes | None:
        """Return the buffer that this datagram completes."""
        is_last = len(datagram) < DATAGRAM_BYTES
        if self._skipping and not datagram.startswith(STARTS):
            self._skipping = not is_last
            return None
        self._skipping = False
        self._parts.append(datagram)
        if sum(map(len, self._parts)) > UNIT_MAX_BYTES:
            self.gap()
        elif is_last:
            buffer, self._parts = b"".join(self._parts), []
            return buffer
        return None


class Receiver:
    """Socket on loopback that accepts datagrams of one process only."""

    def __init__(self) -> None:
        self.refused = 0
        self.reassembly = Reassembly()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RXQ_OVFL, 1)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.setblocking(False)
        self._from: tuple[str, int] | None = None
        self._dropped = 0

    @property
    def port(self) -> int:
        """Port on which the socket listens."""
        port: int = self._socket.getsockname()[1]
        return port

    def fileno(self) -> int:
        """Return the descriptor; it is readable when a datagram has arrived."""
        return self._socket.fileno()

    def buffers(self, pid: int) -> list[ReceivedBuffer]:
        """Return the complete buffers received from this process."""
        buffers = []
        while (datagram := self._receive(pid)) is not None:
            buffer = self.reassembly.feed(datagram)
            if buffer:
                buffers.append(ReceivedBuffer(buffer, time.monotonic_ns() // 1000))
        return buffers

    def _receive(self, pid: int) -> bytes | None:
        while True:
            try:
                data, extra, _, sender = self._socket.recvmsg(DATAGRAM_BYTES, 64)
            except BlockingIOError:
                return None
            for level, kind, value in extra:
                if (level, kind) == (socket.SOL_SOCKET, SO_RXQ_OVFL):
                    self._note_dropped(int.from_bytes(value[:4], "little"))
            if self._from is None and owns(pid, sender[1]):
                self._from = sender
                self._socket.connect(sender)  # the kernel refuses other senders from now on
            if sender == self._from:
                return data
            self.refused += 1

    def _note_dropped(self, dropped: int) -> None:
        """Process the kernel's count of dropped datagrams, from any sender, since the socket was
        made."""
        if dropped != self._dropped:
            self._dropped = dropped
            self.reassembly.gap()

    def close(self) -> None:
        self._socket.close()


def owns(pid: int, port: int) -> bool:
    """Return whether a process has the UDP socket with this port. Reads /proc, so only for the
    same user."""
    links = set()
    for line in Path("/proc/net/udp").read_text().splitlines()[1:]:
        fields = line.split()
        if int(fields[1].rpartition(":")[2], 16) == port:
            links.add(f"socket:[{fields[9]}]")
    try:
        files = list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False
    return any(_link(file) in links for file in files)


def _link(file: Path) -> str:
    try:
        return os.readlink(file)
    except OSError:
        return ""


class Stamps:
    """Stamps from a metadata pipe, for buffers in their order."""

    def __init__(self, fd: int) -> None:
        self._fd, self._rest = fd, b""
        self._stamps: deque[tuple[float, int]] = deque()
        self._late = 0
        self._age_us = 0
        self.known = 0

    def stamp_us(self, buffer: ReceivedBuffer, wait_s: float) -> int:
        """Return the CLOCK_MONOTONIC time in us of a buffer's picture; without metadata in time,
        its arrival less the usual age."""
        due_s = time.monotonic() + wait_s
        self._forget()
        while not self._stamps:
            left_s = due_s - time.monotonic()
            if left_s <= 0.0 or not select.select([self._fd], [], [], left_s)[0]:
                self._late += 1
                return buffer.time_us - self._age_us
            if not self.read():
                return buffer.time_us - self._age_us
        stamp_us = self._stamps.popleft()[1]
        self._age_us = max(buffer.time_us - stamp_us, 0)
        return stamp_us

    def read(self) -> bool:
        """Read the pipe; return False at its end."""
        try:
            data = os.read(self._fd, META_MAX_BYTES)
        except BlockingIOError:
            return True
        *blocks, self._rest = (self._rest + data).split(b"\n\n")
        self._rest = self._rest[-META_MAX_BYTES:]
        asleep_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.monotonic_ns()
        asleep_ns = asleep_ns if asleep_ns > 1_000_000 else 0
        for block in blocks:
            if self._late:
                self._late -= 1
            elif (match := STAMP.search(block)) is not None:
                self.known += 1
                stamp_us = (int(match[1]) - asleep_ns) // 1000
                self._stamps.append((time.monotonic(), stamp_us))
        return bool(data)

    def _forget(self) -> None:
        """Drop stamps whose buffer is lost."""
        while self._stamps and time.monotonic() - self._stamps[0][0] > LOOSE_S:
            self._stamps.popleft()
