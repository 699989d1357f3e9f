"""fpvsites between a client and an internet in three network namespaces, with dnsmasq and nft."""

import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from testkit.network.ports import free_port
from testkit.network.sites import (
    DNS,
    GATEWAY,
    HTTPS,
    INSIDE,
    MAC,
    NO_SUCH_NAME,
    OTHER,
    REFUSED,
    SHARED,
    STRANGER,
    Network,
)

from fpvsites import state
from fpvsites.config import Config, Group

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root makes network namespaces"),
]
ROOT = Path(__file__).resolve().parents[2]
PASSWORD = "secret sites"
KEEP_S = 5
NETWORK = f'lan = "lan"\nupstream = ["{DNS}"]\nkeep_s = {KEEP_S}\n'
KIDS = f'clients = ["{MAC}"]\nsites = ["allowed.org", "google.com"]\n'


@pytest.fixture
def network() -> Iterator[Network]:
    """A gateway that enforces the rules for the group kids."""
    with Network() as made:
        (made.folder / "fpvsites.toml").write_text(NETWORK)
        made.group("kids", KIDS)
        made.start_gate()
        made.wait_for((made.state / "in_force.json").exists)
        done = apply(made)
        assert done.returncode == 0 and done.stdout == "kids: sites\n", done.stderr
        made.wait_for(lambda: made.ask("second.org")[0] == REFUSED)
        yield made


def apply(network: Network) -> subprocess.CompletedProcess[str]:
    return network.fpvsites("apply", "--config", str(network.folder))


def addresses(network: Network) -> str:
    return network.run("gateway", "nft", "list", "table", "inet", "fpvsites").stdout


def test_only_the_allowed_name_passes(network: Network) -> None:
    assert network.get(SHARED, "allowed.org") == "", "its address, before its name was resolved"
    assert network.visit("allowed.org") == "allowed.org"
    assert network.get(OTHER, "third.org") == "", "a bare address"
    for server in (GATEWAY, DNS, "8.8.8.8"):
        assert network.ask("second.org", server=server) == (REFUSED, [])
    assert network.ask("notallowed.org") == (REFUSED, [])
    # The limit that docs/sites.md states: one address has no names for a firewall.
    network.wait_for(lambda: network.visit("allowed.org") and network.get(SHARED, "second.org"))


def test_encrypted_dns_and_ipv6_do_not_pass(network: Network) -> None:
    assert network.visit("google.com") == "google.com"
    assert network.ask("dns.google.com") == (NO_SUCH_NAME, [])
    assert network.ask("use-application-dns.net") == (NO_SUCH_NAME, [])
    assert network.get(OTHER, "x", 443) == "x" and network.get(OTHER, "x", 853) == ""
    assert network.get(DNS, "x", 443) == "" and network.get(DNS, "x", 853) == ""
    assert network.ask("allowed.org", kind=28)[1] == []
    assert network.get("fd45::2", "x") == ""
    assert network.fpvsites("off").stdout == "off: all clients reach all sites\n"
    assert network.get("fd45::2", "x") == "x"


def test_hint_at_other_addresses_is_left_out(network: Network) -> None:
    """A browser that reads the hint would not get past the firewall."""
    assert network.ask("allowed.org", kind=HTTPS) == (0, [])
    assert network.fpvsites("off").returncode == 0
    network.wait_for(lambda: network.ask("allowed.org", kind=HTTPS, server=DNS) == (0, [""]))


def test_private_address_below_an_allowed_name_is_closed(network: Network) -> None:
    network.wait_for(lambda: network.visit("allowed.org") == "allowed.org")
    assert network.ask("inside.allowed.org") == (0, [INSIDE])
    assert network.get(INSIDE, "x") == ""
    assert network.fpvsites("off").returncode == 0
    network.wait_for(lambda: network.get(INSIDE, "x") == "x")


def test_address_closes_after_its_time(network: Network) -> None:
    assert network.visit("allowed.org") == "allowed.org"
    begin = time.monotonic()
    while network.get(SHARED, "x"):
        assert time.monotonic() < begin + KEEP_S + 4.0
    assert time.monotonic() > begin + KEEP_S - 1.0
    assert network.visit("allowed.org") == "allowed.org"


@pytest.mark.soak
@pytest.mark.long
def test_site_in_use_stays_open(network: Network) -> None:
    """Beyond keep_s, although a second answer does not extend an address's timeout."""
    keep_s = 30
    (network.folder / "fpvsites.toml").write_text(NETWORK.replace("= 5", f"= {keep_s}"))
    assert apply(network).returncode == 0
    network.wait_for(lambda: network.visit("allowed.org"))
    end = time.monotonic() + 3 * keep_s
    while time.monotonic() < end:
        assert network.visit("allowed.org") == "allowed.org"


