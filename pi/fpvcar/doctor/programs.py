"""Parsers for the output of systemctl, journalctl, nmcli, pinctrl, busctl and openssl. A missing
program gives an `Unasked`."""

import re
import ssl
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Protocol

from fpvcar.config import Profile
from fpvcar.config.raspberry_pi_os import SERVICES, UNITS
from fpvcar.devices.backends import BackEnd
from fpvcar.doctor.facts import Air, CardSpeed, DeadManTest, MotorTest, Pin, Running, Unit
from fpvcar.doctor.report import Answer, Unasked
from fpvcar.wire.network import nmcli_fields

DAY_S = 86_400.0
INTERFERING = 40
"""Signal strength in nmcli, 0 to 100, from which another network interferes."""
WIDE = 4
"""Width of a 2.4 GHz channel in channel numbers: four."""
LAST_2_4_GHZ = 14
OFF = ("0", "infinity", "")
RESTART = "MESSAGE_ID=5eb03494b6584870a536b337290809b3"
"""Journal entry of an automatic restart: SD_MESSAGE_UNIT_RESTART_SCHEDULED of sd-messages.h."""
UNIT_FIELD = re.compile(r'"UNIT"\s*:\s*"([^"]+)"')
HUNG_ENCODER = re.compile(
    r"bcm2835[-_](?:codec|mmal_vchiq)\b.*(?:timed out waiting|Timeout waiting for buffers"
    r"|Failed (?:en|dis)abling [io]/p port|failed to create component)"
)
"""Messages of mmal-vchiq.c and bcm2835-v4l2-codec.c (raspberrypi/linux #4606, #5360, #7163)."""
PIN = re.compile(r"\s*(\d+):\s+(\w+)\s+(.*?)\|")
"""Line of pinctrl: "17: ip    pd | lo // GPIO17 = input"."""


class Machine(Protocol):
    """Interface of the running machine, or of a test's fake: running_system.py."""

    def command(self, *argv: str) -> str | Unasked: ...
    def backend(self, profile: Profile) -> BackEnd: ...
    def pins(self, profile: Profile) -> Answer: ...
    def holders(self, gpios: Sequence[int]) -> dict[int, str] | Unasked: ...
    def answering(
        self, profile: Profile, places: Collection[tuple[int, int]]
    ) -> frozenset[tuple[int, int]] | Unasked: ...
    def running(self) -> Running | Unasked: ...
    def trip(self) -> DeadManTest | Unasked: ...
    def turn(self, profile: Profile) -> tuple[MotorTest, ...] | Unasked: ...
    def camera(self, profile: Profile) -> Answer: ...
    def speed(self, directory: Path) -> CardSpeed | Unasked: ...
    def power_save(self, interface: str) -> bool | Unasked: ...
    def writable(self, state: Path) -> Answer: ...
    def utc_s(self) -> float | None: ...


def units(machine: Machine) -> tuple[Unit, ...] | Unasked:
    """Return the state of the car's units."""
    output = machine.command(
        "systemctl", "show", "--property=Id,LoadState,ActiveState,NRestarts,WatchdogUSec", *UNITS
    )
    if isinstance(output, Unasked):
        return output
    blocks = [dict(_pairs(block)) for block in output.strip().split("\n\n")]
    logged = _logged_restarts(machine)
    return tuple(_unit(block, logged) for block in blocks if block.get("Id"))


def _logged_restarts(machine: Machine) -> Counter[str]:
    """Return the restarts of each unit in the last day: systemd's own count begins again after ten
    quiet minutes."""
    output = machine.command(
        "journalctl",
        "--boot",
        "--since=-24h",
        "--quiet",
        "--output=json",
        "--output-fields=UNIT",
        RESTART,
    )
    return Counter([] if isinstance(output, Unasked) else UNIT_FIELD.findall(output))


def _pairs(block: str) -> list[tuple[str, str]]:
    rows = (line.partition("=") for line in block.splitlines())
    return [(name, value) for name, _, value in rows]


def _unit(properties: dict[str, str], logged: Counter[str]) -> Unit:
    name, restarts = properties["Id"], properties.get("NRestarts", "")
    watched = name not in SERVICES or properties.get("WatchdogUSec", "") not in OFF
    return Unit(
        name,
        properties.get("LoadState", ""),
        properties.get("ActiveState", ""),
        max(int(restarts) if restarts.isdecimal() else 0, logged[name]),
        watched,
    )


def watchdog(machine: Machine) -> bool | Unasked:
    """Return whether systemd feeds the chip's watchdog."""
    output = machine.command("systemctl", "show", "--property=RuntimeWatchdogUSec")
    if isinstance(output, Unasked):
        return output
    return dict(_pairs(output)).get("RuntimeWatchdogUSec", "") not in OFF


def air(machine: Machine) -> Air | Unasked:
    """Return the channel, and the number of other networks on it, without a new scan."""
    output = machine.command(
        "nmcli", "-t", "-f", "IN-USE,CHAN,SIGNAL", "device", "wifi", "list", "--rescan", "no"
    )
    if isinstance(output, Unasked):
        return output
    rows = [nmcli_fields(line) for line in output.splitlines()]
    networks = [(row[0], int(row[1]), int(row[2])) for row in rows if len(row) == 3]
    own = next((channel for used, channel, _ in networks if used == "*"), None)
    if own is None:
        return Unasked("channel: the car is in no network")
    wide = WIDE if own <= LAST_2_4_GHZ else 1
    rivals = [
        channel
        for used, channel, strength in networks
        if used != "*" and strength >= INTERFERING and abs(channel - own) < wide
    ]
    return Air(own, len(rivals))


def encoder_line(machine: Machine) -> str:
    """Return the kernel's last line about a hung H.264 encoder since the boot; "" without one."""
    output = machine.command("journalctl", "--dmesg", "--quiet", "--output=cat")
    lines = [] if isinstance(output, Unasked) else output.splitlines()
    return next((line.strip() for line in reversed(lines) if HUNG_ENCODER.search(line)), "")


def levels(machine: Machine, gpios: Sequence[int]) -> dict[int, Pin] | Unasked:
    """Return the current function and pull of each pin on the chip."""
    if not gpios:
        return Unasked("no motor is connected to a GPIO")
    output = machine.command("pinctrl", "get", ",".join(map(str, gpios)))
    if isinstance(output, Unasked):
        return output
    pins = {}
    for gpio, function, flags in PIN.findall(output):
        pull = next((flag for flag in flags.split() if flag in ("pu", "pd", "pn")), "")
        pins[int(gpio)] = Pin(function, pull)
    return pins


def host_name(machine: Machine) -> str | Unasked:
    """Return the host name that avahi announces to the network."""
    service = ("org.freedesktop.Avahi", "/", "org.freedesktop.Avahi.Server")
    output = machine.command("busctl", "call", *service, "GetHostNameFqdn")
    if isinstance(output, Unasked):
        return Unasked(f"avahi does not answer ({output.why})")
    return output.strip().removeprefix("s ").strip('"')


def certificate_days(machine: Machine, certificate: Path, utc_s: float) -> float | Unasked:
    """Return the remaining validity of a certificate in days."""
    output = machine.command("openssl", "x509", "-in", str(certificate), "-noout", "-enddate")
    if isinstance(output, Unasked):
        return Unasked(f"{certificate}: missing or not readable")
    try:
        end_s = ssl.cert_time_to_seconds(output.strip().partition("=")[2])
    except ValueError:
        return Unasked(f"{certificate}: no expiry date")
    return (end_s - utc_s) / DAY_S
