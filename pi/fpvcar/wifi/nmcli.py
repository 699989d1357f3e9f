"""NetworkManager through `nmcli`: the radio of Raspberry Pi OS.

The terse output is stable for programs (nmcli(1), --terse), and nmcli ships with NetworkManager, so
the car needs no D-Bus library. A key is passed through a pipe, because any user of the computer can
read command lines. The caller is not root; systemd/fpvcar-network.rules permits it in polkit.
"""

import asyncio
import contextlib
import os
import uuid

from fpvcar.runtime.pdeathsig import with_pdeathsig
from fpvcar.runtime.texts import PROGRAM_SILENT, VERBATIM, Text, fault_text
from fpvcar.wifi.core import FAR, JOIN_S, KEY_WRONG, Link
from fpvcar.wifi.radio import OWN, OWN_ADDRESS, RadioFault
from fpvcar.wire.network import Network, Security, nmcli_fields

CALL_S = 20.0
SCAN_S = 15.0
RETRY_S = 2.0
SETTLE_S = 0.3
"""NetworkManager reports one change in several lines."""
NO_NM = Text(
    "wifi_no_manager",
    "NetworkManager does not answer: sudo apt install network-manager, and "
    "systemctl status NetworkManager",
)
NO_RADIO = Text(
    "wifi_no_radio", "NetworkManager manages no Wi-Fi device of this computer: nmcli device"
)
BLOCKED = Text(
    "wifi_off",
    "Wi-Fi is switched off: sudo raspi-config nonint do_wifi_country DE (your "
    "country), or sudo nmcli radio wifi on",
)
WHY = (
    ("Secrets were required", KEY_WRONG),
    (
        "802.1X supplicant",
        Text("wifi_key_or_silent", "wrong key, or the network stopped answering"),
    ),
    ("network could not be found", FAR),
    (
        "IP configuration could not be reserved",
        Text("wifi_no_address", "the network assigns no address"),
    ),
    ("Timeout", Text("wifi_late", "no link in time (is the key right?)")),
    ("base network connection was interrupted", Text("wifi_broken", "connection lost")),
    (
        "ot authorized",
        Text("wifi_denied", "NetworkManager denies access to this user: is polkitd installed?"),
    ),
)
"""Messages of nmcli, translated for people who type a key."""
MANAGEMENT: dict[str, tuple[str, ...]] = {
    "open": (),
    "sae": ("wifi-sec.key-mgmt", "sae"),
    "wpa-psk": ("wifi-sec.key-mgmt", "wpa-psk"),
}


def security_of(security: str) -> Security:
    """Classify nmcli's SECURITY: "", "WPA1 WPA2", "WPA2 WPA3", "WPA3", "WEP", "OWE" ..."""
    names = set(security.replace("--", "").split())
    if not names or "OWE" in names:
        return "open"
    if "802.1X" in names or not names & {"WPA1", "WPA2", "WPA3"}:
        return "other"
    return "key"


def why(message: str) -> Text:
    """Translate nmcli's last message for the user."""
    for text, meaning in WHY:
        if text in message:
            return meaning
    first = message.strip().partition("\n")[0]  # hints follow on later lines
    return VERBATIM(text=first.removeprefix("Error: ").rstrip(".") or "nmcli printed no message")


