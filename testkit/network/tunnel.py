"""Tunnels between hosts of a Lan, by the configuration that `fpvstation tunnel` or
`fpvcar remote` writes.

Needs root. The kernel need not have WireGuard: wg-quick then starts wireguard-go.
"""

import ipaddress
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from fpvcar.__main__ import main as car_main
from fpvcar.cli.remote import CONFIG as CAR_CONFIG
from fpvstation.__main__ import main
from testkit.network.lan import Lan

UP_S = 30.0
USERSPACE = os.environ.get("WG_QUICK_USERSPACE_IMPLEMENTATION", "wireguard-go")
"""Program that wg-quick starts where the kernel has no WireGuard."""
HERE: tuple[str, ...] = ()
"""Prefix of a command on this host."""


def written(kind: str, lan: Lan, folder: Path, *more: str, endpoint: str = "") -> Path:
    """Write the ends of a tunnel to the far host; return the folder. The tunnel has the Lan's
    number in its name, so that no two share an interface."""
    name = lan.near_device.replace("fpvn", "fpvt")
    argv = ["tunnel", kind, name, "--endpoint", endpoint or lan.far, "--to", str(folder)]
    assert main([*argv, *more]) == 0
    return folder / f"tunnel-{name}"


def number(lan: Lan) -> int:
    """Return a number that no two Lans share."""
    return int(lan.near_device.removeprefix("fpvn"))


def remote(lan: Lan, home: Path, endpoint: str, phones: int = 1) -> tuple[Path, str]:
    """Run `fpvcar remote`; return the folder with all ends, and the car's address.

    Interface and addresses have the Lan's number, so that no two share one.
    """
    card = home / "card"
    assert car_main(["setup", "--root", str(card), "--board=l298n", "--name=Rusty"]) == 0
    options = ["--root", str(card), "--to", str(home), "--phones", str(phones)]
    net = ipaddress.IPv4Network((int(ipaddress.IPv4Address("10.96.0.0")) + 8 * number(lan), 29))
    assert car_main(["remote", *options, "--endpoint", endpoint, "--network", str(net)]) == 0
    made = home / "tunnel-fpvcar"
    (made / "car").mkdir()
    (card / CAR_CONFIG).rename(made / "car" / "fpvcar.conf")
    for path in made.glob("*/fpvcar.conf"):
        path.rename(path.with_name(f"{lan.near_device.replace('fpvn', 'fpvt')}.conf"))
    return made, str(net[2])


def config_of(tunnel: Path, end: str) -> Path:
    return next((tunnel / end).glob("*.conf"))


def address(tunnel: Path, end: str) -> str:
    """Return the address of an end in the tunnel."""
    text = config_of(tunnel, "site").read_text()
    net = re.search(r"server (\S+\.)0 |Address = (\S+\.)1/", text)
    assert net
    return f"{net[1] or net[2]}{('site', 'station', 'phone').index(end) + 1}"


@contextmanager
def openvpn(tunnel: Path, lan: Lan) -> Iterator[Sequence[int]]:
    """Run OpenVPN: the site on the far host, the station here. Yield their process ids."""
    with ExitStack() as stack:
        pids = []
        for end, enter in (("site", lan.enter), ("station", HERE)):
            path = tunnel / f"{end}.log"
            log = stack.enter_context(path.open("wb"))
            argv = [
                "setpriv",
                "--pdeathsig=KILL",
                "openvpn",
                "--config",
                str(config_of(tunnel, end)),
            ]
            process = subprocess.Popen([*enter, *argv], stdout=log, stderr=log)
            stack.callback(process.wait, 10.0)
            stack.callback(process.terminate)
            pids.append(process.pid)
            limit_s = time.monotonic() + UP_S
            while "Initialization Sequence Completed" not in (text := path.read_text()):
                if process.poll() is not None or time.monotonic() > limit_s:
                    raise AssertionError(text)
                time.sleep(0.05)
        yield pids


@contextmanager
def wireguard(tunnel: Path, **hosts: Sequence[str]) -> Iterator[None]:
    """Run WireGuard with an end on each host: prefix of its commands by the name of the end."""
    with ExitStack() as stack:
        for end, enter in hosts.items():
            config = config_of(tunnel, end)
            # All ends have one name here, and so would their sockets.
            alone = "mkdir -p /run/wireguard; mount -t tmpfs none /run/wireguard; "
            if (names := tunnel / "hosts").exists():
                alone += f"mount --bind '{names}' /etc/hosts; "
            words = [
                "unshare",
                "--mount",
                "sh",
                "-c",
                f'{alone} exec wg-quick up "$0"',
                str(config),
            ]
            remove = [*enter, "ip", "link", "del", config.stem]
            stack.callback(subprocess.run, remove, capture_output=True)
            done = subprocess.run([*enter, *words], capture_output=True, text=True, timeout=UP_S)
            assert done.returncode == 0, done.stdout + done.stderr
        yield


REACH = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], 9), timeout=1.0)
except ConnectionRefusedError:
    pass
"""


def reaches(address: str, enter: Sequence[str] = HERE) -> bool:
    """Return whether a host answers within some seconds: it refuses a port."""
    probe = [*enter, sys.executable, "-c", REACH, address]
    return any(subprocess.run(probe, capture_output=True).returncode == 0 for _ in range(8))
