"""Parsing of nmcli's output; no NetworkManager runs here."""

import asyncio
import os
from pathlib import Path

import pytest

from fpvcar.wifi import nmcli
from fpvcar.wifi.core import Link
from fpvcar.wifi.nmcli import NetworkManager, security_of, why
from fpvcar.wifi.radio import RadioFault
from fpvcar.wire.network import Network

NMCLI = """#!/bin/sh
printf '%s\\n' "$*" >>"$PLAYED/argv"
case "$*" in
*"connection edit"*) cat >"$PLAYED/edited" ;;
*"connection up"*) [ ! -e "$PLAYED/up" ] || { cat "$PLAYED/up" >&2; exit 4; } ;;
*"wifi list"*) cat "$PLAYED/list" ;;
*device*) cat "$PLAYED/device" ;;
esac
"""


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder with the answers of a stand-in for nmcli, and its recorded calls."""
    program = tmp_path / "nmcli"
    program.write_text(NMCLI)
    program.chmod(0o755)
    monkeypatch.setenv("PLAYED", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    (tmp_path / "device").write_text("wlan0:wifi:disconnected:\n")
    (tmp_path / "list").write_text("")
    return tmp_path


def device(played: Path, *lines: str) -> Link:
    (played / "device").write_text("\n".join(lines) + "\n")
    return asyncio.run(NetworkManager().link())


@pytest.mark.parametrize(
    ("words", "security"),
    [
        ("", "open"),
        ("--", "open"),
        ("OWE", "open"),
        ("WPA2", "key"),
        ("WPA1 WPA2", "key"),
        ("WPA2 WPA3", "key"),
        ("WPA3", "key"),
        ("WEP", "other"),
        ("WPA2 802.1X", "other"),
        ("WPA3-802.1X", "other"),
    ],
)
def test_security_words_tell_if_a_key_is_needed(words: str, security: str) -> None:
    assert security_of(words) == security


def test_device_state_gives_the_link(played: Path) -> None:
    lo = "lo:loopback:connected (externally):lo"
    assert device(played, lo).reason == nmcli.NO_RADIO
    assert device(played, lo, "wlan0:wifi:unmanaged:").reason == nmcli.NO_RADIO
    assert device(played, "wlan0:wifi:unavailable:").reason == nmcli.BLOCKED
    assert device(played, "wlan0:wifi:disconnected:") == Link("idle")
    assert device(played, "wlan0:wifi:connecting (prepare):Home") == Link("idle")
    assert device(played, "wlan0:wifi:connected:fpvcar-own") == Link("own")
    assert device(played, "wlan0:wifi:connected:Home 1") == Link("network", "Home 1")
    (played / "list").write_text("*:Home:80:WPA2\n :Other:70:WPA2\n")
    assert device(played, "wlan0:wifi:connected:preconfigured") == Link("network", "Home")


def test_networks_are_listed_once_strongest_first(played: Path) -> None:
    lines = (" :Weak:20:WPA2", " :Home:50:WPA2", " :Home:80:WPA2", " ::99:WPA2", " :Café:60:")
    (played / "list").write_text("\n".join(lines) + "\n")
    assert asyncio.run(NetworkManager().networks()) == [
        Network("Home", 80, "key"),
        Network("Café", 60, "open"),
        Network("Weak", 20, "key"),
    ]


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x0b", "\x1c"])
def test_network_name_with_line_separator_is_listed_whole(played: Path, separator: str) -> None:
    name = f"Coffee{separator}Shop"
    (played / "list").write_text(f" :{name}:90:WPA2\n :Home:80:WPA2\n")
    assert asyncio.run(NetworkManager().networks()) == [
        Network(name, 90, "key"),
        Network("Home", 80, "key"),
    ]


@pytest.mark.parametrize("name", ["a\nb", "\n", "a\r\nb", r"a\n*\:Fake\:99\:"])
def test_network_name_with_newline_hides_only_itself(played: Path, name: str) -> None:
    name = name.replace(r"\n", "\n")
    (played / "list").write_text(f" :{name}:90:WPA2\n*:Home:80:WPA2\n")
    assert device(played, "wlan0:wifi:connected:Home") == Link("network", "Home")
    assert asyncio.run(NetworkManager().networks()) == [Network("Home", 80, "key")]


def test_connection_name_with_newline_still_gives_the_state(played: Path) -> None:
    (played / "list").write_text("*:Home:80:WPA2\n")
    link = device(played, "eth0:ethernet:connected:Of\nfice", "wlan0:wifi:connected:x")
    assert link == Link("network", "Home")


@pytest.mark.parametrize(("anew", "rescan"), [(True, "yes"), (False, "no")])
def test_scan_happens_only_on_request(played: Path, anew: bool, rescan: str) -> None:
    asyncio.run(NetworkManager().networks(anew))
    argv = (played / "argv").read_text().splitlines()
    assert argv[-1].endswith(f" --rescan {rescan}")


def test_key_is_never_on_a_command_line(played: Path) -> None:
    radio, key = NetworkManager(), "home: sweet \\ home"
    asyncio.run(radio.join(Network("Home", 80, "key"), key))
    asyncio.run(radio.open("Rusty", "twelve chars"))
    argv = (played / "argv").read_text()
    assert "connection up" in argv and key not in argv and "twelve" not in argv
    assert "set 802-11-wireless-security.psk twelve chars\n" in ((played / "edited").read_text())


def test_wpa3_only_network_is_joined_with_sae(played: Path) -> None:
    (played / "list").write_text(" :Three:50:WPA3\n :Both:40:WPA2 WPA3\n")
    radio = NetworkManager()
    three, both = asyncio.run(radio.networks())
    asyncio.run(radio.join(three, "12345678"))
    assert "key-mgmt sae" in (played / "argv").read_text()
    (played / "argv").unlink()
    asyncio.run(radio.join(both, "12345678"))
    assert "key-mgmt wpa-psk" in (played / "argv").read_text()


@pytest.mark.parametrize(("ssid", "hidden"), [("Home", False), ("Attic", True)])
def test_network_that_no_scan_has_named_is_probed_for(
    ssid: str, hidden: bool, played: Path
) -> None:
    (played / "list").write_text(" ::70:WPA2\n :Home:60:WPA2\n")
    radio = NetworkManager()
    assert [network.ssid for network in asyncio.run(radio.networks())] == ["Home"]
    asyncio.run(radio.join(Network(ssid, 0, "key"), "12345678"))
    asked = "802-11-wireless.hidden yes" in (played / "argv").read_text()
    assert asked == hidden


def test_failed_join_deletes_its_connection(played: Path) -> None:
    (played / "up").write_text(
        "Error: Connection activation failed: Secrets were required, but not "
        "provided.\nHint: use 'journalctl ...'\n"
    )
    with pytest.raises(RadioFault, match="^wrong key$"):
        asyncio.run(NetworkManager().join(Network("Home", 80, "key"), "12345678"))
    asked = (played / "argv").read_text().splitlines()
    added = next(line for line in asked if "connection add" in line).split()
    name = added[added.index("con-name") + 1]
    assert asked[-1] == f"connection delete id {name}"


@pytest.mark.parametrize("ssid", ["x\0", "\ud83d"])
def test_ssid_that_no_argument_can_hold_fails_the_join_only(played: Path, ssid: str) -> None:
    with pytest.raises(RadioFault, match="null byte|encode"):
        asyncio.run(NetworkManager().join(Network(ssid, 80, "key"), "12345678"))


def test_unknown_nmcli_error_is_passed_on() -> None:
    assert str(why("Error: The moon is full.\nHint: wait\n")) == "The moon is full"
    assert str(why("")) == "nmcli printed no message"


def test_missing_network_manager_names_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    link = asyncio.run(NetworkManager().link())
    assert link.kind == "none" and "apt install network-manager" in str(link.reason)
    assert asyncio.run(NetworkManager().name()) == ""
