"""Banner on a terminal: address, code, picture; never in a journal."""

import json
from pathlib import Path

import pytest

from fpvcar import app
from fpvcar.__main__ import main
from fpvcar.access import banner
from fpvcar.access.banner import greeting
from fpvcar.access.codes import load_codes
from fpvcar.config import profiles
from fpvcar.http import addresses, certificates
from fpvcar.runtime import paths


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    monkeypatch.setattr(addresses, "lan_address", lambda: "10.1.2.3")
    return tmp_path


def test_lan_greeting_has_address_qr_picture_and_codes(state: Path) -> None:
    said = greeting("0.0.0.0", 8080, "Plague", "/srv/drives")
    codes = json.loads((state / "codes.json").read_text())
    assert f"Drive code: {codes['drive']} " in said
    assert f"Grown-up code: {codes['grown_up']}" in said
    assert "http://localhost:8080/" in said and "\u2580" in said, "no picture"
    assert "It records in /srv/drives" in said


def test_greeting_of_a_car_behind_a_proxy_here_has_the_drive_code(state: Path) -> None:
    assert "Drive code" not in greeting("127.0.0.1", 8080, "Plague")
    codes = json.loads((state / "codes.json").read_text())
    assert f"Drive code: {codes['drive']} " in greeting("127.0.0.1", 8080, "Plague", proxied=True)


def test_greeting_with_a_certificate_has_the_https_address(state: Path) -> None:
    assert "https" not in greeting("0.0.0.0", 8080, "Plague")
    (state / certificates.CERTIFICATE).touch()
    assert "https://10.1.2.3:8081/" in greeting("0.0.0.0", 8080, "Plague")


def test_greeting_without_a_network_has_no_qr_picture(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (state / certificates.CERTIFICATE).touch()
    monkeypatch.setattr(addresses, "lan_address", lambda: "127.0.0.1")
    said = greeting("0.0.0.0", 8080, "Plague")
    assert "\u2580" not in said and "127.0.0.1" not in said and "https" not in said
    assert "Join a network" in said and "Drive code: " in said


def test_loopback_greeting_says_how_phones_reach_the_car() -> None:
    said = greeting("127.0.0.1", 8080, "Plague")
    assert "--host 0.0.0.0" in said and "Drive code" not in said


@pytest.mark.parametrize(
    ("journal", "bench", "greets"),
    [(False, False, True), (True, False, False), (False, True, False)],
)
def test_run_greets_a_terminal_only(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    journal: bool,
    bench: bool,
    greets: bool,
) -> None:
    """A journal has more readers than the codes may have."""
    monkeypatch.delenv("JOURNAL_STREAM", raising=False)
    if journal:
        monkeypatch.setenv("JOURNAL_STREAM", "8:1234")
    profile = profiles.load(paths.HARDWARE / "bench.toml")
    soc = tmp_path / "soc" if bench else None
    app._greet(profile, app.Options("0.0.0.0", 8080, tmp_path, soc))
    assert ("Drive code" in capsys.readouterr().out) == greets


def test_verb_code_prints_the_drive_code_and_address_and_makes_no_codes(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["code"]) == 2
    assert "start the car once, and use sudo" in capsys.readouterr().err
    assert list(state.iterdir()) == [], "codes of root could not be read by the car"
    codes = load_codes(state)
    assert main(["code", "--port", "8090"]) == 0
    said = capsys.readouterr().out
    assert f"Drive code: {codes.drive}\n" in said and codes.grown_up not in said
    assert "http://10.1.2.3:8090/" in said and "\u2580" in said
    assert main(["code", "--grown-up"]) == 0
    assert f"Grown-up code: {codes.grown_up}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("display", "opened", "words"),
    [
        ("", "True", "No display here: open http://localhost:1/"),
        (":0", "False", "No browser found: open http://localhost:1/"),
        (":0", "True", ""),
    ],
)
async def test_browser_that_does_not_open_gives_the_next_step(
    monkeypatch: pytest.MonkeyPatch, display: str, opened: str, words: str
) -> None:
    monkeypatch.setenv("DISPLAY", display)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    noisy = f"import sys; print('noise', file=sys.stderr); sys.exit(not {opened})"
    monkeypatch.setattr(banner, "OPEN", noisy)
    said = await banner.open_page("http://localhost:1/")
    assert said.startswith(words) and bool(said) == bool(words)
