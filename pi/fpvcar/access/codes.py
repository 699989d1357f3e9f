"""Codes of a car, their limits on wrong tries, and its signing key.

The checks are pure; time is an argument. Codes and key are saved in paths.state_directory().
"""

import contextlib
import hmac
import logging
import re
import secrets
from collections import deque
from dataclasses import dataclass
from pathlib import Path

import msgspec

from fpvcar.http.addresses import network_of
from fpvcar.runtime import files

TRIES = 5
TRIES_WINDOW_S = 60.0
TRIES_ALL = 20
"""Most wrong six-digit codes per minute from all unknown networks together.

The limit treats 60 addresses as a single guesser. Trying half of all codes then takes 17 days.
"""
TRIES_ALL_LONG = 200
"""Most wrong codes of another form per minute. Trying half of all grown-up codes then takes
4,000 years."""
DRIVE_FORM = re.compile(r"\s*[0-9]{6}\s*", re.A)
TOKEN_FORM = re.compile(r"[0-9a-f]{32}")
"""Form of an invitation token: 128 bits, impossible to guess."""
TRUSTED_MAX = 64
ADDRESSES_MAX = 1000
CODES = "codes.json"
KEY_BYTES = 32
DRIVE_CODE, GROWN_UP_CODE = re.compile(r"[0-9]{6}"), re.compile(r"[a-z0-9]{8,32}")
log = logging.getLogger("fpvcar.access")


@dataclass(frozen=True, slots=True)
class Codes:
    """The two secrets of a car. `grown_up` also grants the rights of `drive`."""

    drive: str
    grown_up: str


def new_codes() -> Codes:
    """Generate a drive code of 6 digits and a grown-up code that a child cannot guess."""
    drive = f"{secrets.randbelow(1_000_000):06d}"
    letters = "abcdefghjkmnpqrstuvwxyz23456789"
    return Codes(drive, "".join(secrets.choice(letters) for _ in range(8)))


@dataclass(frozen=True, slots=True)
class Rights:
    """Rights of one connection in addition to watching and stopping."""

    drive: bool = False
    grown_up: bool = False


class CodeCheck:
    """Code check with a limit on wrong codes per network, and a limit for all networks together.

    Each kind of code has its own common limit, so guesses at the drive code do not block grown-ups.
    A network that has sent a right code is exempt from the common limits.
    """

    def __init__(self, codes: Codes) -> None:
        self._codes = codes
        self._wrong: dict[str, deque[float]] = {}
        self._short_wrong: deque[float] = deque(maxlen=TRIES_ALL)
        self._long_wrong: deque[float] = deque(maxlen=TRIES_ALL_LONG)
        self._trusted: dict[str, None] = {}

    def wait_s(self, code: str, address: str, now_s: float) -> float:
        """Return the seconds this address must wait before it may try a code of this kind."""
        network = network_of(address)
        return max(self._crowd_s(code, network, now_s), self._own_s(network, now_s))

    def _crowd_s(self, code: str, network: str, now_s: float) -> float:
        wrong = self.wrong_tries(code)
        if wrong is None or network in self._trusted or len(wrong) < (wrong.maxlen or 0):
            return 0.0
        return max(0.0, wrong[0] + TRIES_WINDOW_S - now_s)

    def wrong_tries(self, code: str) -> deque[float] | None:
        """Return the times of the newest wrong tries at this kind of code, at most one minute's
        allowance.

        Returns None for invitation tokens: they need no common limit.
        """
        if TOKEN_FORM.fullmatch(code):
            return None
        return self._short_wrong if DRIVE_FORM.fullmatch(code) else self._long_wrong

    def _own_s(self, address: str, now_s: float) -> float:
        wrong = self._wrong.get(address)
        if wrong is None:
            return 0.0
        while wrong and wrong[0] <= now_s - TRIES_WINDOW_S:
            wrong.popleft()
        if not wrong:
            del self._wrong[address]
        return wrong[0] + TRIES_WINDOW_S - now_s if len(wrong) >= TRIES else 0.0

    def rights(self, code: str) -> Rights | None:
        """Return the rights that a code grants; None if it is wrong. Runs in constant time."""
        code_bytes = code.encode(errors="surrogatepass")
        grown_up = hmac.compare_digest(code_bytes, self._codes.grown_up.encode())
        drive = hmac.compare_digest(code_bytes, self._codes.drive.encode())
        return Rights(drive=True, grown_up=grown_up) if grown_up or drive else None

    def unlock(self, code: str, address: str, now_s: float) -> Rights | None:
        """Return the rights that a code grants; None if it is wrong. A wrong code is counted.

        The caller checks `wait_s` first: until it returns 0, codes are rejected unread.
        """
        if self.wait_s(code, address, now_s) > 0.0:
            return None
        address = network_of(address)
        rights = self.rights(code.strip())
        if rights is not None:
            self._wrong.pop(address, None)
            self._trusted.pop(address, None)
            self._trusted[address] = None
            if len(self._trusted) > TRUSTED_MAX:
                self._trusted.pop(next(iter(self._trusted)))
            return rights
        if len(self._wrong) >= ADDRESSES_MAX and address not in self._wrong:
            self._wrong.pop(next(iter(self._wrong)))
        self._wrong.setdefault(address, deque()).append(now_s)
        crowd = self.wrong_tries(code)
        if crowd is not None:
            crowd.append(now_s)
        log.warning("%s: wrong code", address)
        return None


def video_id(key: bytes, client: str) -> str:
    """Return the id that a page puts into the URL of its pictures.

    URLs may be read by others, and the id does not reveal the client's id. A page keeps the same id
    after a lost link.
    """
    return hmac.new(key, b"video " + client.encode(), "sha256").hexdigest()[:32]


def load_codes(directory: Path) -> Codes:
    """Load the codes of this car; the first start creates them, in a single process.

    A file without codes, or with codes that are too short, is set aside and replaced.
    """
    path = directory / CODES
    saved = saved_codes(path)
    if saved is not None:
        return saved
    codes = new_codes()
    text = msgspec.json.encode({"drive": codes.drive, "grown_up": codes.grown_up})
    try:
        files.write_whole(path, [text], replace=False)
    except FileExistsError:  # another process was first, or the file is damaged
        if (saved := saved_codes(path)) is not None:
            return saved
        files.set_aside(path, "it does not hold a code of 6 digits and one of 8 letters")
        files.write_whole(path, [text])
    return codes


def saved_codes(path: Path) -> Codes | None:
    """Return the codes of a file; None if it is missing, unreadable or damaged."""
    try:
        codes = msgspec.json.decode(path.read_bytes(), type=Codes)
    except (OSError, ValueError, msgspec.DecodeError, RecursionError):
        return None
    good = DRIVE_CODE.fullmatch(codes.drive) and GROWN_UP_CODE.fullmatch(codes.grown_up)
    return codes if good else None


def load_key(directory: Path) -> bytes:
    """Load the car's secret for signing and verifying its own data.

    The first start creates it. A file without a key is set aside and replaced.
    """
    path = directory / "signing.key"
    replace = False
    while True:
        with contextlib.suppress(OSError):
            saved = path.read_bytes()
            if len(saved) == KEY_BYTES:
                return saved
            files.set_aside(path, f"{len(saved)} bytes are not a key of {KEY_BYTES}")
        key = secrets.token_bytes(KEY_BYTES)
        with contextlib.suppress(FileExistsError):  # another process was first
            files.write_whole(path, [key], replace)
            return key
        replace = True  # at the second try, whatever is there
