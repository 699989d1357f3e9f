"""Certificates of a car for https, saved in paths.state_directory()."""

import hashlib
import ipaddress
import logging
import re
import ssl
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

from fpvcar.runtime import clock, files

CERTIFICATE, ROOT = "https.crt", "root.crt"
CERTIFICATE_DAYS = 825
"""Longest validity that Apple's systems accept, for any issuer."""
ROOT_DAYS = 3650
"""Validity of the root, installed by hand. It ends before 2038, the end of 32-bit time."""
RENEW_DAYS = 30
NAMES_MAX = 16
OPENSSL_S = 60.0
NEAR = (
    "IP:127.0.0.0/255.0.0.0",
    "IP:10.0.0.0/255.0.0.0",
    "IP:172.16.0.0/255.240.0.0",
    "IP:192.168.0.0/255.255.0.0",
    "IP:169.254.0.0/255.255.0.0",
    "DNS:local",
)
"""Names that each car's authority may sign, in the notation of openssl."""
NOTHING = ("email:.invalid", "URI:.invalid")
"""Constraints of the other kinds of name. A kind without a constraint is allowed, and no real
name is below .invalid (RFC 2606)."""
SERVER_ONLY = "extendedKeyUsage=serverAuth"
CONFIG = b"[req]\ndistinguished_name=name\n[name]\n"
"""Configuration for openssl, replacing the system's own: that file differs between systems."""
log = logging.getLogger("fpvcar.run")


def server_context(directory: Path, names: Iterable[str]) -> ssl.SSLContext:
    """Return a TLS context with the saved certificate. Raises RuntimeError without `openssl`.

    The certificate is made again if it is unreadable, if it lacks one of `names` (host names and IP
    addresses), or RENEW_DAYS before its end; its earlier names are kept. The car's own authority,
    created before the first certificate, signs it. The `openssl` command does the work: the base
    image has it, and no suitable library has a wheel for a Pi Zero W.
    """
    key, certificate = directory / "https.key", directory / CERTIFICATE
    context = _load(key, certificate)
    certified = _names_of(certificate) if context is not None else None
    all_names = list(dict.fromkeys([*names, *(certified or ())]))[:NAMES_MAX]
    if context is None or certified is None or not set(names) <= set(certified):
        if not clock.plausible(now_s := time.time()):
            raise RuntimeError(f"no certificate: {clock.fault(now_s)}")
        _make_certificate(directory, key, certificate, all_names)
        context = _load(key, certificate)
    if context is None:
        raise RuntimeError(f"no certificate: {certificate} cannot be read back")
    return context


