"""Password of the station: opens its page from another machine.

    fpvstation passwd -> password.json: salt and scrypt hash, readable by its owner only
    unlock on the page -> Password, in the place of the car's codes: access/codes.py

Cookies, wrong tries and their limits are those of the car. A new password ends all cookies of the
old one. Other machines can use password and cookies over https only.
"""

import hashlib
import hmac
import secrets
from collections import deque
from pathlib import Path

import msgspec
from aiohttp import web

from fpvcar.access.codes import CodeCheck, Codes, Rights
from fpvcar.access.rights import DeviceRights
from fpvcar.http.addresses import is_loopback
from fpvcar.http.responses import refused
from fpvcar.runtime import files
from fpvcar.runtime.texts import FILE_DAMAGED, Phrase, Text
from fpvstation.errors import StationError

HTTPS_ONLY = Phrase(
    "https_only",
    "The station needs https, which protects the password and the recordings: open {url}",
)

FILE = "password.json"
PASSWORD_NEEDED = Text("password_needed", "Enter the password to see this page.")
LEAST, MOST = 8, 64
N, R, P = 1 << 14, 8, 5
"""Cost of scrypt: 16 MiB and 0.2 s per try. OWASP's second choice: its first one takes
128 MiB, too much for a small computer."""


class PasswordHash(msgspec.Struct):
    """Stored hash of a password; bytes in hex. The cost is stored, so that it can change later."""

    salt: str
    hash: str
    n: int = N
    r: int = R
    p: int = P

    def of(self, password: str) -> str:
        """Return the scrypt hash of a password."""
        secret = password.encode(errors="surrogatepass")
        return hashlib.scrypt(
            secret,
            salt=bytes.fromhex(self.salt),
            n=self.n,
            r=self.r,
            p=self.p,
            maxmem=256 * self.n * self.r,
            dklen=32,
        ).hex()


def save(directory: Path, password: str) -> None:
    """Set the password. Raises StationError, OSError."""
    # The password is sent in an HTTP header: other characters are not allowed there, and spaces at
    # the ends are stripped.
    plain = password.isascii() and password.isprintable() and password == password.strip()
    if not LEAST <= len(password) <= MOST or not plain:
        raise StationError(
            f"a password of {len(password)} characters refused: expected {LEAST} to "
            f"{MOST} printable ASCII characters, no space at either end"
        )
    saved = PasswordHash(secrets.token_hex(16), "")
    saved.hash = saved.of(password)
    files.write_whole(directory / FILE, [msgspec.json.encode(saved)])


def load(directory: Path) -> PasswordHash | None:
    """Return the stored password; None before one is set. Raises StationError, OSError."""
    path = directory / FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=PasswordHash)
    except FileNotFoundError:
        return None
    except (ValueError, msgspec.DecodeError, RecursionError) as fault:
        values = {"path": path, "reason": fault, "command": "fpvstation passwd"}
        raise StationError(FILE_DAMAGED(**values)) from None


def codes_of(saved: PasswordHash) -> Codes:
    """Return the codes that a device's cookie is bound to: a new password invalidates it."""
    return Codes(saved.hash, saved.hash)


class PasswordCheck(CodeCheck):
    """Check of the password in the place of the car's codes, by the same rules."""

    def __init__(self, saved: PasswordHash) -> None:
        super().__init__(codes_of(saved))
        self._saved = saved

    def wrong_tries(self, code: str) -> deque[float]:
        """Return the single list of wrong tries: people choose passwords, and scrypt takes 0.2
        s."""
        return self._short_wrong

    def rights(self, code: str) -> Rights | None:
        """Return grown-up rights for the password: view, name, and move to the trash."""
        right = len(code) <= MOST and hmac.compare_digest(self._saved.of(code), self._saved.hash)
        return Rights(drive=True, grown_up=True) if right else None


class PasswordRights(DeviceRights):
    """Rights that admit other machines over https only, where the password cannot be read."""

    def let_in(self, request: web.Request) -> None:
        """Admit a request. Raises HTTPForbidden for plain http from another machine, too."""
        _refuse_plain(request)
        super().let_in(request)

    async def _unlock(self, request: web.Request) -> web.StreamResponse:
        _refuse_plain(request)
        return await super()._unlock(request)


def https_url(request: web.Request) -> str | None:
    """Return the https address for another machine's request over plain http.

    None for https, and for this machine. https is on the next port: site.Address.
    """
    if request.secure or is_loopback(request.remote or ""):
        return None
    plain = request.url
    return str(plain.with_scheme("https").with_port((plain.port or 80) + 1))


def _refuse_plain(request: web.Request) -> None:
    url = https_url(request)
    if url is not None:
        raise refused(web.HTTPForbidden, HTTPS_ONLY(url=url))