class NetworkManager:
    """First Wi-Fi device that NetworkManager manages."""

    def __init__(self) -> None:
        self._device = ""
        self._opened: tuple[str, str] | None = None
        self._management: dict[str, str] = {}
        self._monitor: asyncio.subprocess.Process | None = None

    async def link(self) -> Link:
        """Return the state of the device."""
        try:
            rows = await _table("DEVICE,TYPE,STATE,CONNECTION", "device")
        except RadioFault as fault:
            return Link("none", reason=fault_text(fault))
        radios = [row for row in rows if row[1] == "wifi" and row[2] != "unmanaged"]
        if not radios:
            return Link("none", reason=NO_RADIO)
        self._device, _, state, connection = radios[0]
        if state == "unavailable":
            return Link("none", reason=BLOCKED)
        if not state.startswith("connected"):
            return Link("idle")
        if connection == OWN:
            return Link("own")
        return Link("network", await self._ssid() or connection)

    async def _ssid(self) -> str:
        rows = await self._list("no")
        return next((row[1] for row in rows if row[0] == "*"), "")

    async def _list(self, rescan: str) -> list[list[str]]:
        arguments = ("wifi", "list", "ifname", self._device, "--rescan", rescan)
        return await _table("IN-USE,SSID,SIGNAL,SECURITY", "device", *arguments, within_s=SCAN_S)

    async def networks(self, anew: bool = True) -> list[Network]:
        """Scan. As an access point the radio returns its previous scan."""
        own = (await self.link()).kind == "own"
        networks: dict[str, Network] = {}
        rescan = "yes" if anew and not own else "no"
        for _, ssid, signal, security in await self._list(rescan):
            if not ssid or (ssid in networks and networks[ssid].strength >= int(signal)):
                continue  # hidden, or a stronger access point of the same network
            networks[ssid] = Network(ssid, int(signal), security_of(security))
            self._management[ssid] = _management(security)
        return sorted(networks.values(), key=lambda network: -network.strength)

    async def open(self, ssid: str, key: str) -> None:
        """Open a WPA2 network with CCMP only: every phone can join it. As an access point the
        firmware of a Pi's radio supports neither WPA3 nor protected management frames."""
        if self._opened != (ssid, key):
            await self._forget(OWN)
            await self._add(
                OWN,
                ssid,
                "wpa-psk",
                key,
                "connection.autoconnect",
                "no",
                "wifi.mode",
                "ap",
                "wifi.band",
                "bg",
                "wifi-sec.proto",
                "rsn",
                "wifi-sec.pairwise",
                "ccmp",
                "wifi-sec.group",
                "ccmp",
                "wifi-sec.pmf",
                "disable",
                "ipv4.method",
                "shared",
                "ipv4.addresses",
                f"{OWN_ADDRESS}/24",
                "ipv6.method",
                "disabled",
            )
            self._opened = (ssid, key)
        await self._up(OWN, JOIN_S)

    async def close(self) -> None:
        """Close the network; NetworkManager then searches for known ones by itself."""
        with contextlib.suppress(RadioFault):  # already closed
            await _nmcli("connection", "down", "id", OWN)

    async def join(self, network: Network, key: str) -> None:
        """Join under a new connection name; the previous connection is deleted after success."""
        name = str(uuid.uuid4())
        management = self._management.get(network.ssid, "wpa-psk" if key else "open")
        # By default a wrong key is tried three times while the phone waits.
        more = ["connection.autoconnect", "no", "connection.auth-retries", "1"]
        if network.ssid not in self._management:  # hidden: only a probe for its name finds it
            more += ["802-11-wireless.hidden", "yes"]
        try:
            await self._add(name, network.ssid, management, key, *more)
            await self._up(name, JOIN_S)
        except BaseException:
            await self._forget(name)
            raise
        connection = f"fpvcar {network.ssid}"
        await self._forget(connection)
        await _nmcli(
            "connection",
            "modify",
            "id",
            name,
            "connection.id",
            connection,
            "connection.autoconnect",
            "yes",
            "connection.auth-retries",
            "-1",
        )

    async def _add(self, name: str, ssid: str, management: str, key: str, *more: str) -> None:
        await _nmcli(
            "connection",
            "add",
            "type",
            "wifi",
            "ifname",
            self._device,
            "con-name",
            name,
            "ssid",
            ssid,
            *MANAGEMENT[management],
            *more,
        )
        if key:  # not by passwd-file: it would supply a wrong key again and again
            lines = f"set 802-11-wireless-security.psk {key}\nsave persistent\nquit\n"
            await _nmcli("connection", "edit", "id", name, stdin=lines)

    async def _up(self, name: str, within_s: float) -> None:
        await _nmcli(
            "-w", f"{within_s:.0f}", "connection", "up", "id", name, within_s=within_s + CALL_S
        )

    async def _forget(self, name: str) -> None:
        with contextlib.suppress(RadioFault):  # no such connection
            await _nmcli("connection", "delete", "id", name)

    async def changed(self) -> None:
        """Wait for a line of `nmcli monitor`, which lives as long as this process."""
        if self._monitor is None or self._monitor.returncode is not None:
            await asyncio.sleep(RETRY_S if self._monitor else 0.0)
            try:
                self._monitor = await _start("monitor")
            except OSError:
                await asyncio.sleep(RETRY_S)
                return
        assert self._monitor.stdout
        await self._monitor.stdout.readline()
        await asyncio.sleep(SETTLE_S)

    async def name(self) -> str:
        """Return the name that avahi announces: it adds a number to a name in use."""
        arguments = ("org.freedesktop.Avahi", "/", "org.freedesktop.Avahi.Server")
        with contextlib.suppress(RadioFault):
            output = await _call("busctl", "call", *arguments, "GetHostNameFqdn")
            return output.strip().removeprefix("s ").strip('"')
        return ""


def _management(security: str) -> str:
    names = set(security.split())
    if security_of(security) == "open":
        return "open"
    return "sae" if "WPA3" in names and not names & {"WPA1", "WPA2"} else "wpa-psk"


async def _start(*arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *with_pdeathsig(("nmcli", *arguments)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
    )


async def _table(columns: str, *arguments: str, within_s: float = CALL_S) -> list[list[str]]:
    """Return the rows of a terse table. Rows with missing or additional columns are skipped.

    nmcli prints network and connection names as they are, and a stranger chooses a
    network's name: a newline in it cuts a row in two. Other line separators of Unicode
    (U+0085, U+2028) do not end a row.
    """
    output = await _nmcli("-t", "-f", columns, *arguments, within_s=within_s)
    rows = map(nmcli_fields, output.split("\n"))
    return [row for row in rows if len(row) == columns.count(",") + 1]


async def _nmcli(*arguments: str, within_s: float = CALL_S, stdin: str = "") -> str:
    return await _call("nmcli", *arguments, within_s=within_s, stdin=stdin)


async def _call(program: str, *arguments: str, within_s: float = CALL_S, stdin: str = "") -> str:
    """Return the output of a program. Raises RadioFault with its translated error message."""
    try:
        process = await asyncio.create_subprocess_exec(
            program,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "LC_ALL": "C.UTF-8"},
        )
    except OSError:
        raise RadioFault(NO_NM) from None
    except ValueError as fault:  # a character that no argument can have
        raise RadioFault(str(fault)) from None
    try:
        async with asyncio.timeout(within_s):
            out, err = await process.communicate(stdin.encode())
    except TimeoutError:
        raise RadioFault(PROGRAM_SILENT(program=program)) from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode == 8:  # nmcli(1), EXIT STATUS
        raise RadioFault(NO_NM)
    if process.returncode != 0:
        raise RadioFault(why(err.decode(errors="replace")))
    return out.decode(errors="replace")
