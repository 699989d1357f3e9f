"""Browsers for the page /hil: a headless one on this computer, or one opened by a person."""

import contextlib
import io
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator

from fpvcar.hil.rig import MissingPart
from fpvcar.runtime import pdeathsig

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
NONE = f"no browser ({', '.join(PROGRAMS)}): apt install chromium, or hil --browser"
FLAGS = (
    "--headless=new",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
AS_ROOT = ("--no-sandbox",)
"""Chromium's sandbox does not start as root; the only page it opens is the car's own."""
END_S = 5.0


def program() -> str | None:
    """Return a Chromium on this computer: $CHROMIUM, else the first of PROGRAMS."""
    named = os.environ.get("CHROMIUM")
    paths = (shutil.which(name) for name in ([named] if named else PROGRAMS))
    return next((path for path in paths if path), None)


@contextlib.contextmanager
def headless(address: str) -> Iterator[None]:
    """Show the page in a headless browser. Raises MissingPart if there is no browser."""
    browser = program()
    if browser is None:
        raise MissingPart(NONE)
    with tempfile.TemporaryDirectory(
        prefix="fpvcar-hil-browser-", ignore_cleanup_errors=True
    ) as home:
        sandbox = AS_ROOT if os.geteuid() == 0 else ()
        argv = [browser, *FLAGS, *sandbox, f"--user-data-dir={home}", address]
        process = subprocess.Popen(
            pdeathsig.with_pdeathsig(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            yield
        finally:
            pdeathsig.end(process, END_S)


def invitation(address: str) -> str:
    """Return the address as text and as a QR code for a terminal."""
    import segno  # imported late: most runs print no invitation

    picture = io.StringIO()
    segno.make(address).terminal(picture, compact=True)
    return f"Open {address} in any browser, and keep it in front.\n{picture.getvalue().rstrip()}"
