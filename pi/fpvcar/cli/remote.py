"""Verb `fpvcar remote`: one WireGuard tunnel, through which phones reach the car from anywhere.

etc/wireguard/fpvcar.conf           the car: connects, looks the server's name up again
tunnel-fpvcar/server/fpvcar.conf    the server, such as the base station: listens
tunnel-fpvcar/phone/fpvcar.conf     a phone, also shown as a QR code

The car's page accepts the address in the tunnel, and its certificate has it: both take
`server.allowed_hosts` of the profile.
"""

import argparse
import json
import os
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path

from fpvcar.runtime.arguments import WIREGUARD_PORT, add_tunnel_options, within

NAME = "fpvcar"
"""Name of the tunnel, and of its interface."""
CONFIG = f"etc/wireguard/{NAME}.conf"
UNIT = f"wg-quick@{NAME}.service"
MAKER = "fpvcar remote"
HOSTS = "server.allowed_hosts"
HTTPS_PORT = 8081
CONNECTED_S = 180
"""WireGuard makes a new handshake after 120 s of traffic, and refuses keys older than this."""
START = (
    # Not --now: the unit waits for the server's name as long as the car has no network.
    ("enable", "--quiet", UNIT),
    ("restart", "--no-block", UNIT),
    ("try-restart", "fpvcar.service"),
)
STOP = (("disable", "--quiet", "--now", UNIT), ("try-restart", "fpvcar.service"))
"""Arguments of systemctl. The car's service reads the profile, and makes its certificate again."""
STEPS = """\
The car is {car} in the tunnel, by {path}.
{folder} has the other ends, with their keys: keep it private, and delete it after these steps.

1. On the server {endpoint} (the base station, or another computer of yours that is always on). Its
   router must pass UDP port {port} to it; with IPv6 its firewall must let that port in. With
   {folder}/server/{name}.conf copied there:
     sudo apt install wireguard-tools
     sudo install -D -m 600 {name}.conf /etc/wireguard/{name}.conf
     sudo systemctl enable --now wg-quick@{name}
2. Here, after some seconds:
     sudo fpvcar remote --status
"""
PHONE = """\
3. Scan this with the WireGuard app of the {phone}, switch the tunnel on, and open
   https://{car}:{https}/ (the same drive code as at home: sudo fpvcar code):
{qr}"""


