"""Air between two hosts: delay, jitter, loss at random and in bursts, reordering.

    near's TUN device -> Channel (when does it arrive?) -> far's TUN device, and back

A small router of the tests' own, a process with one end in each network namespace: the kernel's
netem is not on every machine. The behaviour depends on the seed alone.
"""

import fcntl
import heapq
import json
import os
import random
import select
import struct
import subprocess
import sys
import time
from dataclasses import asdict, dataclass

from testkit.network.lan import Lan, _run

TUNSETIFF = 0x400454CA  # <linux/if_tun.h>
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
PACKET_BYTES = 65_536
SEED = 17
QUEUE_S = 0.25


@dataclass(frozen=True)
class Weather:
    """Effect of the air on packets, each way.

    In the first `burst_s` of every `every_s` the share `burst_loss` of the packets is lost, at
    other times `loss`. The share `reordered` may overtake earlier packets, due to jitter. A rate of
    0 is without limit; packets that would wait longer than QUEUE_S are lost.
    """

    delay_s: float = 0.0
    jitter_s: float = 0.0
    loss: float = 0.0
    burst_loss: float = 0.0
    burst_s: float = 0.0
    every_s: float = 1.0
    reordered: float = 0.0
    bits_per_s: float = 0.0


class Channel:
    """Single direction. Pure: time is an argument, in seconds."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._weather = Weather()
        self._since_s = self._last_s = self._free_s = 0.0

    def set(self, weather: Weather, now_s: float) -> None:
        """Change the weather; its first burst begins now."""
        self._weather, self._since_s = weather, now_s

    def arrival(self, now_s: float, size: int = 0) -> float | None:
        """Return the arrival of a packet of so many bytes that is sent now; None if it is lost."""
        it = self._weather
        if it.bits_per_s:
            begin_s = max(now_s, self._free_s)
            if begin_s - now_s > QUEUE_S:
                return None
            self._free_s = now_s = begin_s + 8 * size / it.bits_per_s
        burst = (now_s - self._since_s) % it.every_s < it.burst_s
        if self._chance.random() < (it.burst_loss if burst else it.loss):
            return None
        at_s = now_s + it.delay_s + self._chance.uniform(0.0, it.jitter_s)
        if not self._chance.random() < it.reordered:
            at_s = max(at_s, self._last_s)
        self._last_s = max(at_s, self._last_s)
        return at_s


class Air(Lan):
    """Lan without a cable: near and far host communicate by radio."""

    def _wire(self) -> None:
        self._router = subprocess.Popen(
            [sys.executable, "-m", "testkit.network.air", self._near, self._far],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._router.stdout is not None
        if self._router.stdout.readline() != "ready\n":
            raise OSError("no TUN device: is this root, and is /dev/net/tun there?")
        _run("ip", "link", "set", self._far, "netns", str(self._host.pid))
        for enter, device, ours, theirs in (
            ([], self._near, self.near, self.far),
            (self.enter, self._far, self.far, self.near),
        ):
            _run(*enter, "ip", "link", "set", device, "addrgenmode", "none")
            _run(*enter, "ip", "addr", "add", ours, "peer", theirs, "dev", device)
            _run(*enter, "ip", "link", "set", device, "up")
        _run(*self.enter, "ip", "link", "set", "lo", "up")

    def __exit__(self, *fault: object) -> None:
        router = getattr(self, "_router", None)
        if router is not None:
            router.communicate()  # the end of its input stops it
        super().__exit__(*fault)

    def set(self, weather: Weather) -> float:
        """Set the weather from now on; return the moment, by time.monotonic()."""
        assert self._router.stdin is not None
        self._router.stdin.write(json.dumps(asdict(weather)) + "\n")
        self._router.stdin.flush()
        return time.monotonic()

    def mtu(self, size: int) -> None:
        """Set the largest packet of both ends, in bytes."""
        for enter, device in (([], self._near), (self.enter, self._far)):
            _run(*enter, "ip", "link", "set", device, "mtu", str(size))

    def lose(self) -> None:
        self.set(Weather(loss=1.0))

    def find(self) -> None:
        self.set(Weather())

    def drop(self, share: float) -> None:
        self.set(Weather(loss=share))


def _tun(name: str) -> int:
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    request = struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI)
    fcntl.ioctl(device, TUNSETIFF, request)
    return device


def route(names: list[str]) -> None:
    """Carry packets between two new devices until the input ends."""
    devices = [_tun(name) for name in names]
    print("ready", flush=True)
    channels = [Channel(SEED), Channel(SEED + 1)]
    away: list[tuple[float, int, int, bytes]] = []
    count = 0
    while True:
        wait_s = max(0.0, away[0][0] - time.monotonic()) if away else None
        ready = select.select([*devices, 0], [], [], wait_s)[0]
        now_s = time.monotonic()
        if 0 in ready:
            *_, newest = os.read(0, PACKET_BYTES).splitlines() or [b""]
            if not newest:
                return
            for channel in channels:
                channel.set(Weather(**json.loads(newest)), now_s)
        for way, channel in enumerate(channels):
            if devices[way] not in ready:
                continue
            packet, count = os.read(devices[way], PACKET_BYTES), count + 1
            at_s = channel.arrival(now_s, len(packet))
            if at_s is not None:
                heapq.heappush(away, (at_s, count, 1 - way, packet))
        while away and away[0][0] <= now_s:
            _, _, end, packet = heapq.heappop(away)
            try:
                os.write(devices[end], packet)
            except OSError:  # that end is down, or not up yet
                continue


if __name__ == "__main__":
    route(sys.argv[1:3])
