"""Codes, wrong tries, Host and Origin."""

import socket
from pathlib import Path
from typing import Any

import pytest

from fpvcar.runtime.paths import OLD_NAMES
from fpvcar.server.auth import access
from fpvcar.server.auth.access import CodeCheck, Codes, Rights

CODES = Codes("123456", "abcd2345")


def test_new_codes_have_their_lengths_and_differ() -> None:
    made = [access.new_codes() for _ in range(50)]
    assert all(len(c.drive) == 6 and c.drive.isdigit() for c in made)
    assert all(len(c.grown_up) == 8 for c in made)
    assert len({c.grown_up for c in made}) == 50


@pytest.fixture
def codes() -> CodeCheck:
    return CodeCheck(CODES)


def test_code_gives_the_rights_of_its_kind(codes: CodeCheck) -> None:
    assert codes.unlock(" 123456 ", "a", 0.0) == Rights(drive=True, grown_up=False)
    assert codes.unlock("abcd2345", "a", 0.0) == Rights(drive=True, grown_up=True)
    assert codes.unlock("", "a", 0.0) is None
    assert codes.unlock("12345ä", "a", 0.0) is None
    assert codes.unlock("123456\udcff", "a", 0.0) is None, "no UTF-8 in a header"


def test_sixth_wrong_try_a_minute_per_address_waits(codes: CodeCheck) -> None:
    for second in range(5):
        assert codes.wait_s("000000", "a", second) == 0.0
        assert codes.unlock("000000", "a", second) is None
    assert codes.wait_s("000000", "a", 5.0) == 55.0
    assert codes.unlock("123456", "a", 5.0) is None, "no code is looked at meanwhile"
    assert codes.unlock("123456", "b", 5.0) is not None, "others are not shut out"
    assert codes.wait_s("000000", "a", 60.0) == 0.0
    assert codes.unlock("123456", "a", 60.0) is not None
    assert codes.wait_s("000000", "a", 60.0) == 0.0


def test_right_code_clears_the_wrong_tries(codes: CodeCheck) -> None:
    for code in ("000000", "123456", "000000"):
        for _ in range(access.TRIES - 1):
            codes.unlock(code, "a", 0.0)
    assert codes.wait_s("000000", "a", 0.0) == 0.0


def test_guesses_from_many_addresses_share_one_limit(codes: CodeCheck) -> None:
    assert codes.unlock("123456", "home", 0.0) is not None
    for number in range(access.TRIES_ALL):
        assert codes.wait_s("000000", f"10.0.0.{number}", 1.0) == 0.0
        codes.unlock("000000", f"10.0.0.{number}", 1.0)
    assert codes.wait_s("000000", "10.0.1.1", 2.0) == 59.0
    assert codes.unlock("123456", "10.0.1.1", 2.0) is None, "no code is looked at"
    assert codes.wait_s("000000", "home", 2.0) == 0.0, "who had a right code is not kept out"
    assert codes.unlock("abcd2345", "home", 2.0) is not None
    assert codes.wait_s("000000", "10.0.1.1", 61.0) == 0.0


def wait_after(tries: list[str]) -> CodeCheck:
    """Enter wrong codes within a second, each from another network."""
    codes = CodeCheck(CODES)
    for number, code in enumerate(tries):
        codes.unlock(code, f"10.{number >> 8}.{number & 255}.1", 1.0)
    return codes


def test_guesses_at_the_drive_code_do_not_keep_out_grown_ups() -> None:
    codes = wait_after(["000000"] * access.TRIES_ALL)
    assert codes.wait_s("123456", "new", 2.0) == 59.0
    assert codes.wait_s(" 123456\n", "new", 2.0) == 59.0, "spaces change no kind"
    assert codes.wait_s("abcd2345", "new", 2.0) == 0.0
    assert codes.unlock("abcd2345", "new", 2.0) == Rights(drive=True, grown_up=True)


def test_guesses_at_the_grown_ups_code_do_not_keep_out_drivers() -> None:
    codes = wait_after(["aaaaaaaa"] * access.TRIES_ALL_LONG)
    assert codes.wait_s("abcd2345", "new", 2.0) == 59.0
    assert codes.unlock("123456", "new", 2.0) == Rights(drive=True)


def test_wrong_invitations_keep_out_only_their_own_network() -> None:
    token = "0123456789abcdef" * 2
    codes = wait_after([token] * 3 * access.TRIES_ALL_LONG)
    for code in (token, "123456", "abcd2345"):
        assert codes.wait_s(code, "new", 2.0) == 0.0
    for _ in range(access.TRIES):
        codes.unlock(token, "new", 2.0)
    assert codes.wait_s(token, "new", 3.0) == 59.0


def test_known_networks_are_bounded(codes: CodeCheck) -> None:
    for number in range(2 * access.TRUSTED_MAX):
        assert codes.unlock("123456", f"10.0.0.{number}", 0.0) is not None
    assert len(codes._trusted) == access.TRUSTED_MAX


def test_ipv6_network_shares_one_limit_of_tries(codes: CodeCheck) -> None:
    for host in range(5):
        codes.unlock("000000", f"2001:db8::{host:x}", 0.0)
    assert codes.wait_s("000000", "2001:db8::99", 1.0) == 59.0
    assert codes.wait_s("000000", "2001:db8:0:1::99", 1.0) == 0.0
    assert codes.wait_s("000000", "::ffff:10.0.0.1", 1.0) == 0.0


def test_wrong_tries_are_forgotten_and_bounded(codes: CodeCheck) -> None:
    for number in range(3000):  # slowly, so that the rate limit does not apply
        codes.unlock("000000", f"10.0.{number >> 8}.{number & 255}", 4.0 * number)
    assert len(codes._wrong) == access.ADDRESSES_MAX
    assert codes.wait_s("000000", "10.0.11.180", 4.0 * 3000 + 61.0) == 0.0


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
    assert access.address_class(address) == where


def test_video_id_is_stable_and_hides_the_client() -> None:
    key, client = bytes(32), "0123456789abcdef0123456789abcdef"
    made = access.video_id(key, client)
    assert made == access.video_id(key, client) and len(made) == 32
    assert made != access.video_id(bytes([1]) * 32, client)
    assert made != access.video_id(key, made) and made != client


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
    assert access.is_loopback(address) is home


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
    assert access.host_allowed(host, "Plague", ["my.lan"]) is allowed


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
    assert access.origin_allowed(origin, host) is allowed


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
    assert access.lan_address() == address


def test_host_name_is_allowed_and_former_ones_until_the_reboot(tmp_path: Path) -> None:
    name = socket.gethostname()
    assert access.machine_names(tmp_path) == (name, f"{name}.local")
    (tmp_path / OLD_NAMES).write_text("raspberrypi rusty")
    names = access.machine_names(tmp_path)
    for host in (name, f"{name}.local:8080", "raspberrypi.local:8080", "RaspberryPi", "rusty"):
        assert access.host_allowed(host, "Dusty", names), host
    assert not access.host_allowed("raspberry.local", "Dusty", names)
