"""The station's password: what opens its page from another machine.

    fpvstation passwd -> password.json: salt and scrypt of it, readable by us alone
    unlock on the page -> Password, in the place of the car's codes: server/auth/access.py

Cookies, wrong tries and their limits are those of the car. A new password ends all
cookies of the old one. Password and cookies of other machines are good over https only.
"""

import hashlib
import hmac
import secrets
from collections import deque
from pathlib import Path

import msgspec
from aiohttp import web

from fpvcar.runtime import files
from fpvcar.server.api.recordings_rights import DeviceRights
from fpvcar.server.auth.access import CodeCheck, Codes, Rights, is_loopback

FILE = "password.json"
LEAST, MOST = 8, 64
N, R, P = 1 << 14, 8, 5
"""Cost of scrypt: 16 MiB and 0.2 s a try, OWASP's second choice where 128 MiB are too
much: the station may be a small computer."""


class PasswordRefused(Exception):
    """Says what is wrong with a password, or with its file."""


class Saved(msgspec.Struct):
    """What is kept of a password; bytes in hex. The cost is kept, so that another one
    can come later."""

    salt: str
    hash: str
    n: int = N
    r: int = R
    p: int = P

    def of(self, password: str) -> str:
        """Scrypt of a password."""
        given = password.encode(errors="surrogatepass")
        return hashlib.scrypt(
            given,
            salt=bytes.fromhex(self.salt),
            n=self.n,
            r=self.r,
            p=self.p,
            maxmem=256 * self.n * self.r,
            dklen=32,
        ).hex()


def save(directory: Path, password: str) -> None:
    """Sets it. Raises PasswordRefused, OSError."""
    # It comes in a header, which holds no others, and whose ends are stripped.
    plain = password.isascii() and password.isprintable() and password == password.strip()
    if not LEAST <= len(password) <= MOST or not plain:
        raise PasswordRefused(
            f"a password of {len(password)} characters refused: expected {LEAST} to "
            f"{MOST} letters, digits and signs of ASCII, no space at its ends"
        )
    made = Saved(secrets.token_hex(16), "")
    made.hash = made.of(password)
    files.write_whole(directory / FILE, [msgspec.json.encode(made)])


def load(directory: Path) -> Saved | None:
    """The one that is set; None if none is. Raises PasswordRefused, OSError."""
    path = directory / FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=Saved)
    except FileNotFoundError:
        return None
    except (ValueError, msgspec.DecodeError, RecursionError) as fault:
        raise PasswordRefused(f"{path}: {fault}: set it anew: fpvstation passwd") from None


def codes_of(saved: Saved) -> Codes:
    """What a device's cookie is bound to: with another password it opens nothing."""
    return Codes(saved.hash, saved.hash)


class PasswordCheck(CodeCheck):
    """Takes the password in the place of the car's codes, by the same rules."""

    def __init__(self, saved: Saved) -> None:
        super().__init__(codes_of(saved))
        self._saved = saved

    def wrong_tries(self, code: str) -> deque[float]:
        """One limit for all tries: people choose passwords, and scrypt takes 0.2 s."""
        return self._short_wrong

    def rights(self, code: str) -> Rights | None:
        """Who has the password is a grown-up: may see, name, and move to the trash."""
        right = len(code) <= MOST and hmac.compare_digest(self._saved.of(code), self._saved.hash)
        return Rights(drive=True, grown_up=True) if right else None


class PasswordRights(DeviceRights):
    """Lets other machines in over https only, where the password cannot be read."""

    def let_in(self, request: web.Request) -> None:
        """Raises HTTPForbidden for plain http from another machine, too."""
        _refuse_plain(request)
        super().let_in(request)

    async def _unlock(self, request: web.Request) -> web.Response:
        _refuse_plain(request)
        return await super()._unlock(request)


def https_url(request: web.Request) -> str | None:
    """Return the https address of what another machine asks for over plain http.

    None for https, and for this machine. https is on the next port: site.Address.
    """
    if request.secure or is_loopback(request.remote or ""):
        return None
    plain = request.url
    return str(plain.with_scheme("https").with_port((plain.port or 80) + 1))


def _refuse_plain(request: web.Request) -> None:
    url = https_url(request)
    if url is not None:
        raise web.HTTPForbidden(
            text="Refused over plain http: the password and the recordings could be "
            f"read on the way; open {url}\n"
        )
