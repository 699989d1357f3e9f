"""Access checks: code verification, limits on wrong codes, Host and Origin headers.

Functions and classes are pure, except those that ask this machine for its address and names; time
is an argument.
"""

import contextlib
import hmac
import ipaddress
import logging
import re
import secrets
import socket
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fpvcar.runtime.paths import OLD_NAMES

TRIES = 5
TRIES_WINDOW_S = 60.0
TRIES_ALL = 20
"""Most wrong six-digit codes per minute from all unknown networks together.

The limit treats 60 addresses as a single guesser. Trying half of all codes then takes 17 days.
"""
TRIES_ALL_LONG = 200
"""Most wrong codes of another form per minute. Trying half of all grown-up codes then takes
4,000 years."""
DRIVE_FORM = re.compile(r"\s*[0-9]{6}\s*", re.A)
TOKEN_FORM = re.compile(r"[0-9a-f]{32}")
"""Form of an invitation token: 128 bits, impossible to guess."""
TRUSTED_MAX = 64
ADDRESSES_MAX = 1000
HOST = re.compile(r"(\[(?P<address>[\w:.%-]+)\]|(?P<name>[\w.-]+))(:\d{1,5})?", re.A)
"""Host header (RFC 9110, 7.2), limited to characters used in addresses and the car's names."""
log = logging.getLogger("fpvcar.access")


@dataclass(frozen=True, slots=True)
class Codes:
    """The two secrets of a car. `grown_up` also grants the rights of `drive`."""

    drive: str
    grown_up: str


def new_codes() -> Codes:
    """Generate a drive code of 6 digits and a grown-up code that a child cannot guess."""
    drive = f"{secrets.randbelow(1_000_000):06d}"
    letters = "abcdefghjkmnpqrstuvwxyz23456789"
    return Codes(drive, "".join(secrets.choice(letters) for _ in range(8)))


@dataclass(frozen=True, slots=True)
class Rights:
    """Rights of one connection in addition to watching and stopping."""

    drive: bool = False
    grown_up: bool = False


class CodeCheck:
    """Code check with a limit on wrong codes per network, and a limit for all networks together.

    Each kind of code has its own common limit, so guesses at the drive code do not block grown-ups.
    A network that has sent a right code is exempt from the common limits.
    """

    def __init__(self, codes: Codes) -> None:
        self._codes = codes
        self._wrong: dict[str, deque[float]] = {}
        self._short_wrong: deque[float] = deque(maxlen=TRIES_ALL)
        self._long_wrong: deque[float] = deque(maxlen=TRIES_ALL_LONG)
        self._trusted: dict[str, None] = {}

    def wait_s(self, code: str, address: str, now_s: float) -> float:
        """Return the seconds this address must wait before it may try a code of this kind."""
        network = network_of(address)
        return max(self._crowd_s(code, network, now_s), self._own_s(network, now_s))

    def _crowd_s(self, code: str, network: str, now_s: float) -> float:
        wrong = self.wrong_tries(code)
        if wrong is None or network in self._trusted or len(wrong) < (wrong.maxlen or 0):
            return 0.0
        return max(0.0, wrong[0] + TRIES_WINDOW_S - now_s)

    def wrong_tries(self, code: str) -> deque[float] | None:
        """Return the times of the newest wrong tries at this kind of code, at most one minute's
        allowance.

        Returns None for invitation tokens: they need no common limit.
        """
        if TOKEN_FORM.fullmatch(code):
            return None
        return self._short_wrong if DRIVE_FORM.fullmatch(code) else self._long_wrong

    def _own_s(self, address: str, now_s: float) -> float:
        wrong = self._wrong.get(address)
        if wrong is None:
            return 0.0
        while wrong and wrong[0] <= now_s - TRIES_WINDOW_S:
            wrong.popleft()
        if not wrong:
            del self._wrong[address]
        return wrong[0] + TRIES_WINDOW_S - now_s if len(wrong) >= TRIES else 0.0

    def rights(self, code: str) -> Rights | None:
        """Return the rights that a code grants; None if it is wrong. Runs in constant time."""
        code_bytes = code.encode(errors="surrogatepass")
        grown_up = hmac.compare_digest(code_bytes, self._codes.grown_up.encode())
        drive = hmac.compare_digest(code_bytes, self._codes.drive.encode())
        return Rights(drive=True, grown_up=grown_up) if grown_up or drive else None

    def unlock(self, code: str, address: str, now_s: float) -> Rights | None:
        """Return the rights that a code grants; None if it is wrong. A wrong code is counted.

        The caller checks `wait_s` first: until it returns 0, codes are rejected unread.
        """
        if self.wait_s(code, address, now_s) > 0.0:
            return None
        address = network_of(address)
        rights = self.rights(code.strip())
        if rights is not None:
            self._wrong.pop(address, None)
            self._trusted.pop(address, None)
            self._trusted[address] = None
            if len(self._trusted) > TRUSTED_MAX:
                self._trusted.pop(next(iter(self._trusted)))
            return rights
        if len(self._wrong) >= ADDRESSES_MAX and address not in self._wrong:
            self._wrong.pop(next(iter(self._wrong)))
        self._wrong.setdefault(address, deque()).append(now_s)
        crowd = self.wrong_tries(code)
        if crowd is not None:
            crowd.append(now_s)
        log.warning("%s: wrong code", address)
        return None


