"""Devices whose people have said a code: a signed cookie each, and a list that is kept.

    right code -> `pass` on /ws/drive -> POST /api/pass -> cookie ID.UNTIL.MAC
               -> POST /api/recordings/unlock           -> the same
    invite -> a token -> unlock {code: token}, once -> a ticket, as above
    a request's cookies -> Devices.of: the car's own MAC, in time, still on the list

So a driver is known after a restart of `run`, before it has said a word. The MAC's key
is the car's and its codes': new codes, and nobody is known any more. Whoever is taken
off the list stays off it, whatever cookie it has saved. Time is an argument: UTC in s.
"""

import asyncio
import hmac
import logging
import re
import secrets
import time
from pathlib import Path

import msgspec
from aiohttp import web

from fpvcar.runtime import files
from fpvcar.server.auth.access import Codes, Rights, address_class
from fpvcar.server.http.responses import PRIVATE

FILE = "devices.json"
COOKIE = "fpvcar-pass"
FORM = re.compile(r"(?P<id>[0-9a-f]{32})\.(?P<until>[0-9]{1,12})\.(?P<mac>[0-9a-f]{64})")
PASS_S = 30 * 24 * 3600
"""How long a device is remembered after the code was said."""
GROWN_UP_S = 1800.0
"""Grown-ups' rights that nobody uses for so long are given back."""
SAVE_AGAIN_S = 300.0
"""No more often is it saved that grown-ups' rights were used."""
SAVE_RETRY_S = 5.0
"""How soon a list that could not be saved is saved again."""
DEVICES_MAX = 64
INVITATIONS_MAX = 8
"""So many wait to be used; of more the oldest go."""
INVITED = "invitation"
"""What a device is called that nobody has come with yet."""
log = logging.getLogger("fpvcar.door")


class Device(msgspec.Struct):
    """One device, and who said the code there; `used_s`: as a grown-up, 0 if not."""

    id: str
    name: str
    where: str
    seen_s: float
    until_s: int
    used_s: float = 0.0
    guest: bool = False
    """Its rights end at `until_s`, also on pages that are open then."""
    invitation: str = ""
    """Of a guest who has not come yet: the MAC of the token that lets one in."""
    numbers_below: int = 0
    """Of a base station: its requests up to this number may have been used."""

    def rights(self, now_s: float) -> Rights:
        """What whoever has it may do."""
        unused_s = now_s - self.used_s
        return Rights(True, self.used_s > 0.0 and 0.0 <= unused_s < GROWN_UP_S)


