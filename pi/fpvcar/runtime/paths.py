"""Paths of files: the program's own, those of one run, and the persistent ones.

The program's own files are in the checkout, or in the installed package.
"""

import os
import stat
import tempfile
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
OLD_NAMES = "old-names"
"""File in the run-time directory: host names before setup changed them, until a reboot."""


def _own(name: str) -> Path:
    installed = _PACKAGE / name
    return installed if installed.is_dir() else _PACKAGE.parent.parent / name


WEB = _own("web")
HARDWARE = _own("hardware")


def runtime_directory() -> Path:
    """Return $RUNTIME_DIRECTORY (set by systemd and by the bench), or a private directory.

    The private directory belongs to this user alone, as access to its socket means control of the
    motors. Raises OSError if other users could write there.
    """
    from_systemd = os.environ.get("RUNTIME_DIRECTORY")
    if from_systemd:
        path = Path(from_systemd)
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path
    user = os.getuid()
    path = Path(tempfile.gettempdir()) / f"fpvcar-{user}"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    refuse_shared(path, user)
    return path


def refuse_shared(path: Path, user: int) -> None:
    """Raise OSError unless `path` is a directory with access for this user only."""
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise OSError(f"{path}: expected a directory; set RUNTIME_DIRECTORY")
    mode = stat.S_IMODE(status.st_mode)
    if status.st_uid != user or mode & 0o077:
        raise OSError(
            f"{path}: owner {status.st_uid}, mode {mode:04o} (expected {user}, 0700); "
            "remove it, or set RUNTIME_DIRECTORY"
        )


def state_directory() -> Path:
    """Return $STATE_DIRECTORY (set by systemd), or ~/.local/state/fpvcar.

    An absent directory is created, readable by its owner only.
    """
    from_systemd = os.environ.get("STATE_DIRECTORY")
    base = os.environ.get("XDG_STATE_HOME")
    path = (
        Path(from_systemd)
        if from_systemd
        else (Path(base) if base else Path.home() / ".local" / "state") / "fpvcar"
    )
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def recordings_directory(chosen: str) -> Path:
    """Return the folder of recordings: the profile's, or the one beside the codes. Does not
    create it."""
    return Path(chosen or state_directory() / "recordings").expanduser()
