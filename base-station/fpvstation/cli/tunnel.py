"""Verb `fpvstation tunnel`: writes the configuration of both ends of a tunnel to another site.

tunnel-NAME/site/NAME.conf       the other site: listens, has the first address
tunnel-NAME/station/NAME.conf    the station: connects, has the second address
tunnel-NAME/phone/NAME.conf      a phone, with WireGuard: the third address
"""

import argparse
import hashlib
import io
import ipaddress
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from fpvcar.http import certificates
from fpvcar.runtime import files
from fpvcar.runtime.arguments import within
from fpvstation.errors import StationError, require

PORTS = {"wireguard": 51820, "openvpn": 1194}
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,14}", re.ASCII)
HOST = re.compile(r"(?=.{1,253}$)[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?", re.ASCII)
CERTIFICATE_DAYS = 36500
"""The peers accept each other by fingerprint: a certificate's end would only cut the tunnel."""
PROGRAM_S = 20.0
HEAD = """\
# Tunnel {name}: the end of the {end}, made by `fpvstation tunnel`. It has a secret key.
"""
OPENVPN = """\
# OpenVPN 2.6 or newer. {role}
{connection}
dev {name}
dev-type tun
topology subnet

# Each end accepts only the other's certificate, by its SHA-256: there is no authority to guard.
# tls-crypt drops the packets of strangers before TLS reads them.
tls-version-min 1.3
<peer-fingerprint>
{peer}
</peer-fingerprint>
<cert>
{certificate}
</cert>
<key>
{key}
</key>
<tls-crypt>
{shared}
</tls-crypt>

# OpenVPN handles each packet in user space: few large packets cost least.
# TCP: the kernel cuts the stream into packets; with UDP each one is a system call. On a link
# that loses packets WireGuard is faster: there TCP within TCP waits for two retransmissions.
# AES-256-GCM encrypts and authenticates in one pass, with the AES instructions of the CPU. A
# Raspberry Pi 4 or older has none: write CHACHA20-POLY1305 there, at both ends.
data-ciphers AES-256-GCM
# Packets of 9000 bytes instead of 1500: a sixth of the reads, encryptions and writes.
tun-mtu 9000
# Leave the segments of TCP connections inside at that size. The default shrinks them to fit a
# single packet of 1500 bytes.
mssfix 0
# Queue bursts of a fast sender. A full queue drops packets, and TCP inside slows down.
txqueuelen 15000
{tuning}"""
SERVER_TUNING = """\
# The same behind the tunnel: packets that wait for the connection (default: 64).
tcp-queue-limit 256
# Send at once instead of waiting for more data (Nagle): acknowledgements inside are small.
tcp-nodelay
"""
CLIENT_TUNING = """\
# Send at once instead of waiting for more data (Nagle): acknowledgements inside are small.
socket-flags TCP_NODELAY
"""
ONLY_FOUR = """\
# This listens for IPv6 and IPv4. On a machine without IPv6 write tcp4-server.
"""
STEPS = """\
{folder} has both ends of the tunnel {name}, with their keys: keep it private.

1. At the other site ({site} in the tunnel; its router must pass {protocol} port {port} to it),
   with {folder}/site/{name}.conf copied there:
     sudo apt install {package}
     sudo install -D -m 600 {name}.conf {site_path}
     sudo systemctl enable --now {site_unit}
2. On the station ({station} in the tunnel):
     sudo apt install {package}
     sudo install -D -m 600 {folder}/station/{name}.conf {station_path}
     sudo systemctl enable --now {station_unit}
     ping -c 3 {site}
3. Let the station copy there at night, in station.toml:
     [replicas]
     second = "{site}:/srv/drives"
     window = "22:00-06:00"
"""
REFRESH = """\
# WireGuard looks up the name of the site once, and makes a handshake every two minutes. Look it
# up again while the last one is older.
PostUp = while sleep 30; do at=$(wg show %i latest-handshakes | cut -f 2); [ "$at" ] || break; \
[ $(($(date +%s) - at)) -lt 150 ] || wg set %i peer {peer} endpoint {host}:{port}; \
done >/dev/null 2>&1 &
"""
PHONE = """\
4. Scan this with the WireGuard app of the phone; it then opens the station's page at
   https://{station}:8101/ (see `fpvstation passwd`):
{qr}"""


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


