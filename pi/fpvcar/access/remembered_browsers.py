"""Devices that entered a code: a signed cookie for each, and the saved list.

    right code -> `pass` on /ws/drive -> POST /api/pass -> cookie ID.UNTIL.MAC
               -> POST /api/recordings/unlock           -> the same
    invite -> a token -> unlock {code: token}, once -> a ticket, as above
    a request's cookies -> Devices.device_of: the car's own MAC, not expired, still on the list

A driver is thus recognised after a restart of `run`, before the page sends a message. The MAC key
is derived from the car's key and its codes: new codes invalidate all cookies. A device removed from
the list stays removed, even if it has kept its cookie. Time is an argument: UTC in s.
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

from fpvcar.access.codes import Codes, Rights
from fpvcar.http.addresses import address_class
from fpvcar.http.embedding import ALONE, Embedding, cookies_of
from fpvcar.http.responses import PRIVATE
from fpvcar.runtime import files
from fpvcar.runtime.texts import Text, os_reason

FILE = "devices.json"
COOKIE = "fpvcar-pass"
FORM = re.compile(r"(?P<id>[0-9a-f]{32})\.(?P<until>[0-9]{1,12})\.(?P<mac>[0-9a-f]{64})")
PASS_S = 30 * 24 * 3600
"""Time for which a device is remembered after it entered the code."""
GROWN_UP_S = 1800.0
"""Unused grown-up rights expire after this time."""
SAVE_AGAIN_S = 300.0
"""Least seconds between two saves of the last use of grown-up rights."""
SAVE_RETRY_S = 5.0
"""Delay in seconds before a failed save is retried."""
DEVICES_MAX = 64
INVITATIONS_MAX = 8
"""Most unused invitations; further ones replace the oldest."""
INVITED = "invitation"
"""Name of a device that has not used its invitation yet."""
log = logging.getLogger("fpvcar.door")


class Device(msgspec.Struct):
    """Device that entered a code. `used_s` is the last use as a grown-up, 0 for a driver."""

    id: str
    name: str
    where: str
    seen_s: float
    until_s: int
    used_s: float = 0.0
    guest: bool = False
    """True if the rights end at `until_s`, also on pages that are open then."""
    invitation: str = ""
    """MAC of the guest's unused token; empty after use."""
    numbers_below: int = 0
    """Upper bound of the request numbers that a base station may have used."""
    later: dict[str, msgspec.Raw] = {}
    """Fields of a later version."""

    def rights(self, now_s: float) -> Rights:
        """Return the current rights of this device."""
        unused_s = now_s - self.used_s
        return Rights(True, self.used_s > 0.0 and 0.0 <= unused_s < GROWN_UP_S)


