"""A second host on one cable, in a network namespace: its Wi-Fi can lose everything."""

import ctypes
import os
import socket
import subprocess
import threading
from contextlib import AbstractContextManager
from types import TracebackType

from tests.e2e.harness import wait_for

CLONE_NEWNET = 0x40000000  # <linux/sched.h>
CAR, PHONE = "10.78.0.1", "10.78.0.2"
_libc = ctypes.CDLL(None, use_errno=True)


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)


def _ip(*words: str) -> None:
    _run("ip", *words)


class Air(AbstractContextManager["Air"]):
    """Needs root. While `cut`, every packet is lost and no end hears of it."""

    def __init__(self) -> None:
        near, self._far = f"fpvc{os.getpid()}", f"fpvd{os.getpid()}"
        # The far host is a process, which ends with this one, as then does the cable.
        self._host = subprocess.Popen(
            ["setpriv", "--pdeathsig=KILL", "unshare", "--net", "sleep", "infinity"]
        )
        try:
            wait_for(lambda: self._net() != os.readlink("/proc/self/ns/net"), "no net")
            _ip("link", "add", near, "type", "veth", "peer", "name", self._far)
            _ip("link", "set", self._far, "netns", str(self._host.pid))
            _ip("addr", "add", f"{CAR}/30", "dev", near)
            _ip("link", "set", near, "up")
            self._there("addr", "add", f"{PHONE}/30", "dev", self._far)
            self.mend()
        except BaseException:
            self.__exit__(None, None, None)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._host.kill()
        self._host.wait()

    def _net(self) -> str:
        return os.readlink(f"/proc/{self._host.pid}/ns/net")

    def _there(self, *words: str) -> None:
        _run("nsenter", f"--net=/proc/{self._host.pid}/ns/net", "ip", *words)

    def cut(self) -> None:
        """The phone leaves the Wi-Fi."""
        self._there("link", "set", self._far, "down")

    def mend(self) -> None:
        """It is back."""
        self._there("link", "set", self._far, "up")

    def connect(self, port: int) -> socket.socket:
        """A connection to the car from over there."""
        made: list[socket.socket] = []

        def enter() -> None:  # the namespace is that of a thread, which ends here
            with open(f"/proc/{self._host.pid}/ns/net") as namespace:
                if _libc.setns(namespace.fileno(), CLONE_NEWNET) != 0:
                    raise OSError(ctypes.get_errno(), "setns")
            made.append(socket.create_connection((CAR, port), timeout=5.0))

        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
        if not made:
            raise ConnectionError(f"no way to the car's port {port}")
        made[0].settimeout(None)
        return made[0]
