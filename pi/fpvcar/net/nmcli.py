"""NetworkManager by `nmcli`: the radio of a Raspberry Pi OS.

Its terse output is made for programs (nmcli(1), --terse), and it comes with
NetworkManager: no D-Bus library on the car. A key goes in by a pipe: any user of the
computer may read the words of a command line. So does who may do this: not root, but
whom systemd/fpvcar-network.rules names to polkit.
"""

import asyncio
import contextlib
import os
import re
import uuid

from fpvcar.leash import leashed
from fpvcar.net.core import JOIN_S, Link
from fpvcar.net.radio import OWN, OWN_ADDRESS, RadioFault
from fpvcar.wire.network import Network, Security

CALL_S = 20.0
LOOK_S = 15.0
AGAIN_S = 2.0
SETTLE_S = 0.3
"""NetworkManager tells of one change in several lines."""
FIELD = re.compile(r"(?:[^:\\]|\\.)*")
NO_NM = (
    "no NetworkManager answers: sudo apt install network-manager, and "
    "systemctl status NetworkManager"
)
NO_RADIO = "this computer has no Wi-Fi that NetworkManager manages: nmcli device"
BLOCKED = (
    "Wi-Fi is switched off: sudo raspi-config nonint do_wifi_country DE (your "
    "country), or sudo nmcli radio wifi on"
)
WHY = (
    ("Secrets were required", "wrong key"),
    ("802.1X supplicant", "wrong key, or it does not answer any more"),
    ("network could not be found", "it is not in range any more"),
    ("IP configuration could not be reserved", "it gives no address"),
    ("Timeout", "no link in time (is the key right?)"),
    ("base network connection was interrupted", "its link broke"),
    ("ot authorized", "NetworkManager does not let this user: is polkitd installed?"),
)
"""What nmcli says, and what that means to who has typed a key."""
MANAGEMENT: dict[str, tuple[str, ...]] = {
    "open": (),
    "sae": ("wifi-sec.key-mgmt", "sae"),
    "wpa-psk": ("wifi-sec.key-mgmt", "wpa-psk"),
}


def fields(line: str) -> list[str]:
    """The fields of a terse line: ":" between, "\\" before a ":" or "\\" within."""
    return [re.sub(r"\\(.)", r"\1", one) for one in _split(line)]


def _split(line: str) -> list[str]:
    found, at = [], 0
    while True:
        match = FIELD.match(line, at)
        assert match  # it may be empty
        found.append(match.group())
        at = match.end() + 1
        if at > len(line):
            return found


def security_of(words: str) -> Security:
    """Of nmcli's SECURITY: "", "WPA1 WPA2", "WPA2 WPA3", "WPA3", "WEP", "OWE" ..."""
    names = set(words.replace("--", "").split())
    if not names or "OWE" in names:
        return "open"
    if "802.1X" in names or not names & {"WPA1", "WPA2", "WPA3"}:
        return "other"
    return "key"


def why(said: str) -> str:
    """What nmcli's last words mean."""
    for words, meaning in WHY:
        if words in said:
            return meaning
    first = said.strip().partition("\n")[0]  # hints follow
    return first.removeprefix("Error: ").rstrip(".") or "nmcli said nothing"


