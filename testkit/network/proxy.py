"""A TCP link between browser and car that a test can cut, stall and mend."""

import contextlib
import queue
import socket
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

SEGMENT_BYTES = 1448


class Air:
    """Direction of a radio: the bytes of all connections pass one after the other."""

    def __init__(self, bits_per_s: float) -> None:
        self._bits_per_s = bits_per_s
        self._lock = threading.Lock()
        self._free_s = 0.0

    def carry(self, size: int) -> None:
        """Wait for the time that these bytes are on the air."""
        with self._lock:
            self._free_s = max(self._free_s, time.monotonic())
            self._free_s += 8 * size / self._bits_per_s
            wait_s = self._free_s - time.monotonic()
        if wait_s > 0.001:  # a sleep cannot be shorter
            time.sleep(wait_s)


class Late:
    """Sender to a socket. Each piece goes after its delay, and in order."""

    def __init__(self, sink: socket.socket) -> None:
        self._sink = sink
        self._arrives_s = 0.0
        self._waiting: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def send(self, data: bytes, delay_s: float) -> None:
        """Send at once if no piece is delayed; otherwise, from now on, a thread sends."""
        if not delay_s and self._thread is None:
            self._sink.sendall(data)
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._deliver, daemon=True)
            self._thread.start()
        self._arrives_s = max(self._arrives_s, time.monotonic() + delay_s)
        self._waiting.put((self._arrives_s, data))

    def close(self) -> None:
        """Wait until all pieces have arrived."""
        if self._thread is not None:
            self._waiting.put((0.0, b""))
            self._thread.join()

    def _deliver(self) -> None:
        with contextlib.suppress(OSError):  # closed by the other end
            while True:
                arrives_s, data = self._waiting.get()
                if not data:
                    return
                time.sleep(max(0.0, arrives_s - time.monotonic()))
                self._sink.sendall(data)


class Link(AbstractContextManager["Link"]):
    """Proxy that forwards `port` to `target`. While `stalled`, bytes and new connections wait.

    `cut()` drops every open connection; neither side's close reaches the other, as with a phone
    that leaves the Wi-Fi.

    `bits_per_s` is the total rate downwards. Of each connection at most `queue_bytes` wait on the
    way, in segments of an Ethernet. `up_s` and `down_s` are the delays of bytes to the car and
    back; they may change at any time.
    """

    def __init__(
        self, target: int, bits_per_s: float | None = None, queue_bytes: int = 16384
    ) -> None:
        self._target = target
        self._air = Air(bits_per_s) if bits_per_s else None
        self._queue_bytes = queue_bytes
        self.up_s = self.down_s = 0.0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._flowing = threading.Event()
        self._flowing.set()
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self._flowing.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def stall(self) -> None:
        """Make the link half-open: connections stay, no bytes pass."""
        self._flowing.clear()

    def mend(self) -> None:
        """Forward the bytes that waited."""
        self._flowing.set()

    def cut(self) -> None:
        """End every connection; the pumps close their sockets."""
        with self._lock:
            for one in self._sockets:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
            self._sockets.clear()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return  # the listener is closed
            try:
                far = self._call()
            except OSError:
                near.close()
                continue
            with self._lock:
                self._sockets += [near, far]
            for one in (near, far):
                with contextlib.suppress(OSError):
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._carry, args=(near, far), daemon=True).start()

    def _call(self) -> socket.socket:
        far = socket.socket()
        try:
            if self._air is not None:
                far.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, SEGMENT_BYTES)
                far.setsockopt(  # the kernel doubles it
                    socket.SOL_SOCKET, socket.SO_RCVBUF, self._queue_bytes // 2
                )
            far.connect(("127.0.0.1", self._target))
        except OSError:
            far.close()
            raise
        return far

    def _carry(self, near: socket.socket, far: socket.socket) -> None:
        """Forward both ways until both have ended, and only then close."""
        back = threading.Thread(
            target=self._pump, args=(far, near, self._air, lambda: self.down_s), daemon=True
        )
        back.start()
        self._pump(near, far, None, lambda: self.up_s)
        back.join()
        near.close()
        far.close()

    def _pump(
        self,
        source: socket.socket,
        sink: socket.socket,
        air: Air | None,
        delay_s: Callable[[], float],
    ) -> None:
        most = SEGMENT_BYTES if air else 65536
        late = Late(sink)
        with contextlib.suppress(OSError):
            while data := source.recv(most):
                self._flowing.wait()
                if air:
                    air.carry(len(data))
                    self._flowing.wait()
                late.send(data, delay_s())
            self._flowing.wait()
            late.close()
        for one in (source, sink):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
