"""The car and a browser on two hosts: a cable whose loss and rate a test sets.

Needs root. The kernel need not filter or emulate anything: loss is a wrong hardware
address on the way, a narrow link is a token bucket on the car's side.
"""

import ctypes
import json
import os
import socket
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType

from playwright.sync_api import Browser, Page

from tests.e2e.conftest import CHROMIUM, chromium
from tests.e2e.harness import RunningBench, wait_for
from tests.e2e.seat import go_on, probe, until

CAR, PHONE = "10.79.0.1", "10.79.0.2"
CAR_MAC, PHONE_MAC, NOBODY = (f"02:00:00:00:4f:{last:02x}" for last in (1, 2, 3))
BURST_BYTES = 4000
CURRENT_MS = 150
"""A picture this young is the present."""
CLONE_NEWNET = 0x40000000  # <linux/sched.h>
_libc = ctypes.CDLL(None, use_errno=True)


def _run(*words: str, stdin: str | None = None) -> None:
    done = subprocess.run(words, input=stdin, capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"{' '.join(words)}: {done.stderr.strip()}")


class Lan(AbstractContextManager["Lan"]):
    """Two hosts and a cable."""

    def __init__(self) -> None:
        number = os.getpid()
        self.name, self._near, self._far = (
            f"fpvlan{number}", f"fpvn{number}", f"fpvf{number}",
        )  # fmt: skip
        _run("ip", "netns", "add", self.name)
        try:
            self._wire()
        except BaseException:
            _run("ip", "netns", "del", self.name)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        _run("ip", "link", "del", self._near)  # at once, not in the background
        _run("ip", "netns", "del", self.name)

    def _wire(self) -> None:
        near, far, there = self._near, self._far, ("ip", "-n", self.name)
        _run(
            *f"ip link add {near} address {CAR_MAC} type veth".split(),
            *f"peer name {far} address {PHONE_MAC}".split(),
        )
        _run("ip", "link", "set", far, "netns", self.name)
        _run("ip", "addr", "add", f"{CAR}/30", "dev", near)
        _run("ip", "link", "set", near, "up")
        _run(*there, "addr", "add", f"{PHONE}/30", "dev", far)
        _run(*there, "link", "set", far, "up")
        _run(*there, "link", "set", "lo", "up")
        self.find()

    def _address(self, car: str, phone: str) -> None:
        for name, address, mac, device in (
            (None, PHONE, phone, self._near), (self.name, CAR, car, self._far),
        ):  # fmt: skip
            host = ["-n", name] if name else []
            _run(
                "ip", *host, "neigh", "replace", address, "lladdr", mac,
                "dev", device, "nud", "permanent",
            )  # fmt: skip

    def lose(self) -> None:
        """From now on every packet is lost: sent, and refused by the receiver.

        Dropped on the sender's own host TCP would hear of it and retry early.
        """
        self._address(NOBODY, NOBODY)

    def find(self) -> None:
        """Packets arrive again."""
        self._address(CAR_MAC, PHONE_MAC)

    def narrow(self, bits_per_s: int, queue_bytes: int) -> None:
        """From the car to the phone passes no more; so much waits before the drop."""
        _run(
            "tc", "qdisc", "replace", "dev", self._near, "root", "tbf",
            "rate", f"{bits_per_s}bit", "burst", str(BURST_BYTES),
            "limit", str(queue_bytes),
        )  # fmt: skip

    def widen(self) -> None:
        """The cable's own rate."""
        _run("tc", "qdisc", "del", "dev", self._near, "root")

    def connect(self, port: int) -> socket.socket:
        """A connection from the phone's host to the car."""
        made: list[socket.socket] = []

        def enter() -> None:  # the namespace is that of a thread, which ends here
            with open(f"/run/netns/{self.name}") as namespace:
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

    @contextmanager
    def browser(self, home: Path, port: int) -> Iterator[Browser]:
        """Chromium on the phone's host; http of the car counts as secure there, so
        that it has WebCodecs."""
        wrapper = home / "chromium-on-the-lan"
        wrapper.write_text(
            f'#!/bin/sh\nexec ip netns exec {self.name} {CHROMIUM} "$@" '
            f"--unsafely-treat-insecure-origin-as-secure=http://{CAR}:{port}\n"
        )
        wrapper.chmod(0o755)
        with chromium(str(wrapper)) as running:
            yield running


def take_wheel(page: Page, bench: RunningBench) -> None:
    """Enters the drive code and sits down."""
    code = json.loads((bench.state / "codes.json").read_text())["drive"]
    page.locator("#wheel").click()
    page.locator("#code").fill(code)
    page.keyboard.press("Enter")
    until(page, "window.fpvcar.state.may_drive")
    if probe(page, "state.role") != "driver":
        page.locator("#wheel").click()
    until(page, "window.fpvcar.state.role === 'driver'")
    go_on(page)


def status(bench: RunningBench) -> dict[str, object]:
    """What the car says of itself."""
    with urllib.request.urlopen(f"{bench.url}api/status", timeout=5.0) as answer:
        said: dict[str, object] = json.load(answer)
    return said


def seconds_until_current(page: Page) -> float:
    """How long until the picture is the present again."""
    return wait_for(
        lambda: bool(page.evaluate(f"window.fpvcar.video.ageMs < {CURRENT_MS}")),
        f"old: {probe(page, 'video')}", 10.0,
    )  # fmt: skip