class Devices:
    """Saved list of devices, ordered by last visit with the newest at the end.

    The order selects the device to drop, independently of the clock. `run` saves the list in a
    thread after each change.
    """

    def __init__(self, key: bytes, codes: Codes, path: Path, embedding: Embedding = ALONE) -> None:
        self._own, self._embedding = key, embedding
        codes_text = f"pass {codes.drive} {codes.grown_up}".encode()
        self._key = hmac.digest(key, codes_text, "sha256")
        self._path = path
        self._all = {device.id: device for device in _load(path)}
        self._changed, self._writing = asyncio.Event(), asyncio.Lock()
        self._saved_s = 0.0
        self.unsaved: Text | None = None
        """Error of the last save."""

    def all(self) -> list[Device]:
        """Return all devices on the list."""
        return list(self._all.values())

    def get(self, device: str) -> Device | None:
        return self._all.get(device)

    def add(self, name: str, address: str, rights: Rights, now_s: float) -> Device:
        """Add a device to the list; drop the longest absent one if the list is full."""
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
        """Create an invitation: a token that lets one device drive for `minutes`. It works once.

        The invitation appears on the list at once, and can be ended there. The list stores only the
        token's MAC.
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
        """Return the invitations that are still unused."""
        return [device for device in self._all.values() if device.invitation]

    def find_invitation(self, token: str, now_s: float) -> Device | None:
        """Return the invitation of this token; None if it is used, expired or unknown."""
        mac = self._token_mac(token)
        matches = [
            device
            for device in self.invitations()
            if hmac.compare_digest(device.invitation, mac) and now_s < device.until_s
        ]
        return matches[0] if matches else None

    def accept_invitation(self, guest: Device, name: str, address: str, now_s: float) -> None:
        """Mark an invitation as used by this device; its token is invalid from now on."""
        guest.invitation, guest.where = "", address_class(address)
        self.note_visit(guest, name, now_s)
        self._changed.set()

    def make_permanent(self, device: Device, now_s: float) -> None:
        """Remember a guest as long as other devices, after a code was entered."""
        device.guest, device.until_s = False, int(now_s) + PASS_S
        self._changed.set()

    def expired_guests(self, now_s: float) -> list[Device]:
        """Return the guests with an expired time limit."""
        return [device for device in self.all() if device.guest and now_s >= device.until_s]

    def _token_mac(self, token: str) -> str:
        message = b"invitation " + token.encode(errors="surrogatepass")
        return hmac.new(self._key, message, "sha256").hexdigest()

    def cookie(self, device: Device) -> str:
        """Return the signed cookie that identifies this device."""
        return f"{device.id}.{device.until_s}.{self._mac(device.id, device.until_s)}"

    def _mac(self, device: str, until_s: int) -> str:
        return hmac.new(self._key, f"{device}.{until_s}".encode(), "sha256").hexdigest()

    def device_of(self, request: web.Request, now_s: float) -> Device | None:
        """Return the device of a request, None without a valid cookie.

        The cookie with the secure name is checked first.
        """
        devices = (self.find(cookie, now_s) for cookie in cookies_of(request, COOKIE))
        return next((device for device in devices if device), None)

    def find(self, cookie: str, now_s: float) -> Device | None:
        """Return the device of a cookie; None if it is forged, expired, or removed from the
        list."""
        match = FORM.fullmatch(cookie)
        if match is None:
            return None
        until_s = int(match["until"])
        good = hmac.compare_digest(self._mac(match["id"], until_s), match["mac"])
        return self._all.get(match["id"]) if good and now_s < until_s else None

    def note_visit(self, device: Device, name: str, now_s: float) -> None:
        """Record that the device's page is connected, or was until now."""
        device.name, device.seen_s = name, now_s
        self._move_to_end(device)

    def note_use(self, device: Device, now_s: float) -> None:
        """Record that grown-up rights were used on this device."""
        if not device.used_s or abs(now_s - self._saved_s) >= SAVE_AGAIN_S:
            self._changed.set()
        device.used_s = device.seen_s = now_s
        self._move_to_end(device)

    def lock(self, device: Device) -> None:
        """Withdraw the device's grown-up rights."""
        device.used_s = 0.0
        self._changed.set()

    def end(self, device: str) -> None:
        """Remove a device from the list; its cookie becomes invalid."""
        if self._all.pop(device, None) is not None:
            self._changed.set()

    # --- the file ---

    async def save(self, now_s: float) -> None:
        """Write the list atomically; on failure `unsaved` holds the error."""
        async with self._writing:
            self._changed.clear()
            self._saved_s = now_s
            text = msgspec.json.encode([files.encoded(device) for device in self.all()])
            error = None
            try:
                await asyncio.to_thread(files.write_whole, self._path, [text])
            except OSError as fault:
                error = os_reason(fault)
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

    async def cookie_response(
        self, device: Device, now_s: float, request: web.Request
    ) -> web.Response:
        """Save the list and answer with the device's cookie, hidden from scripts."""
        await self.save(now_s)
        age_s = device.until_s - int(now_s) if device.guest else PASS_S
        cookie = self._embedding.cookie(request, COOKIE, self.cookie(device), age_s)
        return web.Response(status=204, headers={**PRIVATE, "Set-Cookie": cookie})

    async def run(self, retry_s: float = SAVE_RETRY_S) -> None:
        """Save the list after each change; retry until it succeeds."""
        while True:
            await self._changed.wait()
            await self.save(time.time())
            if self.unsaved:
                await asyncio.sleep(retry_s)
                self._changed.set()


def _load(path: Path) -> list[Device]:
    unreadable = "%s: %s; drivers must enter the code again"
    devices: list[Device] = []
    try:
        for entry in msgspec.json.decode(path.read_bytes(), type=list[msgspec.Raw]):
            try:
                devices.append(files.decoded(entry, Device))
            except (ValueError, msgspec.DecodeError) as fault:  # the others stay
                log.warning(unreadable, path, fault)
    except FileNotFoundError:
        pass
    except (OSError, ValueError, msgspec.DecodeError, RecursionError) as fault:
        log.warning(unreadable, path, fault)
    return devices
