"""Where the program's own files are: in the checkout, or in the installed package."""

import os
import tempfile
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def _own(name: str) -> Path:
    installed = _PACKAGE / name
    return installed if installed.is_dir() else _PACKAGE.parent.parent / name


WEB = _own("web")
HARDWARE = _own("hardware")


def runtime_directory() -> Path:
    """$RUNTIME_DIRECTORY (set by systemd and by the bench), else one of our own."""
    given = os.environ.get("RUNTIME_DIRECTORY")
    path = Path(given) if given else Path(tempfile.gettempdir()) / "fpvcar"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path
