"""What a terminal shows when the car can be driven: where, with which code, a picture
of the address for a phone's camera.
"""

import io

from fpvcar.runtime import paths
from fpvcar.server.auth import access, credentials


def reachable(host: str) -> str:
    """Where, on this machine, that which listens at `host` answers."""
    return "localhost" if host in ("", "0.0.0.0", "::", "127.0.0.1") else host


def in_url(host: str) -> str:
    """An IPv6 address stands in brackets, its zone behind %25 (RFC 6874)."""
    return f"[{host.replace('%', '%25')}]" if ":" in host else host


def greeting(host: str, port: int, car: str, recordings: str = "") -> str:
    """The lines for a car that listens at `host`; `recordings` is the profile's folder.

    The codes are among them: they are for whoever sits at the terminal, not for a log.
    """
    codes = credentials.load_codes(paths.state_directory())
    lines = ["", f"  {car} is ready: http://{in_url(reachable(host))}:{port}/"]
    if access.is_loopback(host):
        lines += ["  Only this computer sees it; with --host 0.0.0.0 phones do, too."]
    else:
        import segno  # here: a service has no terminal, and is spared 3 MB

        url = f"http://{access.lan_address()}:{port}/"
        picture = io.StringIO()
        segno.make(url).terminal(picture, compact=True)
        lines += [f"  on the phone:   {url}", picture.getvalue().rstrip("\n")]
        if (paths.state_directory() / credentials.CERTIFICATE).exists():
            safe = f"https://{access.lan_address()}:{port + 1}/"
            lines += [f"  fresher picture: {safe}   (the browser warns once)"]
        lines += [f"  Drive code: {codes.drive}   (without it everybody only watches)"]
    lines += [f"  Grown-ups' code: {codes.grown_up}"]
    lines += [f"  It records in {paths.recordings_directory(recordings)}"]
    lines += ["  Arrow keys drive, Space stops. Ctrl-C ends everything.", ""]
    return "\n".join(lines)
