"""Verb `fpvstation tunnel`: writes the configuration of both ends of a tunnel to another site.

tunnel-NAME/site/NAME.conf       the other site: listens, has the first address
tunnel-NAME/station/NAME.conf    the station: connects, has the second address
tunnel-NAME/phone/NAME.conf      a phone, with WireGuard: the third address
"""

import argparse
import tempfile
from pathlib import Path

from fpvcar.config import wireguard
from fpvcar.http import certificates
from fpvcar.runtime.arguments import WIREGUARD_PORT, add_tunnel_options
from fpvstation.errors import StationError

PORTS = {"wireguard": WIREGUARD_PORT, "openvpn": 1194}
MAKER = "fpvstation tunnel"
CERTIFICATE_DAYS = 36500
"""The peers accept each other by fingerprint: a certificate's end would only cut the tunnel."""
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
PHONE = """\
4. Scan this with the WireGuard app of the phone; it then opens the station's page at
   https://{station}:8101/ (see `fpvstation passwd`):
{qr}"""


def add_options(verb: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    verb.add_argument("kind", choices=PORTS, help="wireguard, if there is no reason against it")
    verb.add_argument(
        "name", metavar="NAME", help="of the tunnel and its interface: up to 15 of A-Z a-z 0-9 _ -"
    )
    ports = ", ".join(f"{port} for {kind}" for kind, port in PORTS.items())
    add_tunnel_options(verb, "other site", ports)
    verb.add_argument(
        "--phone", action="store_true", help="add a phone, and show its end as a QR (wireguard)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the ends and print the next steps. Raises StationError, OSError."""
    tunnel = wireguard.tunnel_of(arguments.name, arguments, PORTS[arguments.kind])
    folder = wireguard.folder_of(tunnel, arguments)
    is_wireguard = arguments.kind == "wireguard"
    if arguments.phone and not is_wireguard:
        raise StationError("--phone refused with openvpn: use `fpvstation tunnel wireguard`")
    names = ["site", "station", *(["phone"] if arguments.phone else [])]
    ends = wireguard.ends_of(tunnel, names, MAKER) if is_wireguard else openvpn(tunnel)
    wireguard.write(folder, tunnel.name, ends, arguments.force)
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
        print(PHONE.format(qr=wireguard.qr(ends["phone"]), **values), end="")
    return 0


def openvpn(tunnel: wireguard.Tunnel) -> dict[str, str]:
    """Return the configuration of both ends, with new keys. Raises StationError."""
    shared = wireguard.output("openvpn", "--genkey", "secret", "/dev/stdout")
    is_four = wireguard.is_address(tunnel.endpoint) and ":" not in tunnel.endpoint
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
        texts[end] = wireguard.HEAD.format(name=tunnel.name, end=end, maker=MAKER) + OPENVPN.format(
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
