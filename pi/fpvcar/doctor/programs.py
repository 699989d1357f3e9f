"""Parsers for the output of systemctl, nmcli, pinctrl, busctl and openssl. A missing program
gives an `Unasked`."""

import re
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from fpvcar.config.raspberry_pi_os import SERVICES, UNITS
from fpvcar.doctor.facts import Air, Pin, Unit
from fpvcar.doctor.report import Unasked
from fpvcar.wifi.nmcli import fields

DAY_S = 86_400.0
HEARD = 40
"""Signal strength in nmcli, 0 to 100, from which another network interferes."""
WIDE = 4
"""Width of a 2.4 GHz channel in channel numbers: four."""
LAST_2_4_GHZ = 14
OFF = ("0", "infinity", "")
PIN = re.compile(r"\s*(\d+):\s+(\w+)\s+(.*?)\|")
"""Line of pinctrl: "17: ip    pd | lo // GPIO17 = input"."""


class Command(Protocol):
    """Runs a program and returns its output."""

    def __call__(self, *argv: str) -> str | Unasked: ...


def units(command: Command) -> tuple[Unit, ...] | Unasked:
    """Return the state of the car's units."""
    said = command(
        "systemctl", "show", "--property=Id,LoadState,ActiveState,NRestarts,WatchdogUSec", *UNITS
    )
    if isinstance(said, Unasked):
        return said
    blocks = [dict(_pairs(block)) for block in said.strip().split("\n\n")]
    return tuple(_unit(one) for one in blocks if one.get("Id"))


def _pairs(block: str) -> list[tuple[str, str]]:
    rows = (line.partition("=") for line in block.splitlines())
    return [(name, value) for name, _, value in rows]


def _unit(said: dict[str, str]) -> Unit:
    name, restarts = said["Id"], said.get("NRestarts", "")
    watched = name not in SERVICES or said.get("WatchdogUSec", "") not in OFF
    return Unit(
        name,
        said.get("LoadState", ""),
        said.get("ActiveState", ""),
        int(restarts) if restarts.isdecimal() else 0,
        watched,
    )


def watchdog(command: Command) -> bool | Unasked:
    """Return whether systemd feeds the chip's watchdog."""
    said = command("systemctl", "show", "--property=RuntimeWatchdogUSec")
    if isinstance(said, Unasked):
        return said
    return dict(_pairs(said)).get("RuntimeWatchdogUSec", "") not in OFF


def air(command: Command) -> Air | Unasked:
    """Return the channel, and the number of other networks on it, without a new scan."""
    said = command(
        "nmcli", "-t", "-f", "IN-USE,CHAN,SIGNAL", "device", "wifi", "list", "--rescan", "no"
    )
    if isinstance(said, Unasked):
        return said
    rows = [fields(line) for line in said.splitlines()]
    heard = [(one[0], int(one[1]), int(one[2])) for one in rows if len(one) == 3]
    own = next((channel for used, channel, _ in heard if used == "*"), None)
    if own is None:
        return Unasked("its channel: the car is in no network")
    wide = WIDE if own <= LAST_2_4_GHZ else 1
    rivals = [
        channel
        for used, channel, strength in heard
        if used != "*" and strength >= HEARD and abs(channel - own) < wide
    ]
    return Air(own, len(rivals))


def levels(command: Command, gpios: Sequence[int]) -> dict[int, Pin] | Unasked:
    """Return the current function and pull of each pin on the chip."""
    if not gpios:
        return Unasked("no motor hangs on a GPIO")
    said = command("pinctrl", "get", ",".join(map(str, gpios)))
    if isinstance(said, Unasked):
        return said
    found = {}
    for gpio, function, words in PIN.findall(said):
        pull = next((one for one in words.split() if one in ("pu", "pd", "pn")), "")
        found[int(gpio)] = Pin(function, pull)
    return found


def host_name(command: Command) -> str | Unasked:
    """Return the host name that avahi announces to the network."""
    service = ("org.freedesktop.Avahi", "/", "org.freedesktop.Avahi.Server")
    said = command("busctl", "call", *service, "GetHostNameFqdn")
    if isinstance(said, Unasked):
        return Unasked(f"avahi does not answer ({said.why})")
    return said.strip().removeprefix("s ").strip('"')


def certificate_days(command: Command, certificate: Path, utc_s: float) -> float | Unasked:
    """Return the remaining validity of a certificate in days."""
    said = command("openssl", "x509", "-in", str(certificate), "-noout", "-enddate")
    if isinstance(said, Unasked):
        return Unasked(f"{certificate}: none yet, or it may not be read")
    try:
        end_s = ssl.cert_time_to_seconds(said.strip().partition("=")[2])
    except ValueError:
        return Unasked(f"{certificate}: no date in it")
    return (end_s - utc_s) / DAY_S
