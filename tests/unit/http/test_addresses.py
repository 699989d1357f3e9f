"""Addresses, and the headers Host and Origin."""

import socket
from pathlib import Path
from typing import Any

import pytest

from fpvcar.http import addresses
from fpvcar.runtime.paths import OLD_NAMES


@pytest.mark.parametrize(
    ("address", "where"),
    [
        ("127.0.0.1", "this computer"),
        ("192.168.1.7", "home network"),
        ("::ffff:10.0.0.1", "home network"),
        ("fe80::1%wlan0", "home network"),
        ("8.8.8.8", "elsewhere"),
        ("2606:4700::1111", "elsewhere"),
        ("", "elsewhere"),
    ],
)
def test_address_class_is_told_in_words(address: str, where: str) -> None:
    assert addresses.address_class(address) == where


@pytest.mark.parametrize(
    ("address", "home"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("localhost", True),
        ("10.0.0.2", False),
        ("::ffff:10.0.0.2", False),
        ("fe80::1%wlan0", False),
        ("", False),
        ("car", False),
    ],
)
def test_loopback_addresses_are_recognised(address: str, home: bool) -> None:
    assert addresses.is_loopback(address) is home


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("localhost:8080", True),
        ("127.0.0.1", True),
        ("[::1]:8080", True),
        ("192.168.1.7:8080", True),
        ("Plague", True),
        ("plague.local:8080", True),
        ("my.lan", True),
        ("evil.example", False),
        ("localhost.evil.example", False),
        ("", False),
        (None, False),
        ("[::1", False),
        ("evil[::1]", False),
        ("localhost:8080@evil.example", False),
        ("127.0.0.1/evil", False),
    ],
)
def test_host_header_is_checked_against_rebinding(host: str | None, allowed: bool) -> None:
    assert addresses.host_allowed(host, "Plague", ["my.lan"]) is allowed


@pytest.mark.parametrize(
    ("origin", "host", "allowed"),
    [
        (None, "localhost:8080", True),
        ("http://localhost:8080", "localhost:8080", True),
        ("https://LOCALHOST:8081", "localhost:8081", True),
        ("http://localhost:9090", "localhost:8080", False),
        ("http://evil.example", "localhost:8080", False),
        ("null", "localhost:8080", False),
        ("ftp://localhost:8080", "localhost:8080", False),
        ("file://", "localhost:8080", False),
        ("http://[::1", "localhost:8080", False),
        ("http://localhost", None, False),
        ("http://none", None, False),
        ("http://", "", False),
    ],
)
def test_origin_must_be_the_page_itself(
    origin: str | None, host: str | None, allowed: bool
) -> None:
    assert addresses.origin_allowed(origin, host) is allowed


def test_page_may_be_at_the_host_of_a_proxy() -> None:
    allowed = addresses.origin_allowed
    assert allowed("https://my.lan", "127.0.0.1:8080", "my.lan")
    assert allowed("http://127.0.0.1:8080", "127.0.0.1:8080", None)
    assert not allowed("https://my.lan", "127.0.0.1:8080", None)
    assert not allowed("https://my.lan:8123", "127.0.0.1:8080", "my.lan")


@pytest.mark.parametrize(
    ("remote", "host", "outer"),
    [
        ("127.0.0.1", "my.lan", "my.lan"),
        ("::1", "my.lan:8443", "my.lan:8443"),
        ("10.0.0.9", "my.lan", None),
        ("127.0.0.1", "evil.example", None),
        ("127.0.0.1", "my.lan, evil.example", None),
        ("127.0.0.1", None, None),
        (None, "my.lan", None),
    ],
)
def test_host_of_a_proxy_is_believed_on_this_machine(
    remote: str | None, host: str | None, outer: str | None
) -> None:
    headers = {"X-Forwarded-Host": host} if host else {}
    assert addresses.outer_host(remote, headers, "Plague", ["my.lan"]) == outer


class Routed(socket.socket):
    """Probe that the routing table sends out of the LAN's own address."""

    def connect(self, address: Any, /) -> None:
        assert address == ("192.0.2.1", 9)

    def getsockname(self) -> tuple[str, int]:
        return "10.0.0.7", 4711


class Unrouted(Routed):
    """Probe on a machine without a network."""

    def connect(self, address: Any, /) -> None:
        raise OSError("Network is unreachable")


