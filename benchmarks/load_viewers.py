"""Viewers of /ws/video in large numbers in one process: raw sockets, for a low cost.

    python -m benchmarks.load_viewers {http|https} PORT COUNT [ID CLIENT]

Prints "ready" when each has received a picture. "go" on stdin restarts the count, "end" prints the
results since then, as JSON: the units' ages at their last byte in ms, bytes, own CPU seconds. ID
and CLIENT are the first viewer's: a driver's video id and client.
"""

import contextlib
import json
import selectors
import socket
import ssl
import struct
import sys
import time

from testkit.network.attacks import frame

from fpvcar.wire.errors import VERSION

HANDSHAKE = (
    "GET /ws/video?id={video} HTTP/1.1\r\nHost: localhost:{port}\r\n"
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
BINARY, PING = 0x82, 0x89
PONG = b"\x8a\x80\0\0\0\0"
CAPTURE_AT = 8
"""Offset of the capture time in wire.VIDEO_HEADER."""
CONNECT_S = 10.0


class Viewer:
    """Viewer with one socket; `units` is (age in ms, bytes) of each received unit."""

    def __init__(
        self, port: int, tls: ssl.SSLContext | None, video: str = "", client: str = ""
    ) -> None:
        self.units: list[tuple[float, int]] = []
        self.socket = socket.create_connection(("127.0.0.1", port), CONNECT_S)
        if tls:
            self.socket = tls.wrap_socket(self.socket)
        self.socket.sendall(HANDSHAKE.format(video=video, port=port).encode())
        self._buffer = bytearray()
        while b"\r\n\r\n" not in self._buffer:
            self._buffer += self.socket.recv(4096)
        head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
        if b" 101 " not in head:
            raise ConnectionError(head.decode(errors="replace"))
        if client:
            hello = {"kind": "hello", "v": VERSION, "client": client}
            self.socket.sendall(frame(json.dumps(hello).encode()))
        self.socket.setblocking(False)

    def read(self) -> None:
        """Process received data. Raises ConnectionError at the end."""
        with contextlib.suppress(ssl.SSLWantReadError):
            self._receive(self.socket.recv(1 << 18))
            # Decrypted data waits in the TLS object: the selector does not report it.
            while isinstance(self.socket, ssl.SSLSocket) and self.socket.pending():
                self._receive(self.socket.recv(1 << 18))

    def _receive(self, data: bytes) -> None:
        if not data:
            raise ConnectionResetError("closed by the car")
        now_us = time.monotonic_ns() / 1e3
        buffer = self._buffer
        buffer += data
        while len(buffer) >= 2:
            begin, length = 2, buffer[1]
            if length >= 126:
                size = ">H" if length == 126 else ">Q"
                begin += struct.calcsize(size)
                if len(buffer) < begin:
                    return
                (length,) = struct.unpack_from(size, buffer, 2)
            if len(buffer) < begin + length:
                return
            if buffer[0] == BINARY:
                (capture_us,) = struct.unpack_from("<Q", buffer, begin + CAPTURE_AT)
                self.units.append(((now_us - capture_us) / 1e3, length))
            elif buffer[0] == PING:
                self.socket.send(PONG)
            else:
                raise ConnectionError(f"unexpected frame {bytes(buffer[:130])!r}")
            del buffer[: begin + length]


def unverified() -> ssl.SSLContext:
    """Return TLS that accepts the car's own certificate."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    return tls


def main(scheme: str, port: int, count: int, video: str = "", client: str = "") -> None:
    """Run the viewers until "end"."""
    tls = unverified() if scheme == "https" else None
    selector = selectors.DefaultSelector()
    selector.register(sys.stdin, selectors.EVENT_READ)
    viewers = [Viewer(port, tls, video, client)] if count else []
    viewers += [Viewer(port, tls) for _ in range(count - 1)]
    for viewer in viewers:
        selector.register(viewer.socket, selectors.EVENT_READ, viewer)
    ready, cpu_s = False, 0.0
    while True:
        if not ready and all(viewer.units for viewer in viewers):
            ready = True
            print("ready", flush=True)
        for key, _ in selector.select():
            if key.data is not None:
                key.data.read()
            elif sys.stdin.readline().strip() == "go":
                cpu_s = time.process_time()
                for viewer in viewers:
                    viewer.units.clear()
            else:
                units = [unit for viewer in viewers for unit in viewer.units]
                report = {
                    "ages_ms": [round(age_ms, 3) for age_ms, _ in units],
                    "bytes": sum(size for _, size in units),
                    "cpu_s": time.process_time() - cpu_s,
                }
                print(json.dumps(report), flush=True)
                return


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
