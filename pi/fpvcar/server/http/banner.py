"""Start-up banner for a terminal: address, codes, and a QR code for a phone's camera."""

import io

from fpvcar.runtime import paths
from fpvcar.server.auth import access, credentials


def reachable(host: str) -> str:
    """Return a host name that reaches, from this machine, a server listening at `host`."""
    return "localhost" if host in ("", "0.0.0.0", "::", "127.0.0.1") else host


def in_url(host: str) -> str:
    """Format a host for a URL: IPv6 addresses in brackets, with the zone behind %25 (RFC 6874)."""
    return f"[{host.replace('%', '%25')}]" if ":" in host else host


def greeting(host: str, port: int, car: str, recordings: str = "") -> str:
    """Return the banner of a car that listens at `host`; `recordings` is the profile's folder.

    It contains the codes. They are meant for the person at the terminal and must not be logged.
    """
    codes = credentials.load_codes(paths.state_directory())
    lines = ["", f"  {car} is ready: http://{in_url(reachable(host))}:{port}/"]
    if access.is_loopback(host):
        lines += ["  It listens on this computer only; --host 0.0.0.0 admits phones, too."]
    else:
        address = access.lan_address()
        url = f"http://{address}:{port}/"
        if access.is_loopback(address):
            lines += ["  No network: phones cannot open it. Join a network, then start again."]
        else:
            import segno  # imported here: a service has no terminal, and saves 3 MB

            picture = io.StringIO()
            segno.make(url).terminal(picture, compact=True)
            lines += [f"  on the phone:   {url}", picture.getvalue().rstrip("\n")]
        if (
            not access.is_loopback(address)
            and (paths.state_directory() / credentials.CERTIFICATE).exists()
        ):
            safe = f"https://{address}:{port + 1}/"
            lines += [f"  fresher picture: {safe}   (the browser warns once)"]
        lines += [f"  Drive code: {codes.drive}   (without it: watch only)"]
    lines += [f"  Grown-ups' code: {codes.grown_up}"]
    lines += [f"  It records in {paths.recordings_directory(recordings)}"]
    lines += ["  Arrow keys drive, Space stops. Ctrl-C ends everything.", ""]
    return "\n".join(lines)