def add_options(verb: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    verb.add_argument("kind", choices=PORTS, help="wireguard, if there is no reason against it")
    verb.add_argument(
        "name", metavar="NAME", help="of the tunnel and its interface: up to 15 of A-Z a-z 0-9 _ -"
    )
    verb.add_argument(
        "--endpoint", required=True, metavar="HOST", help="name or address of the other site"
    )
    verb.add_argument(
        "--port",
        type=within(int, 1, 65535),
        help="port at the other site (default: "
        f"{', '.join(f'{port} for {kind}' for kind, port in PORTS.items())})",
    )
    verb.add_argument(
        "--network",
        metavar="NET",
        help="private addresses in the tunnel, like 10.99.3.0/24 (default: chosen by NAME)",
    )
    verb.add_argument(
        "--phone", action="store_true", help="add a phone, and show its end as a QR (wireguard)"
    )
    verb.add_argument(
        "--to",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="folder to write tunnel-NAME into (default: this one)",
    )
    verb.add_argument(
        "--force", action="store_true", help="replace an earlier configuration, with new keys"
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the ends and print the next steps. Raises StationError, OSError."""
    tunnel = tunnel_of(arguments)
    folder: Path = arguments.to / f"tunnel-{tunnel.name}"
    if os.path.lexists(folder) and not arguments.force:
        raise StationError(
            f"{folder} exists: choose another NAME or --to DIR, or replace it with --force; its "
            "keys then change, and both ends need their new files"
        )
    is_wireguard = arguments.kind == "wireguard"
    if arguments.phone and not is_wireguard:
        raise StationError("--phone refused with openvpn: use `fpvstation tunnel wireguard`")
    ends = wireguard(tunnel, arguments.phone) if is_wireguard else openvpn(tunnel)
    _write(folder, tunnel.name, ends, arguments.force)
    units = ["wg-quick"] * 2 if is_wireguard else ["openvpn-server", "openvpn-client"]
    paths = ["wireguard"] * 2 if is_wireguard else ["openvpn/server", "openvpn/client"]
    values = {
        **tunnel._asdict(),
        "site": tunnel.site,
        "station": tunnel.station,
        "folder": folder,
        "package": "wireguard-tools" if is_wireguard else "openvpn",
        "protocol": "UDP" if is_wireguard else "TCP",
    }
    for end, unit, path in zip(("site", "station"), units, paths, strict=True):
        values[f"{end}_unit"] = f"{unit}@{tunnel.name}"
        values[f"{end}_path"] = f"/etc/{path}/{tunnel.name}.conf"
    print(STEPS.format(**values), end="")
    if arguments.phone:
        print(PHONE.format(qr=_qr(ends["phone"]), **values), end="")
    return 0


def tunnel_of(arguments: argparse.Namespace) -> Tunnel:
    """Return the validated parameters. Raises StationError."""
    name, host = arguments.name, arguments.endpoint
    if not NAME.fullmatch(name):
        raise StationError(
            f'tunnel name "{name[:80]}" refused: expected 1 to 15 of A-Z a-z 0-9 _ -, beginning '
            "with a letter, as it names a network interface"
        )
    if not _is_address(host) and not HOST.fullmatch(host):
        raise StationError(
            f'--endpoint "{host[:80]}" refused: expected a host name or an IP address, such '
            "as attic.example.org; a port is given with --port"
        )
    digest = hashlib.sha256(name.encode()).digest()
    # Not below 10.64: routers, containers and the car's own network use those more often.
    text = arguments.network or f"10.{64 + digest[0] % 128}.{digest[1]}.0/24"
    try:
        network = ipaddress.IPv4Network(text)
    except ValueError as fault:
        raise StationError(f"--network refused: {fault}: expected one like 10.99.3.0/24") from None
    if not network.is_private or not 8 <= network.prefixlen <= 29:
        raise StationError(
            f"--network {text} refused: expected 8 to 2^24 private addresses, like 10.99.3.0/24"
        )
    return Tunnel(name, host, arguments.port or PORTS[arguments.kind], network)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def wireguard(tunnel: Tunnel, phone: bool) -> dict[str, str]:
    """Return the configuration of each end for wg-quick, with new keys. Raises StationError."""
    keys = {
        end: _output("wg", "genkey") for end in ("site", "station", *(["phone"] if phone else []))
    }
    addresses = dict(zip(keys, tunnel.network.hosts(), strict=False))
    texts = {}
    host = f"[{tunnel.endpoint}]" if ":" in tunnel.endpoint else tunnel.endpoint
    site = _output("wg", "pubkey", given=keys["site"])
    for end, key in keys.items():
        text = (
            f"{HEAD.format(name=tunnel.name, end=end)}[Interface]\n"
            f"PrivateKey = {key}\nAddress = {addresses[end]}/{tunnel.network.prefixlen}\n"
            "# No MTU: wg-quick derives it from the route to the endpoint. Packets that are too\n"
            "# large for the link are cut up, or lost.\n"
        )
        if end == "site":
            text += f"ListenPort = {tunnel.port}\n"
        if end == "site" and phone:
            text += "# Pass packets between phone and station.\n"
            text += "PostUp = sysctl -q -w net.ipv4.conf.%i.forwarding=1\n"
        if end == "station" and not _is_address(tunnel.endpoint):
            text += REFRESH.format(peer=site, host=host, port=tunnel.port)
        for peer in [peer for peer in keys if end == "site" and peer != end] or ["site"]:
            allowed = f"{addresses[peer]}/32" if end == "site" or not phone else tunnel.network
            text += (
                f"\n[Peer]\n# {peer}\nPublicKey = {_output('wg', 'pubkey', given=keys[peer])}\n"
                f"AllowedIPs = {allowed}\n"
            )
        if end != "site":
            text += (
                f"Endpoint = {host}:{tunnel.port}\n"
                "# Keep the way through the router open for packets from the site.\n"
                "PersistentKeepalive = 25\n"
            )
        texts[end] = text
    return texts


def openvpn(tunnel: Tunnel) -> dict[str, str]:
    """Return the configuration of both ends, with new keys. Raises StationError."""
    shared = _output("openvpn", "--genkey", "secret", "/dev/stdout")
    is_four = _is_address(tunnel.endpoint) and ":" not in tunnel.endpoint
    only = "" if is_four else ONLY_FOUR
    # A name may have addresses of both kinds, or change them.
    listens, dials = ("" if is_four else "6"), ("6" if ":" in tunnel.endpoint else "")
    made = {end: _certified(f"{tunnel.name}-{end}") for end in ("site", "station")}
    net = tunnel.network
    connections = {
        "site": f"server {net.network_address} {net.netmask}\n{only}"
        f"proto tcp{listens}-server\n"
        f"port {tunnel.port}\ndh none\nkeepalive 10 60",
        "station": f"client\nproto tcp{dials}-client\nremote {tunnel.endpoint} {tunnel.port}\n"
        "nobind",
    }
    roles = {"site": "This end listens.", "station": "This end connects."}
    texts = {}
    for end, peer in (("site", "station"), ("station", "site")):
        key, certificate = made[end]
        pin = certificates.fingerprint(made[peer][1].encode()).upper()
        texts[end] = HEAD.format(name=tunnel.name, end=end) + OPENVPN.format(
            name=tunnel.name,
            role=roles[end],
            connection=connections[end],
            peer=":".join(pin[at : at + 2] for at in range(0, len(pin), 2)),
            certificate=certificate.strip(),
            key=key.strip(),
            shared=shared,
            tuning=SERVER_TUNING if end == "site" else CLIENT_TUNING,
        )
    return texts


def _certified(name: str) -> tuple[str, str]:
    """Return a new key and its self-signed certificate. Raises StationError."""
    with tempfile.TemporaryDirectory() as folder:
        key, certificate = Path(folder, "key"), Path(folder, "certificate")
        try:
            certificates.make_pair(key, certificate, name, CERTIFICATE_DAYS)
        except RuntimeError as fault:
            raise StationError(f"{fault}: is openssl installed?") from None
        return key.read_text(), certificate.read_text()


def _output(program: str, *options: str, given: str = "") -> str:
    """Return the output of a program that makes keys. Raises StationError."""
    path = require(program, {"wg": "wireguard-tools"}.get(program, program))
    done = subprocess.run(
        [path, *options], input=given, capture_output=True, text=True, timeout=PROGRAM_S
    )
    if done.returncode:
        raise StationError(f"{program}: {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout.strip()


def _write(folder: Path, name: str, ends: Mapping[str, str], force: bool) -> None:
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


def _qr(text: str) -> str:
    """Return a QR code for the terminal; without comments, so that it fits."""
    import segno  # imported here: other verbs do not need it

    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    picture = io.StringIO()
    if sys.stdout.encoding.lower().replace("-", "") != "utf8":
        return "   (this terminal has no UTF-8: use the phone's file)\n"
    segno.make("\n".join(lines)).terminal(picture, compact=True)
    return picture.getvalue()