def video_id(key: bytes, client: str) -> str:
    """Return the id that a page puts into the URL of its pictures.

    URLs may be read by others, and the id does not reveal the client's id. A page keeps the same id
    after a lost link.
    """
    return hmac.new(key, b"video " + client.encode(), "sha256").hexdigest()[:32]


def network_of(address: str) -> str:
    """Return the unit of rate limiting: an IPv4 address, or the /64 prefix of an IPv6 host."""
    try:
        ip = ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    return address if ip.ipv4_mapped else str(int(ip) >> 64)


def address_class(address: str) -> str:
    """Classify an address for display: "this computer", "home network" or "elsewhere"."""
    if is_loopback(address):
        return "this computer"
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return "elsewhere"
    near = (getattr(ip, "ipv4_mapped", None) or ip).is_private or ip.is_link_local
    return "home network" if near else "elsewhere"


def lan_address() -> str:
    """Return this machine's address on the LAN (127.0.0.1 if it has no route).

    Connecting a UDP socket only consults the routing table; no packet is sent.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # TEST-NET-1, RFC 5737
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])


def machine_names(runtime: Path) -> tuple[str, ...]:
    """Return the host names of this machine: the present one, and those that `fpvcar setup` has
    changed since the last reboot."""
    names = [socket.gethostname()]
    with contextlib.suppress(OSError):
        names += (runtime / OLD_NAMES).read_text().split()
    return tuple(host for name in names for host in (name, f"{name}.local"))


def is_loopback(address: str) -> bool:
    """Return whether the peer runs on this machine."""
    if address == "localhost":
        return True
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(ip, "ipv4_mapped", None)
    return (mapped or ip).is_loopback


def host_allowed(host: str | None, car_name: str, extra: Iterable[str] = ()) -> bool:
    """Return whether the Host header names this car. Prevents DNS rebinding.

    Allowed: an IP literal, localhost, the car's own name (also NAME.local), `extra`.
    """
    name = _hostname(host)
    if name is None:
        return False
    own = car_name.lower()
    if name in {"localhost", own, f"{own}.local", *(extra_name.lower() for extra_name in extra)}:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def origin_allowed(origin: str | None, host: str | None) -> bool:
    """Return whether the Origin is a page of this server, or absent."""
    if origin is None:
        return True
    pages = (f"{scheme}://{host}".lower() for scheme in ("http", "https"))
    return bool(host) and origin.lower() in pages


def _hostname(host: str | None) -> str | None:
    """Return the host of a Host header, None if it is malformed.

    urlsplit is unsuitable: it finds an address in "evil[::1]" and a host after "@".
    """
    match = HOST.fullmatch(host or "")
    return (match["address"] or match["name"]).lower() if match else None
