"""Codes and the certificate are made once and kept."""

import re
import ssl
import stat
import subprocess
import time
from pathlib import Path

import pytest

from fpvcar.http import certificates


def test_certificate_is_kept_and_its_keys_are_private(tmp_path: Path) -> None:
    names = ("127.0.0.1", "localhost", "plague")
    certificates.server_context(tmp_path, names)
    before = (tmp_path / "https.crt").read_bytes()
    context = certificates.server_context(tmp_path, names)
    assert (tmp_path / "https.crt").read_bytes() == before
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2
    client = ssl.create_default_context(cafile=str(tmp_path / "root.crt"))
    assert len(client.get_ca_certs()) == 1
    for key in ("https.key", "root.key"):
        assert stat.S_IMODE((tmp_path / key).stat().st_mode) == 0o600


def names_in(directory: Path) -> set[str]:
    """Return the names of the saved certificate, read by openssl."""
    done = subprocess.run(
        ["openssl", "x509", "-in", directory / "https.crt", "-noout", "-text"],
        check=True,
        capture_output=True,
        text=True,
    )
    return set(re.findall(r"(?:DNS|IP Address):([^,\s]+)", done.stdout))


@pytest.mark.parametrize("name", ["https.crt", "https.key"])
@pytest.mark.parametrize("left", [0, 100])
def test_torn_certificate_is_set_aside_and_made_anew(
    tmp_path: Path, name: str, left: int, caplog: pytest.LogCaptureFixture
) -> None:
    """After a power cut in the first start no later one may fail."""
    certificates.server_context(tmp_path, ["localhost"])
    path = tmp_path / name
    torn = path.read_bytes()[:left]
    path.write_bytes(torn)
    certificates.server_context(tmp_path, ["localhost"])
    certificates.server_context(tmp_path, ["localhost"])
    assert (tmp_path / f"{name}.bad").read_bytes() == torn
    assert caplog.text.count("created again") == 2, "key and certificate, once"


def test_key_of_another_certificate_is_set_aside(tmp_path: Path) -> None:
    """A power cut between the two files leaves a new key beside an old certificate."""
    other = tmp_path / "other"
    other.mkdir()
    for directory in (tmp_path, other):
        certificates.server_context(directory, ["localhost"])
    (tmp_path / "https.key").write_bytes((other / "https.key").read_bytes())
    certificates.server_context(tmp_path, ["localhost"])
    assert (tmp_path / "https.key.bad").exists()


def test_new_address_joins_the_names_in_the_certificate(tmp_path: Path) -> None:
    certificates.server_context(tmp_path, ["192.168.1.5", "plague", "plague.local"])
    before = (tmp_path / "https.crt").read_bytes()
    certificates.server_context(tmp_path, ["10.0.0.7", "plague", "plague.local"])
    names = {"192.168.1.5", "10.0.0.7", "plague", "plague.local"}
    assert names_in(tmp_path) == names
    after = (tmp_path / "https.crt").read_bytes()
    certificates.server_context(tmp_path, ["192.168.1.5", "plague"])
    assert before != after == (tmp_path / "https.crt").read_bytes()


def test_certificate_is_renewed_before_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificates, "CERTIFICATE_DAYS", certificates.RENEW_DAYS - 1)
    certificates.server_context(tmp_path, ["localhost"])
    before = (tmp_path / "https.crt").read_bytes()
    monkeypatch.undo()
    certificates.server_context(tmp_path, ["localhost"])
    after = (tmp_path / "https.crt").read_bytes()
    certificates.server_context(tmp_path, ["localhost"])
    assert before != after == (tmp_path / "https.crt").read_bytes()


def test_missing_openssl_raises_no_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match="no certificate"):
        certificates.server_context(tmp_path, ["localhost"])


def test_clock_in_1970_makes_no_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Browsers with a correct clock would report it as expired."""
    monkeypatch.setattr(time, "time", lambda: 0.0)
    with pytest.raises(RuntimeError, match="the clock is wrong, 1970-01-01 00:00"):
        certificates.server_context(tmp_path, ("localhost",))
    assert list(tmp_path.iterdir()) == []


def sign(directory: Path, *extensions: str) -> None:
    """Sign other.crt with the car's authority, as a thief of its key would."""
    root = (directory / "root.crt", directory / "root.key")
    certificates.make_pair(
        directory / "other.key",
        directory / "other.crt",
        "other",
        9,
        *extensions,
        "authorityKeyIdentifier=keyid",
        by=("-CA", str(root[0]), "-CAkey", str(root[1])),
    )


def vouches(directory: Path, name: str = "https.crt", *more: str) -> bool:
    """Return True if openssl, strict, verifies the signature of the car's authority."""
    words = ("openssl", "verify", "-x509_strict", *more)
    root = ("-CAfile", directory / "root.crt")
    done = subprocess.run((*words, *root, directory / name), capture_output=True)
    return done.returncode == 0


