"""What a car saves between starts: its codes, and a certificate for https.

Both stand in paths.state_directory().
"""

import ipaddress
import ssl
import subprocess
from collections.abc import Iterable
from pathlib import Path

import msgspec

from fpvcar import files
from fpvcar.server.access import Codes, new_codes

CERTIFICATE_DAYS = 3650


def load_codes(directory: Path) -> Codes:
    """The codes of this car; made at the first start, by one process only."""
    path = directory / "codes.json"
    saved = _saved_codes(path)
    if saved is not None:
        return saved
    codes = new_codes()
    text = msgspec.json.encode({"drive": codes.drive, "grown_up": codes.grown_up})
    try:
        files.write_whole(path, [text], replace=False)
    except FileExistsError:  # another process was first, or what is there is damaged
        if (saved := _saved_codes(path)) is not None:
            return saved
        files.write_whole(path, [text])
    return codes


def _saved_codes(path: Path) -> Codes | None:
    try:
        saved = msgspec.json.decode(path.read_bytes(), type=dict[str, str])
        return Codes(drive=saved["drive"], grown_up=saved["grown_up"])
    except (OSError, msgspec.DecodeError, KeyError):
        return None


def server_context(directory: Path, names: Iterable[str]) -> ssl.SSLContext:
    """TLS with a certificate that is made once and saved.

    Made by the `openssl` command: the base image has it, and a library that could
    do it has no wheel for a Pi Zero W. Raises RuntimeError if that fails.
    """
    key, certificate = directory / "https.key", directory / "https.crt"
    if not (key.exists() and certificate.exists()):
        _make_certificate(key, certificate, names)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key)
    return context


def _make_certificate(key: Path, certificate: Path, names: Iterable[str]) -> None:
    alternatives = ",".join(f"{_kind(name)}:{name}" for name in names)
    command = [
        "openssl", "req", "-x509", "-newkey", "ec",
        "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
        "-days", str(CERTIFICATE_DAYS), "-subj", "/CN=fpvcar",
        "-addext", f"subjectAltName={alternatives}",
        "-keyout", str(key), "-out", str(certificate),
    ]  # fmt: skip
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as fault:
        output = getattr(fault, "stderr", b"") or b""
        last = output.decode(errors="replace").strip().splitlines()[-1:]
        raise RuntimeError(f"no certificate: {' '.join(last) or fault}") from None
    key.chmod(0o600)


def _kind(name: str) -> str:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return "DNS"
    return "IP"
