"""`fpvcar remote` on a card in a folder of the test. tests/e2e/links/test_tunnel.py runs it."""

import re
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from testkit.command import Command, Output

from fpvcar.cli import remote
from fpvcar.config import profiles, raspberry_pi_os
from tests.unit.cli.conftest import Ran

pytestmark = pytest.mark.skipif(not shutil.which("wg"), reason="not installed: wireguard-tools")
HOME = ("--endpoint", "home.example.org")
Remote = Callable[..., Output]


@pytest.fixture
def card(tmp_path: Path, command: Command) -> Path:
    """Set up a car on a card; return its root."""
    (tmp_path / "card").mkdir()
    command("setup", "--root", tmp_path / "card", "--board=l298n", "--name=Rusty")
    return tmp_path / "card"


@pytest.fixture
def run(card: Path, tmp_path: Path, command: Command) -> Remote:
    """Function that runs `fpvcar remote` on the card."""
    return partial(command, "remote", "--root", card, "--to", tmp_path)


def hosts(card: Path) -> tuple[str, ...]:
    return profiles.load(card / raspberry_pi_os.PROFILE).server.allowed_hosts


def values(path: Path, key: str) -> list[str]:
    return re.findall(rf"^{key} = (.*)$", path.read_text(), re.M)


def test_remote_writes_three_ends_that_fit_together(
    card: Path, run: Remote, tmp_path: Path
) -> None:
    steps = run(*HOME).out
    own, folder = card / remote.CONFIG, tmp_path / "tunnel-fpvcar"
    ends = {end: folder / end / "fpvcar.conf" for end in ("server", "phone")}
    for path in (own, *ends.values()):
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700
        assert values(path, "MTU") == ["1200"]
    assert values(ends["server"], "ListenPort") == ["51820"]
    for path in (own, ends["phone"]):
        assert values(path, "Endpoint") == ["home.example.org:51820"]
        assert values(path, "PersistentKeepalive") == ["25"]
    address = values(own, "Address")[0].removesuffix("/24")
    assert hosts(card) == (address,)
    assert f"https://{address}:8081/" in steps and "▀" in steps
    assert values(own, "PrivateKey")[0] not in steps + ends["server"].read_text()
    (refresh,) = values(own, "PostUp")
    assert "endpoint home.example.org:51820" in refresh, "a changed address is found again"
    assert not list(folder.glob("car"))


def test_ipv6_address_network_port_and_phones_are_taken(
    card: Path, run: Remote, tmp_path: Path
) -> None:
    options = ("--port", "500", "--network", "10.9.8.0/24", "--phones", "2")
    run("--endpoint", "2001:db8::7", *options)
    own = card / remote.CONFIG
    assert values(own, "Endpoint") == ["[2001:db8::7]:500"] and not values(own, "PostUp")
    assert hosts(card) == ("10.9.8.2",)
    second = tmp_path / "tunnel-fpvcar" / "phone2" / "fpvcar.conf"
    assert values(second, "Address") == ["10.9.8.4/24"]


def test_second_run_is_refused_and_force_replaces_the_keys(
    card: Path, run: Remote, command: Command, tmp_path: Path
) -> None:
    run(*HOME)
    before = (card / remote.CONFIG).read_text()
    assert "--force" in run(*HOME, status=2).err
    assert (card / remote.CONFIG).read_text() == before
    run(*HOME, "--force", "--network", "10.9.8.0/24")
    assert (card / remote.CONFIG).read_text() != before
    assert hosts(card) == ("10.9.8.2",), "the former address is gone"


def test_undo_restores_the_profile(card: Path, run: Remote) -> None:
    profile = card / raspberry_pi_os.PROFILE
    profile.write_text(profile.read_text() + '\n[server]\nallowed_hosts = ["rusty.lan"]\n')
    before = profile.read_text()
    run(*HOME)
    assert len(hosts(card)) == 2
    run("--undo")
    assert profile.read_text() == before and not (card / remote.CONFIG).exists()
    assert "no tunnel" in run("--undo", status=2).err
    assert "no tunnel yet" in run("--status", status=2).err


def test_tunnel_of_the_owner_is_not_removed(card: Path, run: Remote) -> None:
    path = card / remote.CONFIG
    path.parent.mkdir(parents=True)
    path.write_text("[Interface]\nAddress = 10.0.0.9/24\n")
    assert "nothing is changed" in run("--undo", status=2).err
    assert "exists" in run(*HOME, status=2).err
    assert path.read_text() == "[Interface]\nAddress = 10.0.0.9/24\n"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "--endpoint is missing"),
        (("--endpoint", "home.org:51820"), '"home.org:51820" refused'),
        (("--endpoint", "a\nPostUp = reboot"), "expected a host name"),
        ((*HOME, "--network", "8.8.8.0/24"), "8.8.8.0/24 refused"),
        ((*HOME, "--network", "10.0.0.0/29", "--phones", "5"), "no room for 5 phones"),
    ],
)
def test_bad_value_is_refused_and_changes_no_file(
    options: tuple[str, ...], words: str, card: Path, run: Remote, tmp_path: Path
) -> None:
    assert words in run(*options, status=2).err
    assert [path.name for path in tmp_path.iterdir()] == ["card"]
    assert hosts(card) == () and not (card / remote.CONFIG).exists()


def test_card_without_a_car_is_refused(run: Remote, card: Path) -> None:
    (card / raspberry_pi_os.PROFILE).unlink()
    assert "sudo fpvcar setup" in run(*HOME, status=2).err


def test_units_start_after_the_files_and_a_failure_is_printed(
    ran: Ran, capsys: pytest.CaptureFixture[str]
) -> None:
    remote._carry_out(remote.START, Path("/"))
    assert ran.calls[:2] == [
        ("systemctl", "enable", "--quiet", "wg-quick@fpvcar.service"),
        ("systemctl", "restart", "--no-block", "wg-quick@fpvcar.service"),
    ]
    assert capsys.readouterr().out == ""
    ran.works = False
    remote._carry_out(remote.STOP, Path("/"))
    assert "failed: sudo systemctl disable --quiet --now wg-quick@fpvcar" in capsys.readouterr().out


def peer(handshake: int) -> str:
    own = "key\tkey\t51820\toff"
    return f"{own}\npub\t(none)\t[2001:db8::7]:51820\t10.9.8.0/24\t{handshake}\t2000000\t0\t25\n"


@pytest.mark.parametrize(
    ("handshake", "is_up", "words"),
    [
        (1000 - 12, True, "Connected to [2001:db8::7]:51820; last handshake 12 s ago; 2.0 MB"),
        (1000 - 200, False, "No handshake with [2001:db8::7]:51820 for 200 s"),
        (0, False, "No handshake with [2001:db8::7]:51820 yet"),
    ],
)
def test_state_is_told_by_the_last_handshake(handshake: int, is_up: bool, words: str) -> None:
    text, up = remote.state_of(peer(handshake), 1000.0)
    assert up == is_up and text.startswith(words)