@pytest.mark.parametrize(
    "names",
    [
        ["192.168.1.5", "localhost", "plague", "plague.local"],
        ["8.8.8.8", "2001:db8::1", "plague"],
        ["10.0.0.1"],
    ],
)
def test_own_authority_vouches_for_the_car(tmp_path: Path, names: list[str]) -> None:
    certificates.server_context(tmp_path, names)
    assert vouches(tmp_path)
    assert certificates.trusted(tmp_path) == tmp_path / "root.crt"


def test_root_stays_when_the_certificate_is_renewed(tmp_path: Path) -> None:
    certificates.server_context(tmp_path, ["192.168.1.5", "plague"])
    root = (tmp_path / "root.crt").read_bytes()
    for name in ("10.0.0.7", "172.16.3.4", "plague.local"):
        certificates.server_context(tmp_path, [name, "plague"])
    assert "172.16.3.4" in names_in(tmp_path) and vouches(tmp_path)
    assert (tmp_path / "root.crt").read_bytes() == root


def test_name_outside_the_authority_makes_a_new_authority(tmp_path: Path) -> None:
    certificates.server_context(tmp_path, ["localhost", "plague"])
    root = (tmp_path / "root.crt").read_bytes()
    certificates.server_context(tmp_path, ["localhost", "rusty"])
    assert (tmp_path / "root.crt").read_bytes() != root
    assert vouches(tmp_path) and {"plague", "rusty"} <= names_in(tmp_path)


def test_authority_vouches_for_no_foreign_name(tmp_path: Path) -> None:
    """A thief of the card has the authority's key."""
    certificates.server_context(tmp_path, ["localhost", "plague"])
    for name in ("DNS:bank.example", "IP:8.8.8.8", "DNS:plague.example"):
        sign(tmp_path, f"subjectAltName={name}")
        assert not vouches(tmp_path, "other.crt")


@pytest.mark.parametrize(
    "name",
    [
        "email:ann@bank.example",
        "email:ann@plague.local",
        "URI:https://bank.example/",
        "URI:https://plague.local/",
        "URI:urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
        "IP:2001:db8::1",
    ],
)
def test_authority_signs_no_email_address_and_no_uri(tmp_path: Path, name: str) -> None:
    certificates.server_context(tmp_path, ["localhost", "plague"])
    sign(tmp_path, f"subjectAltName={name}")
    assert not vouches(tmp_path, "other.crt")


@pytest.mark.parametrize(
    ("purpose", "usage", "allowed"),
    [
        ("sslserver", "serverAuth", True),
        ("sslclient", "clientAuth", False),
        ("smimesign", "emailProtection", False),
    ],
)
def test_authority_vouches_for_servers_only(
    tmp_path: Path, purpose: str, usage: str, allowed: bool
) -> None:
    certificates.server_context(tmp_path, ["localhost", "plague"])
    usage = f"extendedKeyUsage=critical,{usage}"
    sign(tmp_path, "subjectAltName=DNS:printer.local", usage)
    assert vouches(tmp_path, "other.crt", "-purpose", purpose) is allowed


@pytest.mark.parametrize("name", ["root.crt", "root.key"])
def test_torn_authority_is_set_aside_and_made_anew(tmp_path: Path, name: str) -> None:
    certificates.server_context(tmp_path, ["localhost"])
    (tmp_path / name).write_bytes(b"-----BEGIN")
    certificates.server_context(tmp_path, ["localhost", "10.0.0.1"])
    assert (tmp_path / f"{name}.bad").exists() and vouches(tmp_path)


def test_authority_ending_before_its_certificate_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    days = certificates.CERTIFICATE_DAYS - 1
    monkeypatch.setattr(certificates, "ROOT_DAYS", days)
    certificates.server_context(tmp_path, ["localhost"])
    root = (tmp_path / "root.crt").read_bytes()
    monkeypatch.undo()
    certificates.server_context(tmp_path, ["localhost"])
    assert (tmp_path / "root.crt").read_bytes() == root, "nothing is signed"
    certificates.server_context(tmp_path, ["localhost", "10.0.0.1"])
    assert (tmp_path / "root.crt").read_bytes() != root and vouches(tmp_path)


def test_old_self_signed_certificate_stays_until_renewal(tmp_path: Path) -> None:
    """Stations identify the car by its certificate."""
    certificates.make_pair(
        tmp_path / "https.key",
        tmp_path / "https.crt",
        "fpvcar",
        825,
        "basicConstraints=critical,CA:TRUE",
        "subjectAltName=DNS:localhost",
    )
    before = (tmp_path / "https.crt").read_bytes()
    certificates.server_context(tmp_path, ["localhost"])
    assert (tmp_path / "https.crt").read_bytes() == before
    assert certificates.trusted(tmp_path) == tmp_path / "https.crt"
    certificates.server_context(tmp_path, ["localhost", "10.0.0.1"])
    assert certificates.trusted(tmp_path) == tmp_path / "root.crt" and vouches(tmp_path)
