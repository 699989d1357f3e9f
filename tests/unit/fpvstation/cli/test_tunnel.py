"""Verb `tunnel`: files, keys and refusals. tests/rdma/test_tunnel.py runs the tunnels."""

import io
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import segno

from fpvstation.__main__ import main

WIREGUARD = ["tunnel", "wireguard", "attic", "--endpoint", "attic.example.org"]
OPENVPN = ["tunnel", "openvpn", "attic", "--endpoint", "attic.example.org"]

needs_wg = pytest.mark.skipif(not shutil.which("wg"), reason="not installed: wireguard-tools")
needs_openvpn = pytest.mark.skipif(
    not shutil.which("openvpn", path="/usr/sbin:/usr/bin"), reason="not installed: openvpn"
)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def values(text: str, key: str) -> list[str]:
    return re.findall(rf"^{key} = (.*)$", text, re.M)


def config(end: str) -> str:
    return Path("tunnel-attic", end, "attic.conf").read_text()


@needs_wg
def test_wireguard_ends_have_keys_of_their_own_and_know_each_other(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(WIREGUARD) == 0
    site, station = config("site"), config("station")
    for own, peer in ((site, station), (station, site)):
        public = subprocess.run(
            ["wg", "pubkey"], input=values(own, "PrivateKey")[0], capture_output=True, text=True
        )
        assert values(peer, "PublicKey") == [public.stdout.strip()]
    assert values(station, "Endpoint") == ["attic.example.org:51820"]
    assert values(site, "ListenPort") == ["51820"] and not values(site, "Endpoint")
    assert values(site, "AllowedIPs") == [values(station, "Address")[0].replace("/24", "/32")]
    steps = capsys.readouterr().out
    assert "systemctl enable --now wg-quick@attic" in steps
    assert f'second = "{values(site, "Address")[0].removesuffix("/24")}:/srv/drives"' in steps
    assert values(site, "PrivateKey")[0] not in steps


@needs_openvpn
def test_openvpn_ends_pin_each_other_and_explain_each_setting(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(OPENVPN) == 0
    site, station = config("site"), config("station")
    for own, peer in ((site, station), (station, site)):
        digest = subprocess.run(
            ["openssl", "x509", "-noout", "-fingerprint", "-sha256"],
            input=own[own.index("-----BEGIN CERT") :],
            capture_output=True,
            text=True,
        )
        assert digest.stdout.strip().rpartition("=")[2] in peer
    common = "proto mssfix tun-mtu txqueuelen data-ciphers tls-version-min".split()
    for text, more in ((site, ["tcp-queue-limit", "tcp-nodelay"]), (station, ["socket-flags"])):
        for setting in [*common[1:], *more]:
            assert re.search(rf"^#.*\n{setting} ?", text, re.M), setting
    assert "\nremote attic.example.org 1194\n" in station and "\nport 1194\n" in site
    steps = capsys.readouterr().out
    for unit in ("openvpn-server@attic", "openvpn-client@attic"):
        assert f"systemctl enable --now {unit}" in steps


@needs_wg
def test_keys_are_readable_by_the_owner_only_and_stay_until_forced(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = here / "tunnel-attic"
    assert main(WIREGUARD) == 0
    modes = {path.stat().st_mode & 0o777 for path in folder.rglob("*.conf")}
    folders = {path.stat().st_mode & 0o777 for path in (folder, *folder.glob("*/"))}
    assert (modes, folders) == ({0o600}, {0o700})
    first = config("site")
    assert main(WIREGUARD) == 1
    refusal = capsys.readouterr().err
    assert "tunnel-attic exists" in refusal and "--force" in refusal
    assert config("site") == first
    (folder / "notes").write_text("mine")
    assert main([*WIREGUARD, "--force"]) == 0
    assert values(config("site"), "PrivateKey") != values(first, "PrivateKey")
    assert (folder / "notes").read_text() == "mine"
    assert [path.name for path in here.iterdir()] == ["tunnel-attic"]


@needs_wg
def test_full_disk_leaves_no_half_of_a_tunnel(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = list[Path]()

    def write_once(path: Path, pieces: list[bytes]) -> int:
        if written:
            raise OSError(28, "No space left on device")
        written.append(path)
        return path.write_bytes(b"".join(pieces))

    monkeypatch.setattr("fpvcar.runtime.files.write_whole", write_once)
    assert main(WIREGUARD) == 1
    assert written and list(here.iterdir()) == []


@needs_wg
def test_phone_gets_its_end_as_a_qr(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*WIREGUARD, "--phone"]) == 0
    lines = [line for line in config("phone").splitlines() if line and line[0] != "#"]
    picture = io.StringIO()
    segno.make("\n".join(lines)).terminal(picture, compact=True)
    assert picture.getvalue() in capsys.readouterr().out
    assert len(values(config("site"), "PublicKey")) == 2
    assert "forwarding=1" in config("site") and "forwarding" not in config("station")


@needs_wg
@pytest.mark.parametrize(
    ("endpoint", "refreshed"), [("attic.example.org", True), ("192.0.2.7", False), ("::7", False)]
)
def test_station_looks_up_a_name_again(here: Path, endpoint: str, refreshed: bool) -> None:
    assert main(["tunnel", "wireguard", "attic", "--phone", "--endpoint", endpoint]) == 0
    (*hooks,) = values(config("station"), "PostUp")
    assert len(hooks) == refreshed and not values(config("phone"), "PostUp")
    key = values(config("station"), "PublicKey")[0]
    assert all(f"peer {key} endpoint attic.example.org:51820" in hook for hook in hooks)
    assert all("#" not in hook for hook in hooks), "a comment of wg-quick"


@needs_openvpn
@pytest.mark.parametrize(
    ("endpoint", "listens", "dials"),
    [
        ("attic.example.org", "tcp6-server", "tcp-client"),
        ("192.0.2.7", "tcp-server", "tcp-client"),
        ("2001:db8::7", "tcp6-server", "tcp6-client"),
    ],
)
def test_openvpn_uses_each_kind_of_address(
    here: Path, endpoint: str, listens: str, dials: str
) -> None:
    assert main(["tunnel", "openvpn", "attic", "--endpoint", endpoint]) == 0
    assert f"\nproto {listens}\n" in config("site")
    assert f"\nproto {dials}\n" in config("station")


@needs_wg
def test_ipv6_endpoint_network_and_port_are_taken(here: Path) -> None:
    argv = ["tunnel", "wireguard", "attic", "--endpoint", "2001:db8::7", "--port", "500"]
    assert main([*argv, "--network", "192.168.77.0/29"]) == 0
    assert values(config("station"), "Endpoint") == ["[2001:db8::7]:500"]
    assert values(config("station"), "Address") == ["192.168.77.2/29"]


@pytest.mark.parametrize(
    ("name", "more", "words"),
    [
        ("../attic", [], '"../attic" refused: expected 1 to 15'),
        ("a-name-of-16-chars", [], "expected 1 to 15"),
        ("-attic", [], "refused"),
        ("attic", ["--endpoint", "attic.org:51820"], '"attic.org:51820" refused'),
        ("attic", ["--endpoint", "a\nPostUp = reboot"], "expected a host name"),
        ("attic", ["--network", "8.8.8.0/24"], "8.8.8.0/24 refused: expected"),
        ("attic", ["--network", "10.0.0.1/24"], "has host bits set"),
        ("attic", ["--network", "10.0.0.0/30"], "expected 8 to"),
    ],
)
def test_bad_value_is_refused_and_writes_no_file(
    name: str, more: list[str], words: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["tunnel", "wireguard", "--endpoint", "attic.example.org", *more, "--", name]
    assert main(argv) == 1
    assert words in capsys.readouterr().err
    assert list(here.iterdir()) == []


def test_missing_programs_are_named_by_their_packages(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    for argv, package in ((WIREGUARD, "wireguard-tools"), (OPENVPN, "openvpn")):
        assert main(argv) == 1
        assert f"is not installed; sudo apt install {package}" in capsys.readouterr().err
    assert main([*OPENVPN, "--phone"]) == 1
    assert "fpvstation tunnel wireguard" in capsys.readouterr().err
    assert list(here.iterdir()) == []