def _load(key: Path, certificate: Path) -> ssl.SSLContext | None:
    """Return a context with the saved certificate; None if it is missing or unusable."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
    except FileNotFoundError:
        return None
    except (OSError, ssl.SSLError) as fault:  # torn by a power cut, or not a pair
        for path in (key, certificate):
            files.set_aside(path, f"no certificate and key: {fault}")
        return None
    return context


def _names_of(certificate: Path) -> list[str] | None:
    """Return the names in a certificate; None if it ends within RENEW_DAYS."""
    options = ["-checkend", str(RENEW_DAYS * 24 * 3600), "-ext", "subjectAltName"]
    try:
        output = _openssl("x509", "-in", str(certificate), "-noout", *options)
    except RuntimeError:
        return None
    matches = re.findall(r"(DNS|IP Address):([^,\s]+)", output.decode())
    return [str(ipaddress.ip_address(name)) if kind != "DNS" else name for kind, name in matches]


def trusted(directory: Path) -> Path:
    """Return the path of the certificate that people install as trusted.

    A car without an authority still has a self-signed certificate of an older version, until it is
    renewed.
    """
    root = directory / ROOT
    return root if root.exists() else directory / CERTIFICATE


def fingerprint(pem: bytes) -> str:
    """Return the SHA-256 of a certificate in hex."""
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem.decode())).hexdigest()


def _make_certificate(directory: Path, key: Path, certificate: Path, names: list[str]) -> None:
    root, root_key = directory / ROOT, directory / "root.key"
    if _load(root_key, root) is None or not _outlives(root, CERTIFICATE_DAYS):
        _make_root(root_key, root, names)
    extensions = (
        "basicConstraints=critical,CA:FALSE",
        SERVER_ONLY,
        "keyUsage=critical,digitalSignature",
        "authorityKeyIdentifier=keyid",
        f"subjectAltName={','.join(f'{_kind(name)}:{name}' for name in names)}",
    )
    by = ("-CA", str(root), "-CAkey", str(root_key))
    for last in (False, True):
        make_pair(key, certificate, "fpvcar", CERTIFICATE_DAYS, *extensions, by=by)
        if last or _vouches(root, certificate):
            break
        _make_root(root_key, root, names)  # the car has a name outside the root's constraints


def _outlives(certificate: Path, days: int) -> bool:
    seconds = str(days * 24 * 3600)
    arguments = ["x509", "-in", str(certificate), "-noout", "-checkend", seconds]
    return _succeeds(*arguments)


def _vouches(root: Path, certificate: Path) -> bool:
    purpose = ("-purpose", "sslserver")
    return _succeeds("verify", *purpose, "-CAfile", str(root), str(certificate))


def _succeeds(*arguments: str) -> bool:
    try:
        _openssl(*arguments)
    except RuntimeError:
        return False
    return True


def _make_root(key: Path, root: Path, names: list[str]) -> None:
    """Create an authority for this car alone, so that a stolen card cannot vouch for other hosts.

    It may sign servers at addresses of home networks, at names below .local, and at the car's own
    names, but no e-mail address and no URI.
    """
    constraints = [
        f"permitted;{constraint}" for constraint in (*NEAR, *map(_constraint, names), *NOTHING)
    ]
    hosts = (name for name in names if _kind(name) == "DNS" and name != "localhost")
    car = re.sub(r"[^\w.-]", "", next(hosts, ""))
    make_pair(
        key,
        root,
        f"fpvcar {car}".strip(),
        ROOT_DAYS,
        "basicConstraints=critical,CA:TRUE,pathlen:0",
        "keyUsage=critical,keyCertSign",
        SERVER_ONLY,
        f"nameConstraints=critical,{','.join(constraints)}",
    )


def make_pair(
    key: Path, certificate: Path, name: str, days: int, *extensions: str, by: Iterable[str] = ()
) -> None:
    """Create and save a key and its certificate, self-signed or signed `by` another one."""
    added = [argument for extension in extensions for argument in ("-addext", extension)]
    output = _openssl(
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        str(days),
        "-subj",
        f"/CN={name}",
        *by,
        "-addext",
        "subjectKeyIdentifier=hash",
        *added,
        "-config",
        "/dev/stdin",
        "-keyout",
        "-",
        "-out",
        "-",
    )
    head, begin, rest = output.partition(b"-----BEGIN CERTIFICATE-----")
    # A power cut between the two writes leaves a mismatched pair, and both are made again.
    files.write_whole(key, [head])
    files.write_whole(certificate, [begin + rest])


def _openssl(*arguments: str) -> bytes:
    """Return the output of an openssl command. Raises RuntimeError with its last error line."""
    try:
        process = subprocess.run(
            ["openssl", *arguments],
            check=True,
            capture_output=True,
            timeout=OPENSSL_S,
            input=CONFIG,
        )
    except (OSError, subprocess.SubprocessError) as fault:
        output = getattr(fault, "stderr", b"") or b""
        last = output.decode(errors="replace").strip().splitlines()[-1:]
        raise RuntimeError(f"no certificate: {' '.join(last) or fault}") from None
    return process.stdout


def _constraint(name: str) -> str:
    if _kind(name) == "DNS":
        return f"DNS:{name}"
    net = ipaddress.ip_network(name)
    return f"IP:{net.network_address}/{net.netmask}"


def _kind(name: str) -> str:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return "DNS"
    return "IP"
