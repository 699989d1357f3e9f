"""Configuration of both ends of a WireGuard tunnel, and of phones. The keys are made by `wg`."""

import argparse
import hashlib
import io
import ipaddress
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from fpvcar.config.base import ConfigError
from fpvcar.runtime import files
from fpvcar.runtime.arguments import WIREGUARD_PORT
from fpvcar.runtime.texts import NOT_INSTALLED

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,14}", re.ASCII)
HOST = re.compile(r"(?=.{1,253}$)[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?", re.ASCII)
PROGRAM_S = 20.0
HEAD = """\
# Tunnel {name}: the end of the {end}, made by `{maker}`. It has a secret key.
"""
REFRESH = """\
# WireGuard looks up the name of the {site} once, and makes a handshake every two minutes. Look it
# up again while the last one is older.
PostUp = while sleep 30; do at=$(wg show %i latest-handshakes | cut -f 2); [ "$at" ] || break; \
[ $(($(date +%s) - at)) -lt 150 ] || wg set %i peer {peer} endpoint {host}:{port}; \
done >/dev/null 2>&1 &
"""
DERIVED_MTU = """\
# No MTU: wg-quick derives it from the route to the endpoint. Packets that are too
# large for the link are cut up, or lost.
"""
LEAST_MTU = 1200
"""Largest packet in the tunnel that fits every line: IPv6 guarantees 1280 bytes (RFC 8200, 5), of
which WireGuard and the outer headers take up to 80."""


class Tunnel(NamedTuple):
    """Parameters of a tunnel: `site` listens at `endpoint`, `station` connects."""

    name: str
    endpoint: str
    port: int
    network: ipaddress.IPv4Network

    @property
    def site(self) -> str:
        return str(self.network[1])

    @property
    def station(self) -> str:
        return str(self.network[2])

    @property
    def host(self) -> str:
        """Endpoint without its port, an IPv6 address in brackets."""
        return f"[{self.endpoint}]" if ":" in self.endpoint else self.endpoint


def tunnel_of(name: str, arguments: argparse.Namespace, port: int = WIREGUARD_PORT) -> Tunnel:
    """Return the validated parameters. Raises ConfigError."""
    host: str = arguments.endpoint
    if not NAME.fullmatch(name):
        raise ConfigError(
            f'tunnel name "{name[:80]}" refused: expected 1 to 15 of A-Z a-z 0-9 _ -, beginning '
            "with a letter, as it names a network interface"
        )
    if not is_address(host) and not HOST.fullmatch(host):
        raise ConfigError(
            f'--endpoint "{host[:80]}" refused: expected a host name or an IP address, such '
            "as attic.example.org; a port is given with --port"
        )
    digest = hashlib.sha256(name.encode()).digest()
    # Not below 10.64: routers, containers and the car's own network use those more often.
    text = arguments.network or f"10.{64 + digest[0] % 128}.{digest[1]}.0/24"
    try:
        network = ipaddress.IPv4Network(text)
    except ValueError as fault:
        raise ConfigError(f"--network refused: {fault}: expected one like 10.99.3.0/24") from None
    if not network.is_private or not 8 <= network.prefixlen <= 29:
        raise ConfigError(
            f"--network {text} refused: expected 8 to 2^24 private addresses, like 10.99.3.0/24"
        )
    return Tunnel(name, host, arguments.port or port, network)


def is_address(host: str) -> bool:
    """Return whether the host is an IP address, which is never looked up again."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def ends_of(tunnel: Tunnel, names: Sequence[str], maker: str, mtu: int = 0) -> dict[str, str]:
    """Return the configuration of each end for wg-quick, with new keys.

    The first of `names` listens, the second one looks its name up again, further ones are phones.
    Without `mtu` wg-quick derives one. Raises ConfigError.
    """
    first, second, *phones = names
    keys = {end: output("wg", "genkey") for end in names}
    public = {end: output("wg", "pubkey", given=key) for end, key in keys.items()}
    addresses = dict(zip(keys, tunnel.network.hosts(), strict=False))
    texts = {}
    for end, key in keys.items():
        text = (
            f"{HEAD.format(name=tunnel.name, end=end, maker=maker)}[Interface]\n"
            f"PrivateKey = {key}\nAddress = {addresses[end]}/{tunnel.network.prefixlen}\n"
        )
        text += f"# Fits every line.\nMTU = {mtu}\n" if mtu else DERIVED_MTU
        if end == first:
            text += f"ListenPort = {tunnel.port}\n"
        if end == first and phones:
            text += f"# Pass packets between phone and {second}.\n"
            text += "PostUp = sysctl -q -w net.ipv4.conf.%i.forwarding=1\n"
        if end == second and not is_address(tunnel.endpoint):
            text += REFRESH.format(
                site=first, peer=public[first], host=tunnel.host, port=tunnel.port
            )
        for peer in [peer for peer in keys if end == first and peer != end] or [first]:
            allowed = f"{addresses[peer]}/32" if end == first or not phones else tunnel.network
            text += f"\n[Peer]\n# {peer}\nPublicKey = {public[peer]}\nAllowedIPs = {allowed}\n"
        if end != first:
            text += (
                f"Endpoint = {tunnel.host}:{tunnel.port}\n"
                f"# Keep the way through the router open for packets from the {first}.\n"
                "PersistentKeepalive = 25\n"
            )
        texts[end] = text
    return texts


def output(program: str, *options: str, given: str = "") -> str:
    """Return the output of a program. Raises ConfigError with the name of its package."""
    path = shutil.which(program, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
    if path is None:
        package = {"wg": "wireguard-tools"}.get(program, program)
        raise ConfigError(NOT_INSTALLED(program=program, command=f"sudo apt install {package}"))
    done = subprocess.run(
        [path, *options], input=given, capture_output=True, text=True, timeout=PROGRAM_S
    )
    if done.returncode:
        raise ConfigError(f"{program}: {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout.strip()


def folder_of(tunnel: Tunnel, arguments: argparse.Namespace) -> Path:
    """Return the folder to write. Raises ConfigError if it exists and is not to be replaced."""
    folder: Path = arguments.to / f"tunnel-{tunnel.name}"
    if os.path.lexists(folder) and not arguments.force:
        raise ConfigError(
            f"{folder} exists: choose another NAME or --to DIR, or replace it with --force; its "
            "keys then change, and both ends need their new files"
        )
    return folder


def write(folder: Path, name: str, ends: Mapping[str, str], force: bool) -> None:
    """Write all ends, or none: beside the folder first. Raises OSError."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as home:
        new = Path(home, "new")
        new.mkdir(mode=0o700)
        for end, text in ends.items():
            (new / end).mkdir(mode=0o700)
            files.write_whole(new / end / f"{name}.conf", [text.encode()])
        if not (force and folder.exists()):
            files.publish(new, folder)
            return
        for end in ends:
            (folder / end).mkdir(mode=0o700, exist_ok=True)
            os.replace(new / end / f"{name}.conf", folder / end / f"{name}.conf")


def qr(text: str) -> str:
    """Return a QR code for the terminal; without comments, so that it fits."""
    import segno  # imported here: other verbs do not need it

    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    picture = io.StringIO()
    if sys.stdout.encoding.lower().replace("-", "") != "utf8":
        return "   (this terminal has no UTF-8: use the phone's file)\n"
    segno.make("\n".join(lines)).terminal(picture, compact=True)
    return picture.getvalue()
