"""Where files are: the program's own, those of one run, and those that outlive it.

The program's own stand in the checkout, or in the installed package.
"""

import os
import stat
import tempfile
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


def _own(name: str) -> Path:
    installed = _PACKAGE / name
    return installed if installed.is_dir() else _PACKAGE.parent.parent / name


WEB = _own("web")
HARDWARE = _own("hardware")


def runtime_directory() -> Path:
    """$RUNTIME_DIRECTORY (set by systemd and by the bench), else one of our own.

    Our own is private to this user: whoever holds the socket in it drives the motors.
    Raises OSError if anybody else could write there.
    """
    given = os.environ.get("RUNTIME_DIRECTORY")
    if given:
        path = Path(given)
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path
    user = os.getuid()
    path = Path(tempfile.gettempdir()) / f"fpvcar-{user}"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    refuse_shared(path, user)
    return path


def refuse_shared(path: Path, user: int) -> None:
    """Raises OSError unless `path` is a directory of this user's and nobody else's."""
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise OSError(f"{path}: expected a directory of our own; set RUNTIME_DIRECTORY")
    mode = stat.S_IMODE(found.st_mode)
    if found.st_uid != user or mode & 0o077:
        raise OSError(
            f"{path}: owner {found.st_uid}, mode {mode:04o} (expected {user}, 0700); "
            "remove it, or set RUNTIME_DIRECTORY"
        )


def state_directory() -> Path:
    """$STATE_DIRECTORY (set by systemd), else ~/.local/state/fpvcar.

    It is made if it is absent, readable by its owner only.
    """
    given = os.environ.get("STATE_DIRECTORY")
    base = os.environ.get("XDG_STATE_HOME")
    path = (
        Path(given)
        if given
        else (Path(base) if base else Path.home() / ".local" / "state") / "fpvcar"
    )
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def recordings_directory(chosen: str) -> Path:
    """Where a car records: as its profile says, or beside its codes. Not made here."""
    return Path(chosen or state_directory() / "recordings").expanduser()