def test_unlisted_client_and_other_groups_dns_are_closed(network: Network) -> None:
    network.group("guests", 'clients = ["02:00:00:00:53:07"]\nsites = ["third.org"]\n')
    assert apply(network).returncode == 0
    assert network.ask("third.org") == (REFUSED, [])
    network.wait_for(lambda: network.ask("allowed.org", own_port=40_000)[0] == 0)
    for port in (5301, 5302):
        assert network.ask("third.org", port=port) == (-1, [])
    assert network.run("client", "ip", "link", "set", "wifi", "address", STRANGER).returncode == 0
    assert network.ask("allowed.org") == (-1, []) and network.get(SHARED, "x") == ""
    network.folder.joinpath("fpvsites.toml").write_text(f'{NETWORK}others = "guests"\n')
    assert apply(network).returncode == 0
    network.wait_for(lambda: network.visit("third.org") == "third.org")
    assert network.ask("allowed.org") == (REFUSED, [])
    # The kernel redirects a known port as before: not to the server of another group.
    assert network.ask("allowed.org", own_port=40_000) == (-1, [])


def test_switch_undo_and_edges_by_the_kernel(network: Network) -> None:
    until = time.strftime("%H:%M", time.localtime(time.time() + 3600))
    if until < time.strftime("%H:%M"):
        until = "24:00"
    done = network.fpvsites("allow", "kids", "everything", "--until", until)
    assert done.returncode == 0 and done.stdout.startswith("kids: everything until "), done.stderr
    network.wait_for(lambda: network.visit("second.org") == "second.org")
    assert network.get(OTHER, "third.org") == "third.org"
    stream = network.start("client", sys.executable, "-S", "-c", STREAM, OTHER)
    network.wait_for(lambda: "ESTAB" in network.run("client", "ss", "-tn").stdout)
    assert network.fpvsites("undo").stdout == "kids: sites\n"
    network.wait_for(lambda: network.ask("second.org")[0] == REFUSED)
    assert network.get(OTHER, "third.org") == ""
    assert stream.wait(10) == 0, "an open connection is cut, too"
    assert network.fpvsites("undo").returncode == 1


STREAM = """
import socket, sys, time
link = socket.create_connection((sys.argv[1], 443), 5)
link.settimeout(2)
try:
    for _ in range(300):
        link.sendall(b"GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
        assert link.recv(1000)
        time.sleep(0.05)
except TimeoutError:
    sys.exit(0)
sys.exit(1)
"""


def test_dead_parts_leave_the_rules(network: Network) -> None:
    assert network.visit("allowed.org") == "allowed.org"
    servers = _children("dnsmasq", network)
    assert len(servers) == 1
    os.kill(servers[0], signal.SIGKILL)
    assert network.get(OTHER, "x") == "" and "sites_kids" in addresses(network)
    network.wait_for(lambda: network.visit("allowed.org") == "allowed.org")
    assert _children("dnsmasq", network) != servers
    gate = network._processes[-1]
    place = ["--state", str(network.state)]
    assert (
        network.run(
            "gateway",
            sys.executable,
            "-m",
            "fpvsites",
            "passwd",
            *place,
            FPVSITES_PASSWORD=PASSWORD,
        ).returncode
        == 0
    )
    page = network.start("gateway", sys.executable, "-m", "fpvsites", "page", *place)
    network.wait_for(lambda: ":8200" in network.run("gateway", "ss", "-tln").stdout)
    page.kill()
    page.wait()
    assert network.get(OTHER, "x") == "" and network.visit("allowed.org") == "allowed.org"
    gate.kill()
    gate.wait()
    network.wait_for(lambda: _children("dnsmasq", network) == [])
    assert network.get(OTHER, "x") == "" and network.get(SHARED, "x") == "x"
    network.start_gate()
    network.wait_for(lambda: network.visit("allowed.org") == "allowed.org")


def test_flushed_rules_come_back(network: Network) -> None:
    assert network.run("gateway", "nft", "flush", "ruleset").returncode == 0
    network.wait_for(lambda: network.get(OTHER, "x") == "")
    assert network.visit("allowed.org") == "allowed.org"


def _children(name: str, network: Network) -> list[int]:
    """Return the processes of a name below the network's gate."""
    gate = str(network._processes[-1].pid)
    done = subprocess.run(["pgrep", "-P", gate, name], capture_output=True, text=True)
    return [int(word) for word in done.stdout.split()]


def test_ctrl_c_ends_name_servers_and_keeps_rules(network: Network) -> None:
    gate = network._processes[-1]
    (server,) = _children("dnsmasq", network)
    gate.send_signal(signal.SIGINT)
    assert gate.wait(5) == 0 and not Path(f"/proc/{server}").exists()
    assert "sites_kids" in addresses(network)
    done = network.fpvsites("undo", "--dry-run")
    assert done.returncode == 1 and "nothing to undo" in done.stderr
    done = network.fpvsites("off")
    assert done.returncode == 1 and "sudo systemctl restart fpvsites" in done.stderr


