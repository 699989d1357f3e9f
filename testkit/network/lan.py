"""Two hosts with a cable between them, whose loss and rate a test sets. Needs root.

The kernel need not emulate links: full loss is a wrong hardware address on the way, partial loss a
receiver that drops packets at random (nftables), a narrow link a token bucket on this side.

Segmentation offload is off at both ends: with it up to 64 kB cross the cable as one packet, so that
one random drop takes or spares whole frames.
"""

import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import threading
import time
from itertools import count
from typing import Self

from testkit.network.ports import reserve

NEAR_MAC, FAR_MAC, NOBODY = (f"02:00:00:00:4f:{last:02x}" for last in (1, 2, 3))
BURST_BYTES = 4000
CLONE_NEWNET = 0x40000000  # <linux/sched.h>
SIOCETHTOOL = 0x8946  # <linux/sockios.h>
OFFLOADS = (0x1F, 0x24, 0x2C)  # <linux/ethtool.h>: ETHTOOL_STSO, _SGSO, _SGRO
START_S = 20.0
_libc = ctypes.CDLL(None, use_errno=True)
_numbers = count(os.getpid() * 16)


def _run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"{' '.join(words)}: {done.stderr.strip()}")


def _no_offload(device: str) -> None:
    """Turn TSO, GSO and GRO off, like `ethtool -K DEVICE tso off gso off gro off`."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for command in OFFLOADS:
            value = ctypes.create_string_buffer(struct.pack("II", command, 0))
            request = struct.pack("16sP", device.encode(), ctypes.addressof(value))
            fcntl.ioctl(control, SIOCETHTOOL, request)


class Lan:
    """Two hosts: this one is `near`, the other one `far`. Each Lan has addresses of its own.

    With `offload` TCP crosses in packets of up to 64 kB, for benchmarks of throughput.
    """

    def __init__(self, offload: bool = False) -> None:
        self._offload = offload
        numbers = (number % 0x3FFF for number in _numbers)
        number = next(number for number in numbers if reserve(f"lan-{number}"))
        net = f"10.79.{number >> 6}"
        first, self.near, self.far = (f"{net}.{(number & 63) * 4 + last}" for last in (0, 1, 2))
        self._net = f"{first}/30"
        self.near_device = self._near = f"fpvn{number}"
        self._far = f"fpvf{number}"
        # The far host is a process: it ends with this one, and its cable with it.
        self._host = subprocess.Popen(
            ["setpriv", "--pdeathsig=KILL", "unshare", "--net", "sleep", "infinity"]
        )
        self.enter = ["nsenter", f"--net=/proc/{self._host.pid}/ns/net"]
        """Prefix of a command that runs on the far host."""
        try:
            self._wait_for_host()
            self._wire()
        except BaseException:
            self.__exit__(None, None, None)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # Remove the rules at once; objects of the host disappear some time after it.
        self._undrop()
        subprocess.run(["ip", "link", "del", self._near], capture_output=True)
        self._host.kill()
        self._host.wait()

    def _wait_for_host(self) -> None:
        ours, limit_s = os.readlink("/proc/self/ns/net"), time.monotonic() + START_S
        while os.readlink(f"/proc/{self._host.pid}/ns/net") == ours:
            if self._host.poll() is not None or time.monotonic() > limit_s:
                raise OSError("no second network namespace: is this root?")
            time.sleep(0.005)

    def _wire(self) -> None:
        near, far = self._near, self._far
        _run(
            *f"ip link add {near} address {NEAR_MAC} type veth".split(),
            *f"peer name {far} address {FAR_MAC}".split(),
        )
        if not self._offload:
            _no_offload(near)
            _no_offload(far)
        _run("ip", "link", "set", far, "netns", str(self._host.pid))
        _run("ip", "addr", "add", f"{self.near}/30", "dev", near)
        _run("ip", "link", "set", near, "up")
        # An IPv6 address found unique a second later makes Chromium detect a changed network and
        # abort all loads.
        _run(*self.enter, "ip", "link", "set", far, "addrgenmode", "none")
        _run(*self.enter, "ip", "addr", "add", f"{self.far}/30", "dev", far)
        _run(*self.enter, "ip", "link", "set", far, "up")
        _run(*self.enter, "ip", "link", "set", "lo", "up")
        self.find()

    def _neighbours(self, near_mac: str, far_mac: str) -> None:
        for enter, address, mac, device in (
            ([], self.far, far_mac, self._near),
            (self.enter, self.near, near_mac, self._far),
        ):
            _run(
                *enter,
                "ip",
                "neigh",
                "replace",
                address,
                "lladdr",
                mac,
                "dev",
                device,
                "nud",
                "permanent",
            )

    def lose(self) -> None:
        """Lose every packet from now on: sent, and refused by the receiver.

        A drop on the sender's own host would be reported to TCP, which then retries early.
        """
        self._neighbours(NOBODY, NOBODY)

    def find(self) -> None:
        """Let packets arrive again, after `lose`."""
        self._neighbours(NEAR_MAC, FAR_MAC)

    def roam(self) -> None:
        """Give the far host another address from now on, like in another Wi-Fi."""
        old, self.far = self.far, f"10.80{self.far.removeprefix('10.79')}"
        _run(*self.enter, "ip", "addr", "del", f"{old}/30", "dev", self._far)
        _run("ip", "route", "add", self.far, "dev", self._near)
        _run(*self.enter, "ip", "addr", "add", self.far, "dev", self._far)
        _run(*self.enter, "ip", "route", "add", self.near, "dev", self._far)
        self.find()

    def drop(self, share: float) -> None:
        """Drop this share of the arriving packets from now on, at either end."""
        self._undrop()
        for enter, device in (([], self._near), (self.enter, self._far)):
            chance = f"numgen random mod 10000 < {round(share * 10_000)}"
            hook = "type filter hook input priority 0;"
            rule = f"iifname {device} {chance} drop"
            rules = f"table inet {self._near} {{\nchain lossy {{ {hook}\n{rule}\n}}\n}}"
            _run(*enter, "nft", rules)

    def _undrop(self) -> None:
        for enter in ([], self.enter):
            words = [*enter, "nft", "delete", "table", "inet", self._near]
            subprocess.run(words, capture_output=True)

    def narrow(
        self, bits_per_s: int, queue_bytes: int, burst_bytes: int = BURST_BYTES, back: bool = False
    ) -> None:
        """Limit the rate from near to far (`back`: from far to near); `queue_bytes` wait before
        packets are dropped."""
        _run(
            *(self.enter if back else []),
            "tc",
            "qdisc",
            "replace",
            "dev",
            self._far if back else self._near,
            "root",
            "tbf",
            "rate",
            f"{bits_per_s}bit",
            "burst",
            str(burst_bytes),
            "limit",
            str(queue_bytes),
        )

    def congestion(self, algorithm: str, least_timeout_ms: int = 0) -> None:
        """Set TCP's congestion control between the two hosts, and the least retransmission
        time-out. The latter overrides a socket's TCP_RTO_MIN_US: 200 is a kernel before Linux
        6.15."""
        least = ["rto_min", f"{least_timeout_ms}ms"] if least_timeout_ms else []
        for enter, device, own, peer in (
            ([], self._near, self.near, self.far),
            (self.enter, self._far, self.far, self.near),
        ):
            route = f"ip route replace {peer} dev {device} src {own} congctl {algorithm}"
            _run(*enter, *route.split(), *least)

    def widen(self) -> None:
        """Restore the cable's own rate."""
        _run("tc", "qdisc", "del", "dev", self._near, "root")

    def connect(self, port: int) -> socket.socket:
        """Connect from the far host to this one."""
        made: list[socket.socket] = []

        def reach() -> None:  # the namespace belongs to a thread, which ends here
            with open(f"/proc/{self._host.pid}/ns/net") as namespace:
                if _libc.setns(namespace.fileno(), CLONE_NEWNET) != 0:
                    raise OSError(ctypes.get_errno(), "setns")
            made.append(socket.create_connection((self.near, port), timeout=5.0))

        thread = threading.Thread(target=reach)
        thread.start()
        thread.join()
        if not made:
            raise ConnectionError(f"no way to {self.near} port {port}")
        made[0].settimeout(None)
        return made[0]
