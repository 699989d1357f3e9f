"""Health sources of a Raspberry Pi or any other Linux machine.

All paths are below `root`, so that a test can simulate any machine. Nothing here needs
root privileges.
"""

import contextlib
import fcntl
import os
import shutil
import socket
import struct
import subprocess
import time
from pathlib import Path

from fpvcar.config.raspberry_pi_os import MODEL
from fpvcar.devices.computer import ComputerReadings

VCGENCMD_S = 1.0
SIOCGIWRATE = 0x8B21  # <linux/wireless.h>, struct iw_param: s32 value, bit/s
SIOCGIWPOWER = 0x8B2D  # the same; "disabled" is the byte after "fixed"
IFREQ = struct.Struct("16siBB10x")


class Machine:
    """Sources of one machine, located once."""

    def __init__(self, root: Path = Path("/"), disk: Path | None = None) -> None:
        """`disk`: any path on the card whose free space counts."""
        self._root, self._disk = root, disk or root
        self._throttled = self._firmware()
        self._alarm = self._voltage_alarm()
        self._vcgencmd = shutil.which("vcgencmd") if root == Path("/") else None

    def read(self) -> ComputerReadings:
        """Read all sources, in about 1 ms."""
        wireless = self._text("proc/net/wireless")
        name = interface(wireless)
        return ComputerReadings(
            throttled=self._throttled_now(),
            alarm=_read(self._alarm),
            milli_c=self._text("sys/class/thermal/thermal_zone0/temp"),
            wireless=wireless,
            bit_rate=bit_rate(name),
            meminfo=self._text("proc/meminfo"),
            loadavg=self._text("proc/loadavg"),
            uptime=self._text("proc/uptime"),
            disk_b=self._free_b(),
            life_times=self._cards("life_time"),
            ends=self._cards("pre_eol_info"),
            mounts=self._text("proc/self/mounts"),
            board=self._text(MODEL),
            disk=str(self._disk),
            utc_s=time.time(),
            interface=name,
        )

    def _text(self, name: str) -> str | None:
        return _read(self._root / name)

    def _cards(self, name: str) -> tuple[str, ...]:
        """Return the wear reported by eMMC 5 (JESD84-B51, 7.4.40 f.); few SD cards report it."""
        try:
            paths = sorted((self._root / "sys/block").glob(f"mmcblk*/device/{name}"))
        except OSError:  # no descriptor is left, say
            return ()
        return tuple(text for path in paths if (text := _read(path)))

    def _firmware(self) -> Path | None:
        """Return the path of get_throttled: soc/soc:firmware/ up to a Pi 4, elsewhere on a Pi 5."""
        platform = self._root / "sys/devices/platform"
        usual_path = platform / "soc/soc:firmware/get_throttled"
        if usual_path.exists():
            return usual_path
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
                [self._vcgencmd, "get_throttled"],
                capture_output=True,
                text=True,
                timeout=VCGENCMD_S,
                stdin=subprocess.DEVNULL,
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return done.stdout if done.returncode == 0 else None

    def _free_b(self) -> int | None:
        try:
            stat = os.statvfs(self._disk)
        except OSError:
            return None
        return stat.f_bavail * stat.f_frsize


def interface(wireless: str | None) -> str | None:
    """Return the name of the first wireless interface."""
    for line in (wireless or "").splitlines()[2:]:
        name, colon, _ = line.strip().partition(":")
        if colon:
            return name
    return None


def bit_rate(interface: str | None) -> int | None:
    """Return the transmit rate in bit/s, by the ioctl of `iwconfig` if the driver has it."""
    answer = _wireless(interface, SIOCGIWRATE)
    return None if answer is None else answer[0]


def power_save(interface: str | None) -> bool | None:
    """Return whether power saving is on: `iwconfig` calls it Power Management."""
    answer = _wireless(interface, SIOCGIWPOWER)
    return None if answer is None else not answer[1]


def _wireless(interface: str | None, request: int) -> tuple[int, int] | None:
    """Return value and "disabled" of a struct iw_param."""
    if not interface:
        return None
    query = IFREQ.pack(interface.encode()[:15], 0, 0, 0)
    with contextlib.suppress(OSError):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            answer = fcntl.ioctl(any_socket, request, query)
        _, value, _, disabled = IFREQ.unpack(answer)
        return value, disabled
    return None


def _read(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
