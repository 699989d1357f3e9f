"""A car behind its router, a server with an address, and a phone behind NAT: the three ends that
`fpvcar remote` writes, with wireguard-go where the kernel has no WireGuard."""

import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Playwright
from testkit.browsers.chromium import SHELL
from testkit.browsers.phone import on_the_lan, take_wheel
from testkit.browsers.seat import holds, opened, probe, stands, until
from testkit.harness import SMALL, RunningBench, started
from testkit.network import tunnel
from testkit.network.lan import Lan

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.alone,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
    pytest.mark.skipif(not os.path.exists("/dev/net/tun"), reason="no /dev/net/tun"),
    pytest.mark.skipif(
        not all(map(shutil.which, ("wg-quick", "wireguard-go"))), reason="not installed: WireGuard"
    ),
]


def run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)


@pytest.fixture(scope="module")
def behind_nat() -> Iterator[tuple[Lan, Lan]]:
    """The network of the server, and that of a phone: this host is the phone's router, translates
    its address, and accepts no packet of it for itself."""
    with Lan() as wan, Lan() as home:
        devices = (wan.near_device, home.near_device)
        for device in devices:
            run("sysctl", "-q", "-w", f"net.ipv4.conf.{device}.forwarding=1")
        run(*home.enter, "ip", "route", "add", wan.far, "via", home.near)
        table = f"nat{home.near_device}"
        run(
            "nft",
            f"table ip {table} {{\nchain out {{ type nat hook postrouting priority 100;\n"
            f"oifname {wan.near_device} ip saddr {home.far} masquerade\n}}\n"
            "chain in { type filter hook input priority 0;\n"
            f"iifname {home.near_device} drop\n}}\n}}",
        )
        yield wan, home
        run("nft", "delete", "table", "ip", table)


@pytest.fixture(scope="module")
def far_car(
    tmp_path_factory: pytest.TempPathFactory, behind_nat: tuple[Lan, Lan]
) -> Iterator[tuple[RunningBench, str]]:
    """A car with its tunnel up, and its address there."""
    wan, home = behind_nat
    made, address = tunnel.remote(wan, tmp_path_factory.mktemp("ends"), wan.far)
    ends = {"server": wan.enter, "car": tunnel.HERE, "phone": home.enter}
    with tunnel.wireguard(made, **ends):
        assert tunnel.reaches(address, home.enter)
        options = ("--host=0.0.0.0", f'--set=server.allowed_hosts = ["{address}"]', *SMALL)
        with started(tmp_path_factory.mktemp("far"), *options) as bench:
            yield bench, address


@pytest.fixture(scope="module")
def phone_browser(
    tmp_path_factory: pytest.TempPathFactory, behind_nat: tuple[Lan, Lan], playwright: Playwright
) -> Iterator[Browser]:
    home = tmp_path_factory.mktemp("bin")
    with on_the_lan(behind_nat[1], home, playwright=playwright, program=SHELL) as running:
        yield running


@pytest.fixture
def phone(phone_browser: Browser) -> Iterator[Page]:
    """A phone's page, not opened yet."""
    context = phone_browser.new_context(
        viewport={"width": 390, "height": 844},
        has_touch=True,
        is_mobile=True,
        ignore_https_errors=True,
    )
    yield context.new_page()
    context.close()


def test_phone_behind_nat_drives_through_the_tunnel(
    phone: Page, far_car: tuple[RunningBench, str], behind_nat: tuple[Lan, Lan], tmp_path: Path
) -> None:
    bench, address = far_car
    assert not tunnel.reaches(behind_nat[1].near, behind_nat[1].enter), "the car is near"
    opened(phone, f"https://{address}:{bench.port + 1}/")
    assert probe(phone, "video.path") == "webcodecs"
    assert not probe(phone, "state.may_drive"), "the code is needed, as at home"
    take_wheel(phone, bench)
    with bench.watch() as watch:
        holds(phone, watch, "ArrowUp")
        phone.keyboard.up("ArrowUp")
        stands(watch)
    phone.locator("#link-chip").click()
    until(phone, "document.querySelector('#link-says').innerText.endsWith(' · tunnel')")
    phone.screenshot(path=tmp_path / "far.png")


def test_certificate_names_the_cars_address_in_the_tunnel(
    far_car: tuple[RunningBench, str],
) -> None:
    bench, address = far_car
    trusting = ssl.create_default_context(cafile=str(bench.state / "root.crt"))
    with socket.create_connection((address, bench.port + 1), timeout=20.0) as link:
        trusting.wrap_socket(link, server_hostname=address).close()


def test_tunnel_by_ipv6_carries_packets_of_its_mtu_over_a_line_of_1280_bytes(
    lan: Lan, tmp_path: Path
) -> None:
    near, far = (f"fd00:79:{tunnel.number(lan):x}::{last}" for last in (1, 2))
    for enter, device, own in (
        ([], lan.near_device, near),
        (lan.enter, lan.near_device.replace("fpvn", "fpvf"), far),
    ):
        run(*enter, "ip", "addr", "add", f"{own}/64", "dev", device, "nodad")
        run(*enter, "ip", "link", "set", device, "mtu", "1280")
    made, address = tunnel.remote(lan, tmp_path, far, phones=0)
    with tunnel.wireguard(made, server=lan.enter, car=tunnel.HERE):
        assert tunnel.reaches(address, lan.enter)
        before = fragments(lan)
        probe_size(address, lan)
        assert fragments(lan) == before


def fragments(lan: Lan) -> int:
    """Return the number of IPv6 fragments that either host has made so far."""
    count = 0
    for enter in ([], lan.enter):
        text = subprocess.check_output([*enter, "cat", "/proc/net/snmp6"], text=True)
        count += int(re.findall(r"Ip6FragCreates\s+(\d+)", text)[0])
    return count


SEND = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=20) as link:
    link.sendall(bytes(200_000))
    link.shutdown(socket.SHUT_WR)
    assert link.recv(2) == b"ok"
"""


def probe_size(address: str, lan: Lan) -> None:
    """Send TCP segments of the largest size from the far host to the car."""
    with socket.create_server((address, 0)) as listener:
        port = str(listener.getsockname()[1])
        sender = subprocess.Popen([*lan.enter, sys.executable, "-c", SEND, address, port])
        near, _ = listener.accept()
        with near:
            while near.recv(1 << 16):
                pass
            near.sendall(b"ok")
        assert sender.wait(20.0) == 0
