"""Verb `fpvcar network`: the Wi-Fi service of the car, and its state.

serve: the service (fpvcar-network.service). show: the current network, and the car's own network
with its key and a QR code for a phone's camera. portal: the redirect to the page in the car's own
network (fpvcar-portal.service).
"""

import asyncio
import contextlib
import os
import signal
import socket
import sys
import time
from pathlib import Path

from fpvcar.config import ConfigError
from fpvcar.runtime import paths
from fpvcar.wifi.core import Machine
from fpvcar.wifi.radio import OWN_ADDRESS
from fpvcar.wifi.service import Service, load_key, own_network, serve, wifi_text
from fpvcar.wire.errors import WireError
from fpvcar.wire.network import LINE_MAX, SOCKET, NetworkState, parse_state

ANSWER_S = 5.0
UNIT = Path("/run/fpvcar") / SOCKET
LISTEN_FD = 3
"""Value of SD_LISTEN_FDS_START of sd_listen_fds(3)."""


def show(key: bool = False) -> int:
    """Print the state. `key`: show the key without asking. Raises ConfigError, OSError."""
    path = paths.runtime_directory() / SOCKET
    state = asyncio.run(_state(path if path.exists() else UNIT))
    print(text(state, key or _agreed()))
    return 0


def serve_car(name: str, opens: bool) -> int:
    """Run the service. `opens`: the car may open a network of its own. Raises OSError."""
    address = _activated() or paths.runtime_directory() / SOCKET
    return asyncio.run(_serve(name, opens, address))


def lead() -> int:
    """Redirect the requests at the unit's socket to the page. Raises ConfigError."""
    from fpvcar.wifi import portal

    listener = _activated()
    if listener is None:
        raise ConfigError("network portal: fpvcar-portal.socket starts it")
    asyncio.run(portal.serve(listener))
    return 0


def _activated() -> socket.socket | None:
    """Return the socket of the unit that started this process, None without one."""
    if os.environ.get("LISTEN_PID") != str(os.getpid()):
        return None
    return socket.socket(fileno=LISTEN_FD)


async def _serve(name: str, opens: bool, address: Path | socket.socket) -> int:
    from fpvcar.wifi.nmcli import NetworkManager

    own = own_network(name, load_key(paths.state_directory()))
    service = Service(Machine(opens, time.monotonic()), NetworkManager(), own, f"{name}.local")
    working = asyncio.create_task(serve(service, address))
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, working.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await working
    return 0


def _agreed() -> bool:
    """Return whether the user lets the key be shown; without a terminal it stays hidden."""
    if not sys.stdin.isatty():
        return False
    question = "Other readers of this screen could join the car's network. Show its key [y/N]? "
    print(question, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


async def _state(path: Path) -> NetworkState:
    try:
        async with asyncio.timeout(ANSWER_S):
            reader, writer = await asyncio.open_unix_connection(path, limit=LINE_MAX)
            state = parse_state(await reader.readline())
            writer.close()
    except (OSError, WireError) as fault:
        reason = getattr(fault, "strerror", None) or str(fault)
        raise ConfigError(
            f"{path}: {reason or f'no answer for {ANSWER_S:g} s'}; check that "
            "fpvcar-network.service is running, and use sudo"
        ) from None
    return state


def text(state: NetworkState, key: bool) -> str:
    """Return the state for a terminal: the car's network, and how a phone joins the car's own.

    Without `key` the text contains no key.
    """
    import io

    import segno

    phases = {
        "own": f"The car has a network of its own, {state.own.ssid}.",
        "opening": f"The car is opening a network of its own, {state.own.ssid}.",
        "known": f"The car is in the network {state.ssid}.",
        "joining": f"The car is joining the network {state.ssid}.",
        "searching": "The car is searching for known networks.",
        "failed": f"The car failed to join the network {state.ssid}.",
        "absent": "The car has no Wi-Fi.",
    }
    lines = [phases[state.phase]]
    if state.reason:
        lines += [f"  Reason: {state.reason}"]
    if state.name:
        lines += [f"  Pages: http://{state.name}:8080/"]
    own = state.own
    if not key:
        lines += [f"Without a known network it opens its own: {own.ssid}"]
        return "\n".join([*lines, "  Show its key: sudo fpvcar network show --key"])
    picture = io.StringIO()
    segno.make(wifi_text(own.ssid, own.key)).terminal(picture, compact=True)
    lines += [f"Without a known network it opens its own: {own.ssid}, key {own.key}"]
    lines += [picture.getvalue().rstrip("\n")]
    lines += [f"  then open http://{OWN_ADDRESS}:8080/. Keep a photograph of this."]
    return "\n".join(lines)