@pytest.mark.parametrize(("probe", "address"), [(Routed, "10.0.0.7"), (Unrouted, "127.0.0.1")])
def test_lan_address_comes_from_the_routing_table(
    probe: type[Routed], address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "socket", probe)
    assert addresses.lan_address() == address


def test_host_name_is_allowed_and_former_ones_until_the_reboot(tmp_path: Path) -> None:
    name = socket.gethostname()
    assert addresses.machine_names(tmp_path) == (name, f"{name}.local")
    (tmp_path / OLD_NAMES).write_text("raspberrypi rusty")
    names = addresses.machine_names(tmp_path)
    for host in (name, f"{name}.local:8080", "raspberrypi.local:8080", "RaspberryPi", "rusty"):
        assert addresses.host_allowed(host, "Dusty", names), host
    assert not addresses.host_allowed("raspberry.local", "Dusty", names)


@pytest.mark.parametrize(
    ("host", "where"),
    [
        ("0.0.0.0", "localhost"),
        ("::", "localhost"),
        ("127.0.0.1", "localhost"),
        ("192.168.1.7", "192.168.1.7"),
        ("::1", "::1"),
    ],
)
def test_reachable_names_the_listening_address(host: str, where: str) -> None:
    assert addresses.reachable(host) == where


def test_ipv6_address_stands_in_brackets_in_a_url() -> None:
    assert (
        addresses.in_url("::1") == "[::1]"
        and addresses.in_url("fe80::1%eth0") == "[fe80::1%25eth0]"
    )
    assert addresses.in_url("10.0.0.1") == "10.0.0.1"


@pytest.mark.parametrize(
    ("name", "by_another"),
    [
        ("rusty-2.local", True),
        ("Rusty-17.local", True),
        ("raspberrypi.local", False),
        ("rusty-old.local", False),
        ("rusty2.local", False),
    ],
)
def test_numbered_name_is_taken_and_other_name_is_not(name: str, by_another: bool) -> None:
    assert addresses.taken("rusty.local", name) is by_another


def test_way_is_told_by_the_address_and_a_proxys_headers() -> None:
    far = ("rusty.example.org", "10.99.3.2")
    assert addresses.way_of("192.168.1.5", far, {}) == "near"
    assert addresses.way_of("10.99.3.2", far, {}) == "tunnel"
    assert addresses.way_of("::ffff:10.99.3.2", far, {}) == "tunnel"
    assert addresses.way_of("10.99.3.2", far, {"X-Forwarded-For": "203.0.113.9"}) == "proxy"


@pytest.mark.parametrize(
    ("remote", "headers", "here"),
    [
        ("127.0.0.1", {"Host": "localhost:8080"}, True),
        ("::1", {"Host": "[::1]:8080"}, True),
        ("127.0.1.1", {"Host": "rusty"}, True),
        ("127.0.0.1", {"Host": "rusty.local:8080"}, True),
        ("10.0.0.7", {"Host": "localhost:8080"}, False),
        (None, {"Host": "localhost:8080"}, False),
        # Caddy, Tailscale: the browser's Host and headers of their own; nginx without either.
        ("127.0.0.1", {"Host": "car.example.org", "X-Forwarded-For": "203.0.113.9"}, False),
        ("127.0.0.1", {"Host": "localhost:8080", "X-Forwarded-For": "203.0.113.9"}, False),
        ("127.0.0.1", {"Host": "car.example.org"}, False),
        ("127.0.0.1", {"Host": "10.99.3.2:8080"}, False),
        ("127.0.0.1", {"Host": "localhost", "Forwarded": "for=203.0.113.9"}, False),
    ],
)
def test_client_behind_a_proxy_on_this_machine_is_not_here(
    remote: str | None, headers: dict[str, str], here: bool
) -> None:
    assert addresses.asks_here(remote, headers) is here


@pytest.mark.parametrize(
    ("host", "may"),
    [
        ("10.99.3.2", True),
        ("car.example.org", True),
        ("x" * 63 + ".org", True),
        ("x" * 64 + ".org", False),
        (".".join(["x" * 62] * 4), True),
        (".".join(["x" * 63] * 4), False),
        ("fd00::2", False),
        ("car..org", False),
        ("", False),
        ("a b", False),
        ("käfer.org", False),
    ],
)
def test_certificate_names_labels_of_dns_only(host: str, may: bool) -> None:
    assert addresses.certifiable(host) is may
