"""Where a Raspberry Pi, or any Linux machine, says how it is; health.py understands it.

Below `root`, so that a test can play any machine. Nothing here needs root's rights.
"""

import contextlib
import fcntl
import math
import os
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from fpvcar import status
from fpvcar.sensors import computer
from fpvcar.threads import Worker

EVERY_S = 2.0
"""The kernel itself looks for under-voltage so often (raspberrypi-hwmon)."""
VCGENCMD_S = 1.0
SAY_AGAIN_S = 60.0
"""A fault that was gone for so long is a new one."""
SIOCGIWRATE = 0x8B21  # <linux/wireless.h>, struct iw_param: s32 value, bit/s
IFREQ = struct.Struct("16si12x")


class Machine:
    """The sources of one machine, found once."""

    def __init__(self, root: Path = Path("/"), disk: Path | None = None) -> None:
        """`disk`: any place on the card that is to have room."""
        self._root, self._disk = root, disk or root
        self._throttled = self._firmware()
        self._alarm = self._voltage_alarm()
        self._vcgencmd = shutil.which("vcgencmd") if root == Path("/") else None

    def look(self) -> computer.Found:
        """What they all say now; some 1 ms."""
        wireless = self._text("proc/net/wireless")
        return computer.Found(
            throttled=self._throttled_now(),
            alarm=_read(self._alarm),
            milli_c=self._text("sys/class/thermal/thermal_zone0/temp"),
            wireless=wireless,
            bit_rate=bit_rate(computer.interface(wireless)),
            meminfo=self._text("proc/meminfo"),
            loadavg=self._text("proc/loadavg"),
            uptime=self._text("proc/uptime"),
            disk_b=self._free_b(),
        )

    def _text(self, name: str) -> str | None:
        return _read(self._root / name)

    def _firmware(self) -> Path | None:
        """get_throttled: soc/soc:firmware/ up to a Pi 4, elsewhere on a Pi 5."""
        platform = self._root / "sys/devices/platform"
        known = platform / "soc/soc:firmware/get_throttled"
        if known.exists():
            return known
        for depth in ("*", "*/*", "*/*/*"):
            for path in sorted(platform.glob(f"{depth}/get_throttled")):
                return path
        return None

    def _voltage_alarm(self) -> Path | None:
        for name in sorted((self._root / "sys/class/hwmon").glob("hwmon*/name")):
            if (_read(name) or "").strip() == "rpi_volt":
                return name.with_name("in0_lcrit_alarm")
        return None

    def _throttled_now(self) -> str | None:
        if self._throttled is not None:
            return _read(self._throttled)
        if self._vcgencmd is None:
            return None
        try:
            done = subprocess.run(
                [self._vcgencmd, "get_throttled"], capture_output=True, text=True,
                timeout=VCGENCMD_S, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError):
            return None
        return done.stdout if done.returncode == 0 else None

    def _free_b(self) -> int | None:
        try:
            found = os.statvfs(self._disk)
        except OSError:
            return None
        return found.f_bavail * found.f_frsize


def bit_rate(interface: str | None) -> int | None:
    """What the driver sends at, bit/s: the ioctl of `iwconfig`, where there is one."""
    if not interface:
        return None
    asked = IFREQ.pack(interface.encode()[:15], 0)
    with contextlib.suppress(OSError):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            told = fcntl.ioctl(any_socket, SIOCGIWRATE, asked)
        _, value = IFREQ.unpack(told)
        return int(value)
    return None


def _read(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return None


class HealthThread(Worker):
    """Looks every 2 s. A card that hangs holds up this thread only; its age says so."""

    def __init__(
        self, machine: Machine, every_s: float = EVERY_S,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        super().__init__("health")
        self._machine, self._every_s, self._clock_s = machine, every_s, clock_s
        self._last: tuple[status.Health, float] | None = None
        self._said_s: dict[str, float] = {}

    def told(self, now_s: float) -> status.Health:
        """The last look, and how old it is."""
        if self._last is None:
            return status.Health()
        last, at_s = self._last
        age_s = round(max(0.0, now_s - at_s), 1)
        return msgspec.structs.replace(last, age_s=age_s)

    def weak(self) -> bool:
        """Was there under-voltage at the last look?"""
        bits = self._last[0].throttled if self._last is not None else None
        return bool((bits or 0) & computer.UNDER_VOLTAGE)

    def live(self) -> None:
        """Until `ending`."""
        while not self.ending:
            found, now_s = computer.judge(self._machine.look()), self._clock_s()
            self._last = found, now_s
            self.say("ok")
            for words in found.faults:
                kind = words.partition(":")[0]  # figures behind it change
                if now_s - self._said_s.get(kind, -math.inf) > SAY_AGAIN_S:
                    self._log.warning("%s", words)
                self._said_s[kind] = now_s
            self.pause(self._every_s)
