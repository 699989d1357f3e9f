"""Addresses of this machine and of peers; checks of the headers Host and Origin."""

import contextlib
import ipaddress
import re
import socket
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Literal

from fpvcar.runtime.paths import OLD_NAMES

HOST = re.compile(r"(\[(?P<address>[\w:.%-]+)\]|(?P<name>[\w.-]+))(:\d{1,5})?", re.A)
"""Host header (RFC 9110, 7.2), limited to characters used in addresses and the car's names."""


Way = Literal["near", "tunnel", "proxy"]
PREFIX = "X-Forwarded-Prefix"
"""Header that names the path below which a proxy serves the page: Traefik, and embedding.py."""
FORWARDED_HOST = "X-Forwarded-Host"
FORWARDED = (
    "Forwarded",
    "Via",
    "X-Forwarded-For",
    FORWARDED_HOST,
    "X-Forwarded-Proto",
    PREFIX,
    "X-Real-IP",
)
"""Headers that proxies add: RFC 7239, RFC 9110 (7.6.3), Caddy, nginx, Tailscale."""


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


def asks_here(remote: str | None, headers: Mapping[str, str]) -> bool:
    """Return whether a request comes from a client on this machine, not through a proxy on it.

    A proxy's requests come from loopback, too: they have its headers, or the Host of another site.
    """
    name = _hostname(headers.get("Host")) or ""
    own = is_loopback(name) or "." not in name or name.endswith(".local")
    return own and is_loopback(remote or "") and not any(key in headers for key in FORWARDED)


def way_of(own: str, far: Collection[str], headers: Mapping[str, str]) -> Way:
    """Return a client's way to this machine, for display: it connected to the address `own`, and
    `far` are those beyond the LAN."""
    if any(key in headers for key in FORWARDED):
        return "proxy"
    return "tunnel" if own.removeprefix("::ffff:") in far else "near"


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


def certifiable(host: str) -> bool:
    """Return whether a certificate can name the host: an IPv4 address, or labels of a DNS name."""
    return bool(re.fullmatch(r"[\w-]{1,63}(\.[\w-]{1,63})*", host, re.A)) and len(host) < 254


def origin_allowed(origin: str | None, *hosts: str | None) -> bool:
    """Return whether the Origin is a page of this server at one of these hosts, or absent."""
    if origin is None:
        return True
    pages = (f"{scheme}://{host}" for host in hosts if host for scheme in ("http", "https"))
    return origin.lower() in map(str.lower, pages)


def outer_host(
    remote: str | None, headers: Mapping[str, str], car_name: str, extra: Iterable[str] = ()
) -> str | None:
    """Return the host that a proxy on this machine names, None without one.

    Pages of another site can make a browser send the header; so it has to be a host of this car,
    and is read in addition to Host, never in its place.
    """
    host = headers.get(FORWARDED_HOST)
    return host if is_loopback(remote or "") and host_allowed(host, car_name, extra) else None


def _hostname(host: str | None) -> str | None:
    """Return the host of a Host header, None if it is malformed.

    urlsplit is unsuitable: it finds an address in "evil[::1]" and a host after "@".
    """
    match = HOST.fullmatch(host or "")
    return (match["address"] or match["name"]).lower() if match else None


def reachable(host: str) -> str:
    """Return a host name that reaches, from this machine, a server listening at `host`."""
    return "localhost" if host in ("", "0.0.0.0", "::", "127.0.0.1") else host


def in_url(host: str) -> str:
    """Format a host for a URL: IPv6 addresses in brackets, with the zone behind %25 (RFC 6874)."""
    return f"[{host.replace('%', '%25')}]" if ":" in host else host


def taken(expected: str, name: str) -> bool:
    """Return whether the announced name has a number because another host has the expected one."""
    stem = re.escape(expected.removesuffix(".local"))
    return re.fullmatch(rf"{stem}-\d+\.local", name, re.I) is not None
