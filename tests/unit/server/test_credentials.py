"""Codes and the certificate are made once and kept."""

import re
import ssl
import stat
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fpvcar.server import credentials


def test_codes_are_made_once_and_private(tmp_path: Path) -> None:
    first = credentials.load_codes(tmp_path)
    assert credentials.load_codes(tmp_path) == first
    mode = stat.S_IMODE((tmp_path / "codes.json").stat().st_mode)
    assert mode == 0o600


@pytest.mark.parametrize(
    "rubbish",
    [
        b"", b"{}", b'{"drive": 1}', b"\xff", b'{"drive":"\xff"',
        b'{"drive":"","grown_up":""}',
        b'{"drive":"123456","grown_up":""}', b'{"drive":"","grown_up":"be3k4tbs"}',
        b'{"drive":"12345","grown_up":"be3k4tbs"}',
        b'{"drive":"123456","grown_up":"1"}',
    ],
)  # fmt: skip
def test_damaged_or_short_codes_are_set_aside_and_replaced(
    tmp_path: Path, rubbish: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """An empty code would open everything to whoever sends none."""
    (tmp_path / "codes.json").write_bytes(rubbish)
    codes = credentials.load_codes(tmp_path)
    assert len(codes.drive) == 6 and len(codes.grown_up) == 8
    assert credentials.load_codes(tmp_path) == codes
    assert (tmp_path / "codes.json.bad").read_bytes() == rubbish
    assert "kept as codes.json.bad, made anew" in caplog.text


def test_the_key_is_made_once_and_private(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        first, *others = pool.map(credentials.load_key, [tmp_path] * 4)
    assert len(first) == credentials.KEY_BYTES
    assert {*others, credentials.load_key(tmp_path)} == {first}
    path = tmp_path / "signing.key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_bytes(first[:5])
    made = credentials.load_key(tmp_path)
    assert len(made) == credentials.KEY_BYTES and made != first
    assert credentials.load_key(tmp_path) == made
    assert (tmp_path / "signing.key.bad").read_bytes() == first[:5]


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


def names_in(directory: Path) -> set[str]:
    """The names of the saved certificate, by a reader of its own."""
    done = subprocess.run(
        ["openssl", "x509", "-in", directory / "https.crt", "-noout", "-text"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return set(re.findall(r"(?:DNS|IP Address):([^,\s]+)", done.stdout))


@pytest.mark.parametrize("name", ["https.crt", "https.key"])
@pytest.mark.parametrize("left", [0, 100])
def test_a_torn_certificate_is_set_aside_and_made_anew(
    tmp_path: Path, name: str, left: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The power went at the first start: no later one may fail for it."""
    credentials.server_context(tmp_path, ["localhost"])
    path = tmp_path / name
    torn = path.read_bytes()[:left]
    path.write_bytes(torn)
    credentials.server_context(tmp_path, ["localhost"])
    credentials.server_context(tmp_path, ["localhost"])
    assert (tmp_path / f"{name}.bad").read_bytes() == torn
    assert caplog.text.count("made anew") == 2, "key and certificate, once"


def test_a_key_of_another_certificate_is_no_pair(tmp_path: Path) -> None:
    """Power that goes between the two files leaves a new key beside an old one."""
    other = tmp_path / "other"
    other.mkdir()
    for directory in (tmp_path, other):
        credentials.server_context(directory, ["localhost"])
    (tmp_path / "https.key").write_bytes((other / "https.key").read_bytes())
    credentials.server_context(tmp_path, ["localhost"])
    assert (tmp_path / "https.key.bad").exists()


def test_a_new_address_joins_those_that_the_certificate_has(tmp_path: Path) -> None:
    credentials.server_context(tmp_path, ["192.168.1.5", "plague", "plague.local"])
    before = (tmp_path / "https.crt").read_bytes()
    credentials.server_context(tmp_path, ["10.0.0.7", "plague", "plague.local"])
    names = {"192.168.1.5", "10.0.0.7", "plague", "plague.local"}
    assert names_in(tmp_path) == names
    after = (tmp_path / "https.crt").read_bytes()
    credentials.server_context(tmp_path, ["192.168.1.5", "plague"])
    assert before != after == (tmp_path / "https.crt").read_bytes()


def test_a_certificate_is_renewed_before_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "CERTIFICATE_DAYS", credentials.RENEW_DAYS - 1)
    credentials.server_context(tmp_path, ["localhost"])
    before = (tmp_path / "https.crt").read_bytes()
    monkeypatch.undo()
    credentials.server_context(tmp_path, ["localhost"])
    after = (tmp_path / "https.crt").read_bytes()
    credentials.server_context(tmp_path, ["localhost"])
    assert before != after == (tmp_path / "https.crt").read_bytes()


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


def test_a_clock_in_1970_makes_no_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Browsers with a good clock would call it expired."""
    monkeypatch.setattr(time, "time", lambda: 0.0)
    with pytest.raises(RuntimeError, match="the clock is wrong, 1970-01-01 00:00"):
        credentials.server_context(tmp_path, ("localhost",))
    assert list(tmp_path.iterdir()) == []