class Devices:
    """The list, the device seen last at its end: no clock decides which one must go.

    `run` saves it in a thread whenever it has changed.
    """

    def __init__(self, key: bytes, codes: Codes, path: Path) -> None:
        self._own = key
        said = f"pass {codes.drive} {codes.grown_up}".encode()
        self._key = hmac.digest(key, said, "sha256")
        self._path = path
        self._all = {one.id: one for one in _load(path)}
        self._changed, self._writing = asyncio.Event(), asyncio.Lock()
        self._saved_s = 0.0
        self.unsaved = ""
        """The error of the last save; "" if it succeeded."""

    def all(self) -> list[Device]:
        """Everyone on the list."""
        return list(self._all.values())

    def get(self, device: str) -> Device | None:
        """The one of that id."""
        return self._all.get(device)

    def add(self, name: str, address: str, rights: Rights, now_s: float) -> Device:
        """Puts a device on the list; of too many the one that was away longest goes."""
        device = Device(
            secrets.token_hex(16),
            name,
            address_class(address),
            now_s,
            int(now_s) + PASS_S,
            now_s if rights.grown_up else 0.0,
        )
        self._put(device)
        return device

    def _put(self, device: Device) -> None:
        self._all[device.id] = device
        while len(self._all) > DEVICES_MAX:
            del self._all[next(iter(self._all))]
        self._changed.set()

    def _move_to_end(self, device: Device) -> None:
        if self._all.pop(device.id, None) is not None:
            self._all[device.id] = device

    def invite(self, minutes: float, now_s: float) -> str:
        """A code by which one device may drive until then; it works once.

        It stands on the list from now on, and can be ended there; kept is its MAC.
        """
        for old in self.invitations()[: 1 - INVITATIONS_MAX]:
            self.end(old.id)
        token, until_s = secrets.token_hex(16), int(now_s + minutes * 60)
        self._put(
            Device(
                secrets.token_hex(16),
                INVITED,
                "",
                now_s,
                until_s,
                guest=True,
                invitation=self._token_mac(token),
            )
        )
        return token

    def invitations(self) -> list[Device]:
        """The guests who have not come yet."""
        return [one for one in self._all.values() if one.invitation]

    def invited(self, token: str, now_s: float) -> Device | None:
        """The guest of this token; None if it was used, is over, or is none."""
        given = self._token_mac(token)
        found = [
            one
            for one in self.invitations()
            if hmac.compare_digest(one.invitation, given) and now_s < one.until_s
        ]
        return found[0] if found else None

    def arrived(self, guest: Device, name: str, address: str, now_s: float) -> None:
        """The guest is here: nobody else comes with that token."""
        guest.invitation, guest.where = "", address_class(address)
        self.seen(guest, name, now_s)
        self._changed.set()

    def stay(self, device: Device, now_s: float) -> None:
        """A guest said a code: it stays as long as others who did."""
        device.guest, device.until_s = False, int(now_s) + PASS_S
        self._changed.set()

    def over(self, now_s: float) -> list[Device]:
        """The guests whose time is over."""
        return [one for one in self.all() if one.guest and now_s >= one.until_s]

    def _token_mac(self, token: str) -> str:
        said = b"invitation " + token.encode(errors="surrogatepass")
        return hmac.new(self._key, said, "sha256").hexdigest()

    def cookie(self, device: Device) -> str:
        """What proves that it is this device."""
        return f"{device.id}.{device.until_s}.{self._mac(device.id, device.until_s)}"

    def _mac(self, device: str, until_s: int) -> str:
        return hmac.new(self._key, f"{device}.{until_s}".encode(), "sha256").hexdigest()

    def of(self, request: web.Request, now_s: float) -> Device | None:
        """Whose device asks; on https by the cookie of that name, if it is good."""
        names = dict.fromkeys(map(cookie_name, (request.secure, False)))
        cookies = (request.cookies.get(name, "") for name in names)
        found = (self.find(cookie, now_s) for cookie in cookies)
        return next((one for one in found if one), None)

    def find(self, cookie: str, now_s: float) -> Device | None:
        """The device of a cookie; None if it is not ours, too old, or was ended."""
        found = FORM.fullmatch(cookie)
        if found is None:
            return None
        until_s = int(found["until"])
        good = hmac.compare_digest(self._mac(found["id"], until_s), found["mac"])
        return self._all.get(found["id"]) if good and now_s < until_s else None

    def seen(self, device: Device, name: str, now_s: float) -> None:
        """Its page is here, or was until now."""
        device.name, device.seen_s = name, now_s
        self._move_to_end(device)

    def used(self, device: Device, now_s: float) -> None:
        """Somebody used a grown-up's rights there."""
        if not device.used_s or abs(now_s - self._saved_s) >= SAVE_AGAIN_S:
            self._changed.set()
        device.used_s = device.seen_s = now_s
        self._move_to_end(device)

    def lock(self, device: Device) -> None:
        """It has grown-ups' rights no more."""
        device.used_s = 0.0
        self._changed.set()

    def end(self, device: str) -> None:
        """Takes it off the list: its cookie opens nothing any more."""
        if self._all.pop(device, None) is not None:
            self._changed.set()

    # --- the file ---

    async def save(self, now_s: float) -> None:
        """Writes the list, whole or not at all. `unsaved` is then why it failed."""
        async with self._writing:
            self._changed.clear()
            self._saved_s = now_s
            text = msgspec.json.encode(self.all())
            error = ""
            try:
                await asyncio.to_thread(files.write_whole, self._path, [text])
            except OSError as fault:
                error = fault.strerror or str(fault)
            if error and error != self.unsaved:
                log.warning(
                    "%s: %s; tried again every %.0f s. After a restart new devices "
                    "must enter the code, and ended ones may come back",
                    self._path,
                    error,
                    SAVE_RETRY_S,
                )
            elif self.unsaved and not error:
                log.info("%s: saved again", self._path)
            self.unsaved = error

    async def remembering(self, device: Device, now_s: float, secure: bool) -> web.Response:
        """Answers with its cookie, where no script can read it; the list is saved."""
        await self.save(now_s)
        answer = web.Response(status=204, headers=PRIVATE)
        age_s = device.until_s - int(now_s) if device.guest else PASS_S
        answer.set_cookie(
            cookie_name(secure),
            self.cookie(device),
            max_age=age_s,
            path="/",
            httponly=True,
            samesite="Strict",
            secure=secure,
        )
        return answer

    async def run(self, retry_s: float = SAVE_RETRY_S) -> None:
        """Saves the list whenever it has changed, and until that succeeds."""
        while True:
            await self._changed.wait()
            await self.save(time.time())
            if self.unsaved:
                await asyncio.sleep(retry_s)
                self._changed.set()


def _load(path: Path) -> list[Device]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[Device])
    except FileNotFoundError:
        return []
    except (OSError, ValueError, msgspec.DecodeError, RecursionError) as fault:
        log.warning("%s: %s; drivers must say the code again", path, fault)
        return []


def cookie_name(secure: bool) -> str:
    """On https a name that no page of plain http can set (RFC 6265bis, 4.1.3.2)."""
    return f"__Host-{COOKIE}" if secure else COOKIE
