"""Start-up banner and `fpvcar code`: address, codes, a QR code for a phone's camera; and the page
in a browser of this computer."""

import asyncio
import io
import os
import sys

from fpvcar.access.codes import Codes, load_codes
from fpvcar.http import addresses, certificates
from fpvcar.runtime import paths

OPEN = "import sys, webbrowser; sys.exit(not webbrowser.open(sys.argv[1]))"


async def open_page(url: str) -> str:
    """Open a page in the browser; return "", or the next step if there is no browser.

    A process of its own does so: `webbrowser` waits for the browser, which writes to the terminal.
    """
    if not os.environ.get("DISPLAY") and not os.environ.get("WAYLAND_DISPLAY"):
        return f"No display here: open {url} in a browser (for other devices: HOST=0.0.0.0)."
    opening = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        OPEN,
        url,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    return f"No browser found: open {url} in one." if await opening.wait() else ""


def greeting(host: str, port: int, car: str, recordings: str = "", proxied: bool = False) -> str:
    """Return the banner of a car that listens at `host`; `recordings` is the profile's folder.

    If the car is `proxied`, drivers on this computer need the code, too.

    It contains the codes. They are meant for the person at the terminal and must not be logged.
    """
    codes = load_codes(paths.state_directory())
    lines = ["", f"  {car} is ready: http://{addresses.in_url(addresses.reachable(host))}:{port}/"]
    if addresses.is_loopback(host):
        lines += ["  It listens on this computer only; --host 0.0.0.0 admits phones, too."]
    else:
        address = addresses.lan_address()
        lines += _phone_lines(address, port)
        if (
            not addresses.is_loopback(address)
            and (paths.state_directory() / certificates.CERTIFICATE).exists()
        ):
            safe = f"https://{address}:{port + 1}/"
            lines += [f"  fresher picture: {safe}   (the browser warns once)"]
    if proxied or not addresses.is_loopback(host):
        lines += [f"  Drive code: {codes.drive}   (without it: watch only)"]
    lines += [f"  Grown-up code: {codes.grown_up}"]
    lines += [f"  It records in {paths.recordings_directory(recordings)}"]
    lines += ["  Arrow keys drive, Space stops. Ctrl-C ends everything.", ""]
    return "\n".join(lines)


def code_text(codes: Codes, port: int, grown_up: bool) -> str:
    """Return the drive code, on request the grown-up code, and the way to the page."""
    lines = [f"  Drive code: {codes.drive}"]
    lines += [f"  Grown-up code: {codes.grown_up}"] if grown_up else []
    return "\n".join([*lines, *_phone_lines(addresses.lan_address(), port)])


def _phone_lines(address: str, port: int) -> list[str]:
    """Return the page's address for a phone in this network, and its QR code."""
    if addresses.is_loopback(address):
        return ["  No network: phones cannot open it. Join a network, then start again."]
    import segno  # imported here: a service has no terminal, and saves 3 MB

    url, picture = f"http://{address}:{port}/", io.StringIO()
    segno.make(url).terminal(picture, compact=True)
    return [f"  on the phone:   {url}", picture.getvalue().rstrip("\n")]