class NetworkManager:
    """The first Wi-Fi device that NetworkManager manages."""

    def __init__(self) -> None:
        self._device = ""
        self._opened: tuple[str, str] | None = None
        self._management: dict[str, str] = {}
        self._monitor: asyncio.subprocess.Process | None = None

    async def link(self) -> Link:
        """As the device's state says."""
        try:
            rows = await _table("DEVICE,TYPE,STATE,CONNECTION", "device")
        except RadioFault as fault:
            return Link("none", words=str(fault))
        radios = [row for row in rows if row[1] == "wifi"]
        radios = [row for row in radios if row[2] != "unmanaged"]
        if not radios:
            return Link("none", words=NO_RADIO)
        self._device, _, state, connection = radios[0]
        if state == "unavailable":
            return Link("none", words=BLOCKED)
        if not state.startswith("connected"):
            return Link("idle")
        if connection == OWN:
            return Link("own")
        return Link("network", await self._ssid() or connection)

    async def _ssid(self) -> str:
        rows = await self._list("no")
        return next((row[1] for row in rows if row[0] == "*"), "")

    async def _list(self, rescan: str) -> list[list[str]]:
        words = ("wifi", "list", "ifname", self._device, "--rescan", rescan)
        return await _table(
            "IN-USE,SSID,SIGNAL,SECURITY", "device", *words, within_s=LOOK_S
        )

    async def networks(self, anew: bool = True) -> list[Network]:
        """A new look; as an access point it hears only what it heard before."""
        own = (await self.link()).kind == "own"
        found: dict[str, Network] = {}
        rescan = "yes" if anew and not own else "no"
        for _, ssid, signal, security in await self._list(rescan):
            if not ssid or (ssid in found and found[ssid].strength >= int(signal)):
                continue  # hidden, or heard better elsewhere
            found[ssid] = Network(ssid, int(signal), security_of(security))
            self._management[ssid] = _management(security)
        return sorted(found.values(), key=lambda one: -one.strength)

    async def open(self, ssid: str, key: str) -> None:
        """WPA2 with CCMP alone: every phone joins it, and the firmware of a Pi's radio
        can neither WPA3 nor protected frames as an access point."""
        if self._opened != (ssid, key):
            await self._forget(OWN)
            await self._add(
                OWN, ssid, "wpa-psk", key, "connection.autoconnect", "no",
                "wifi.mode", "ap", "wifi.band", "bg", "wifi-sec.proto", "rsn",
                "wifi-sec.pairwise", "ccmp", "wifi-sec.group", "ccmp",
                "wifi-sec.pmf", "disable", "ipv4.method", "shared",
                "ipv4.addresses", f"{OWN_ADDRESS}/24", "ipv6.method", "disabled",
            )  # fmt: skip
            self._opened = (ssid, key)
        await self._up(OWN, JOIN_S)

    async def close(self) -> None:
        """NetworkManager then looks for what it knows by itself."""
        with contextlib.suppress(RadioFault):  # it is closed already
            await _nmcli("connection", "down", "id", OWN)

    async def join(self, network: Network, key: str) -> None:
        """Under a new name; what it was called before goes when this one works."""
        name = str(uuid.uuid4())
        management = self._management.get(network.ssid, "wpa-psk" if key else "open")
        # Else a wrong key is tried three times, and the phone waits outside.
        more = ("connection.autoconnect", "no", "connection.auth-retries", "1")
        try:
            await self._add(name, network.ssid, management, key, *more)
            await self._up(name, JOIN_S)
        except BaseException:
            await self._forget(name)
            raise
        called = f"fpvcar {network.ssid}"
        await self._forget(called)
        await _nmcli(
            "connection", "modify", "id", name, "connection.id", called,
            "connection.autoconnect", "yes", "connection.auth-retries", "-1",
        )  # fmt: skip

    async def _add(
        self, name: str, ssid: str, management: str, key: str, *more: str
    ) -> None:
        await _nmcli(
            "connection", "add", "type", "wifi", "ifname", self._device,
            "con-name", name, "ssid", ssid, *MANAGEMENT[management], *more,
        )  # fmt: skip
        if key:  # not by passwd-file: it gives a wrong key again and again
            lines = f"set 802-11-wireless-security.psk {key}\nsave persistent\nquit\n"
            await _nmcli("connection", "edit", "id", name, stdin=lines)

    async def _up(self, name: str, within_s: float) -> None:
        await _nmcli(
            "-w", f"{within_s:.0f}", "connection", "up", "id", name,
            within_s=within_s + CALL_S,
        )  # fmt: skip

    async def _forget(self, name: str) -> None:
        with contextlib.suppress(RadioFault):  # there is none
            await _nmcli("connection", "delete", "id", name)

    async def changed(self) -> None:
        """By `nmcli monitor`, which lives as long as we do."""
        if self._monitor is None or self._monitor.returncode is not None:
            await asyncio.sleep(AGAIN_S if self._monitor else 0.0)
            try:
                self._monitor = await _start("monitor")
            except OSError:
                await asyncio.sleep(AGAIN_S)
                return
        assert self._monitor.stdout
        await self._monitor.stdout.readline()
        await asyncio.sleep(SETTLE_S)

    async def name(self) -> str:
        """As avahi says it: a name that is taken gets a number."""
        words = ("org.freedesktop.Avahi", "/", "org.freedesktop.Avahi.Server")
        with contextlib.suppress(RadioFault):
            said = await _call("busctl", "call", *words, "GetHostNameFqdn")
            return said.strip().removeprefix("s ").strip('"')
        return ""


def _management(security: str) -> str:
    names = set(security.split())
    if security_of(security) == "open":
        return "open"
    return "sae" if "WPA3" in names and not names & {"WPA1", "WPA2"} else "wpa-psk"


async def _start(*words: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *leashed(("nmcli", *words)), stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
    )  # fmt: skip


async def _table(
    columns: str, *words: str, within_s: float = CALL_S
) -> list[list[str]]:
    """The rows of a terse table. Rows with missing or additional columns are skipped.

    nmcli prints network and connection names as they are, and a stranger chooses a
    network's name: a newline in it cuts a row in two. Other line separators of Unicode
    (U+0085, U+2028) do not end a row.
    """
    output = await _nmcli("-t", "-f", columns, *words, within_s=within_s)
    rows = map(fields, output.split("\n"))
    return [row for row in rows if len(row) == columns.count(",") + 1]


async def _nmcli(*words: str, within_s: float = CALL_S, stdin: str = "") -> str:
    return await _call("nmcli", *words, within_s=within_s, stdin=stdin)


async def _call(
    program: str, *words: str, within_s: float = CALL_S, stdin: str = ""
) -> str:
    """What a program prints. Raises RadioFault with what its last words mean."""
    try:
        process = await asyncio.create_subprocess_exec(
            program, *words, stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "LC_ALL": "C.UTF-8"},
        )  # fmt: skip
    except OSError:
        raise RadioFault(NO_NM) from None
    try:
        async with asyncio.timeout(within_s):
            out, err = await process.communicate(stdin.encode())
    except TimeoutError:
        raise RadioFault("it does not answer") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode == 8:  # nmcli(1), EXIT STATUS
        raise RadioFault(NO_NM)
    if process.returncode != 0:
        raise RadioFault(why(err.decode(errors="replace")))
    return out.decode(errors="replace")