def add_options(verb: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    verb.description = (
        f"{verb.description}. Makes the keys of the car, a server and phones, starts the car's "
        "end, writes the other ends into the folder tunnel-fpvcar, and prints the next steps and "
        "each phone's QR code. The server is your base station or any Linux computer with an "
        "address that phones reach; the car needs no open port. Example: sudo fpvcar remote "
        "--endpoint home.example.org. See docs/ways-out/remote.md."
    )
    modes = verb.add_mutually_exclusive_group()
    modes.add_argument(
        "--status", action="store_true", help="show the tunnel's state; exit status 1 if it is down"
    )
    modes.add_argument("--undo", action="store_true", help="stop and remove the car's end")
    add_tunnel_options(verb, "server", str(WIREGUARD_PORT), required=False)
    verb.add_argument(
        "--phones", type=within(int, 0, 9), default=1, metavar="N", help="phones (default: 1)"
    )
    verb.add_argument(
        "--root", type=Path, default=Path("/"), metavar="DIR", help="root of a card to set up"
    )


def main(arguments: argparse.Namespace) -> int:
    """Run the verb. Raises ConfigError, OSError."""
    from fpvcar.config import ConfigError

    root: Path = arguments.root
    if os.geteuid() != 0 and root == Path("/"):
        raise ConfigError("remote needs root: sudo fpvcar remote")
    if arguments.status:
        return status(root)
    if arguments.undo:
        undo(root)
    elif arguments.endpoint is None:
        raise ConfigError(
            "--endpoint is missing: give the name or address by which car and phone reach the "
            "server, as in --endpoint home.example.org"
        )
    else:
        set_up(arguments, root)
    return 0


def set_up(arguments: argparse.Namespace, root: Path) -> None:
    """Write all ends, start the car's, and print the next steps. Raises ConfigError, OSError."""
    from fpvcar.config import ConfigError, wireguard
    from fpvcar.runtime import files

    path = root / CONFIG
    if os.path.lexists(path) and not arguments.force:
        raise ConfigError(
            f"{path} exists: see --status, or replace it with --force; its keys then change, and "
            "server and phones need their new files"
        )
    tunnel = wireguard.tunnel_of(NAME, arguments)
    folder = wireguard.folder_of(tunnel, arguments)
    phones = [f"phone{number if number > 1 else ''}" for number in range(1, arguments.phones + 1)]
    names = ["server", "car", *phones]
    if len(names) > tunnel.network.num_addresses - 2:
        raise ConfigError(f"--network {tunnel.network} has no room for {len(phones)} phones")
    profile = _with_host(root, tunnel.station, _car_of(path))
    ends = wireguard.ends_of(tunnel, names, MAKER, wireguard.LEAST_MTU)
    own = ends.pop("car")
    wireguard.write(folder, NAME, ends, arguments.force)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    files.write_whole(path, [own.encode()])
    _save(root, profile)
    _carry_out(START, root)
    values = {"car": tunnel.station, "path": path, "folder": folder, "name": NAME}
    print(STEPS.format(endpoint=tunnel.endpoint, port=tunnel.port, **values), end="")
    for phone in phones:
        code = wireguard.qr(ends[phone])
        print(PHONE.format(phone=phone, qr=code, https=HTTPS_PORT, **values), end="")


def undo(root: Path) -> None:
    """Stop and remove the car's end. Raises ConfigError, OSError."""
    from fpvcar.config import ConfigError
    from fpvcar.config.raspberry_pi_os import PROFILE

    path = root / CONFIG
    address = _car_of(path)
    if not address:
        raise ConfigError(f"{path}: no tunnel of `{MAKER}`; nothing is changed")
    if (root / PROFILE).exists():
        _save(root, _with_host(root, "", address))
    _carry_out(STOP, root)
    path.unlink()
    print(f"The car's end is removed. On the server: sudo systemctl disable --now wg-quick@{NAME}")


def status(root: Path) -> int:
    """Print the tunnel's state; return 1 if it is down. Raises ConfigError."""
    from fpvcar.config import ConfigError, wireguard

    address = _car_of(root / CONFIG)
    if not address:
        raise ConfigError("no tunnel yet: sudo fpvcar remote --endpoint HOST")
    print(f"The car is {address} in the tunnel: https://{address}:{HTTPS_PORT}/")
    try:
        dump = wireguard.output("wg", "show", NAME, "dump")
    except ConfigError as fault:
        print(f"The tunnel is down ({fault}): see systemctl status {UNIT}")
        return 1
    text, is_up = state_of(dump, time.time())
    print(text)
    return 0 if is_up else 1


def state_of(dump: str, utc_s: float) -> tuple[str, bool]:
    """Return the state of the server's peer for a terminal, and whether it is connected.

    `dump` is the output of `wg show INTERFACE dump` (wg(8)): tab-separated, a line per peer behind
    the interface's own, with endpoint, time of the last handshake (0: none), and bytes.
    """
    _, _, endpoint, _, handshake, received, sent, _ = dump.splitlines()[1].split("\t")
    age_s = utc_s - int(handshake)
    moved = f"{int(received) / 1e6:.1f} MB received, {int(sent) / 1e6:.1f} MB sent"
    if age_s < CONNECTED_S:
        return f"Connected to {endpoint}; last handshake {age_s:.0f} s ago; {moved}", True
    last = f"for {age_s:.0f} s" if int(handshake) else "yet"
    return (
        f"No handshake with {endpoint} {last}; {moved}. Check that the server runs, that its "
        "router passes the UDP port to it, and that its name has the right address."
    ), False


def _car_of(path: Path) -> str:
    """Return the car's address in the tunnel, "" without a tunnel of ours."""
    text = path.read_text() if path.exists() else ""
    if f"made by `{MAKER}`" not in text:
        return ""
    return text.partition("\nAddress = ")[2].partition("/")[0]


def _with_host(root: Path, added: str, removed: str) -> str:
    """Return the car's profile with other allowed hosts. Raises ConfigError without a profile."""
    from fpvcar.calibration.export import with_key
    from fpvcar.config import ConfigError, profiles
    from fpvcar.config.raspberry_pi_os import PROFILE

    path = root / PROFILE
    if not path.exists():
        raise ConfigError(f"{path} is missing: set up the car first, by sudo fpvcar setup")
    hosts = [host for host in profiles.load(path).server.allowed_hosts if host != removed]
    new = list(dict.fromkeys([*hosts, *filter(None, [added])]))
    toml = with_key(path.read_text(encoding="utf-8"), HOSTS, json.dumps(new))
    try:
        is_right = tomllib.loads(toml)["server"]["allowed_hosts"] == new
    except tomllib.TOMLDecodeError:
        is_right = False
    if not is_right:
        raise ConfigError(f"{path}: cannot change {HOSTS}; write {HOSTS} = {json.dumps(new)} there")
    return toml


def _save(root: Path, profile: str) -> None:
    from fpvcar.cli import setup
    from fpvcar.config.raspberry_pi_os import PROFILE

    setup.write([(root / PROFILE, profile)])


def _carry_out(commands: Sequence[Sequence[str]], root: Path) -> None:
    """Run systemctl if `root` is the running system; print a command that failed."""
    from fpvcar.cli import setup

    for words in commands if root == Path("/") else ():
        if not setup.run("systemctl", *words):
            print(f"  failed: sudo systemctl {' '.join(words)}")
