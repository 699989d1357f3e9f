"""Codes and the certificate are made once and kept."""

import ssl
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fpvcar.server import credentials


def test_codes_are_made_once_and_private(tmp_path: Path) -> None:
    first = credentials.load_codes(tmp_path)
    assert credentials.load_codes(tmp_path) == first
    mode = stat.S_IMODE((tmp_path / "codes.json").stat().st_mode)
    assert mode == 0o600


@pytest.mark.parametrize("rubbish", [b"", b"{}", b'{"drive": 1}', b"\xff"])
def test_damaged_codes_are_replaced(tmp_path: Path, rubbish: bytes) -> None:
    (tmp_path / "codes.json").write_bytes(rubbish)
    codes = credentials.load_codes(tmp_path)
    assert codes.drive.isdigit() and credentials.load_codes(tmp_path) == codes


def test_the_certificate_is_kept_and_names_the_car(tmp_path: Path) -> None:
    names = ("127.0.0.1", "localhost", "plague")
    credentials.server_context(tmp_path, names)
    before = (tmp_path / "https.crt").read_bytes()
    context = credentials.server_context(tmp_path, names)
    assert (tmp_path / "https.crt").read_bytes() == before
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2
    client = ssl.create_default_context(cafile=str(tmp_path / "https.crt"))
    assert len(client.get_ca_certs()) == 1
    assert stat.S_IMODE((tmp_path / "https.key").stat().st_mode) == 0o600


def test_a_missing_openssl_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match="no certificate"):
        credentials.server_context(tmp_path, ["localhost"])


def test_two_that_start_at_once_have_the_same_codes(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as starters:
        found = list(starters.map(credentials.load_codes, [tmp_path] * 32))
    assert len(set(found)) == 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["codes.json"]