def test_bad_input_changes_nothing(network: Network) -> None:
    saved, rules = (network.state / "changes.json").read_bytes(), addresses(network)
    network.group("kids", f'clients = ["{MAC}"]\nsites = ["*.allowed.org"]\n')
    done = apply(network)
    assert done.returncode == 1 and 'write "allowed.org"' in done.stderr
    for words in (["kid", "sites", "--until", "24:00"], ["kids", "nothing", "--until", "25:00"]):
        done = network.fpvsites("allow", *words)
        assert done.returncode == 1 and re.search("unknown|refused", done.stderr), done.stderr
    done = network.fpvsites("allow", "kids", "everything", "--until", "24:00", "--dry-run")
    assert done.returncode == 0 and "ct mark set" in done.stdout
    assert (network.state / "changes.json").read_bytes() == saved
    assert "meta time" not in addresses(network) and "meta time" not in rules


def test_no_visit_is_logged(network: Network, capfd: pytest.CaptureFixture[str]) -> None:
    assert network.visit("allowed.org") == "allowed.org"
    assert network.ask("second.org")[0] == REFUSED
    logged = "".join(capfd.readouterr())
    assert "second.org" not in logged and "query" not in logged
    assert "log" not in addresses(network)
    for file in network.state.iterdir():
        assert b"second.org" not in file.read_bytes()


def test_documented_commands_work(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FPVSITES_PASSWORD", "eight letters")
    page = (ROOT / "docs" / "sites.md").read_text(encoding="utf-8")
    files = {"fpvsites.toml": 'lan = "wlan0"', "groups/kids.toml": "clients = "}
    for name, begin in files.items():
        (text,) = re.findall(rf"^```text\n({re.escape(begin)}.*?)^```", page, re.M | re.S)
        (network.folder / name).write_text(text)
    commands = re.findall(r"^(?:    )?sudo (?:-u fpvsites )?fpvsites (.*)$", page, re.M)
    assert len(commands) == 8
    for command in commands:
        words = re.sub(r"\d\d:\d\d", "24:00", command).split()
        if words[0] == "apply":
            words += ["--config", str(network.folder)]
        done = network.fpvsites(*words)
        assert done.returncode == 0, f"{command}: {done.stderr}"


@pytest.fixture
def page(tmp_path: Path) -> Iterator[str]:
    """URL of a page whose rules no gate enforces."""
    port, environment = free_port(), {**os.environ, "FPVSITES_PASSWORD": PASSWORD}
    config = Config("lan", ("9.9.9.9",), groups={"kids": Group(sites=("allowed.org",))})
    with state.changing(tmp_path) as states:
        state.applied(config)(states, state.local_now())
    program = [sys.executable, "-m", "fpvsites"]
    place = ["--state", str(tmp_path)]
    subprocess.run([*program, "passwd", *place], check=True, env=environment)
    with subprocess.Popen(
        [*program, "page", *place, "--port", str(port)], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and b"The switches" in process.stdout.readline()
        try:
            yield f"http://localhost:{port}/"
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(5) == 130


def post(url: str, body: bytes = b"", **headers: str) -> int:
    """Return the status of a POST without a cookie."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, sent), timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as fault:
        return fault.code


def test_page_refuses_strangers_and_other_sites(page: str, tmp_path: Path) -> None:
    body, url = b'{"group":"kids","mode":"everything","until":"24:00"}', f"{page}api/sites/switch"
    saved = (tmp_path / state.CHANGES).read_bytes()
    assert post(url, body) == 401
    assert post(url, body, Origin=page.rstrip("/")) == 401
    assert post(url, body, Origin="http://evil.example") == 403
    assert post(url, body, Host="evil.example") == 403
    assert post(url, body, Sec_Fetch_Site="cross-site") == 403
    assert (tmp_path / state.CHANGES).read_bytes() == saved


def test_page_turns_a_switch_by_keyboard_on_a_phone(
    page: str, tmp_path: Path, browser: Browser
) -> None:
    with browser.new_page(viewport={"width": 390, "height": 844}) as phone:
        phone.goto(page)
        phone.focus("#kids-everything")
        phone.keyboard.press("Enter")
        phone.wait_for_selector("#code", state="visible")
        phone.fill("#code", PASSWORD)
        phone.keyboard.press("Enter")
        phone.wait_for_selector("#switches", state="visible")
        phone.fill("#until", "23:59")
        phone.focus("#kids-everything")
        phone.keyboard.press("Enter")
        phone.wait_for_selector("#undo", state="visible")
        assert "everything until 23:59" in phone.inner_text("#undo")
        assert phone.evaluate("document.activeElement.id") == "kids-everything"
        assert phone.evaluate("document.documentElement.scrollWidth") == 390
        assert state.load(tmp_path)[-1].switches["kids"].mode == "everything"
        phone.fill("#until", "00:00")
        phone.click("#kids-nothing")
        phone.wait_for_selector("#fault", state="visible")
        assert "expected a later time today" in phone.inner_text("#fault")
        phone.click("#undo")
        phone.wait_for_selector("#undo", state="hidden")
        assert len(state.load(tmp_path)) == 1
