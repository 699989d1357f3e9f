"""Snapshots of a store, made by the usual tool of its file system.

    btrfs   btrbk    STORE/.snapshots/store.20261127T140000+0000
    zfs     sanoid   STORE/.zfs/snapshot/autosnap_2026-11-27_14:00:00_hourly

The files for sanoid are a template: they were never run, as ZFS needs a kernel module of its own.

A snapshot shares its blocks with the store, so it is no second copy: it keeps deleted and changed
files, but no file that the disk damages.
"""

import datetime
import os
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from fpvstation.errors import StationError, require

SNAPSHOTS, BASE_NAME = ".snapshots", "store"
KEEP = "48h 30d"
KEPT = re.compile(r"\d{1,4}[hdwmy]( \d{1,4}[hdwmy])*")
PLAIN_PATH = re.compile(r"[\w./+@-]+", re.ASCII)
SUBVOLUME_INODE = 256
"""Inode number of the root of each btrfs subvolume."""
UNIT = "fpvstation-snapshots"
PERIODS = {"h": "hourly", "d": "daily", "w": "weekly", "m": "monthly", "y": "yearly"}
BTRBK_CONF = """\
# Written by `fpvstation snapshots setup`.
timestamp_format       long-iso
snapshot_create        onchange
snapshot_preserve_min  latest
snapshot_preserve      {keep}
lockfile               /run/lock/{unit}.lock
snapshot_dir           {store}/{folder}
subvolume              {store}
  snapshot_name        {name}
"""
SANOID_CONF = """\
# Written by `fpvstation snapshots setup`.
[{dataset}]
use_template = fpvstation

[template_fpvstation]
autosnap = yes
autoprune = yes
{keep}
"""
SERVICE = """\
# Written by `fpvstation snapshots setup`.
[Unit]
Description=fpvcar: snapshot of the store
RequiresMountsFor={store}

[Service]
Type=oneshot
{commands}
Nice=19
IOSchedulingClass=idle
NoNewPrivileges=yes
PrivateTmp=yes
ProtectKernelModules=yes
"""
TIMER = """\
# Written by `fpvstation snapshots setup`.
[Unit]
Description=fpvcar: snapshot of the store, once an hour

[Timer]
OnCalendar=hourly
Persistent=yes

[Install]
WantedBy=timers.target
"""


class Snapshot(NamedTuple):
    """Snapshot of a whole store, and its time, UTC."""

    path: Path
    at_s: float


class Tool(NamedTuple):
    """Program that makes and expires the snapshots of one file system."""

    program: str
    folder: str
    """Folder of the snapshots, in the store."""
    pattern: re.Pattern[str]
    time_format: str
    """Pattern of a snapshot's name, and the format of the time in its group."""
    prepare: Callable[[Path], None]
    """Prepare a store. Raises StationError, OSError."""
    configuration: Callable[[Path, str], tuple[str, str]]
    """Return path and content of the configuration for a store and a retention; the path is
    relative to /etc."""
    command: str
    """Command line, for the configuration at {}."""


def snapshots_of(store: Path) -> list[Snapshot]:
    """Return all snapshots of a store, oldest first; [] for a store without any."""
    found = []
    for tool in TOOLS.values():
        folder = store / tool.folder
        names = os.listdir(folder) if folder.is_dir() else []
        for match in filter(None, map(tool.pattern.fullmatch, names)):
            made = datetime.datetime.strptime(match[1], tool.time_format)
            utc = made if made.tzinfo else made.replace(tzinfo=datetime.UTC)
            found.append(Snapshot(folder / match[0], utc.timestamp()))
    return sorted(found, key=lambda snapshot: (snapshot.at_s, snapshot.path))


def set_up(store: Path, etc: Path, keep: str, send: str) -> list[Path]:
    """Prepare a store for hourly snapshots; write the configuration and a timer below `etc`.
    `send`: a command to run after each snapshot, or "". Return the files that have changed.
    Raises StationError, OSError."""
    if not KEPT.fullmatch(keep):
        raise StationError(f'"{keep[:80]}" refused: expected a retention such as "{KEEP}"')
    if not PLAIN_PATH.fullmatch(str(store)):
        raise StationError(
            f'"{store}" refused: the path of a store with snapshots has letters, digits and '
            "./+@_- only"
        )
    kind = file_system(store)
    tool = TOOLS.get(kind)
    if tool is None:
        raise StationError(
            f"{store} is on {kind}: snapshots need btrfs or ZFS; move the store to such a disk"
        )
    program = require(tool.program)
    if not os.access(etc, os.W_OK):
        raise StationError(f"{etc} is not writable: run this command as root, with sudo")
    tool.prepare(store)
    name, configuration = tool.configuration(store, keep)
    commands = [f"{program} {tool.command.format(etc / name)}", send]
    lines = "\n".join(f"ExecStart={command}" for command in commands if command)
    units = etc / "systemd/system"
    contents = {
        etc / name: configuration,
        units / f"{UNIT}.service": SERVICE.format(store=store, commands=lines),
        units / f"{UNIT}.timer": TIMER,
    }
    return [path for path, text in contents.items() if _write(path, text)]


def _write(path: Path, text: str) -> bool:
    """Write a file whose content differs; return whether it did."""
    if path.exists() and path.read_text() == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return True


def file_system(path: Path) -> str:
    return _mount(path, "FSTYPE")


def _mount(path: Path, column: str) -> str:
    """Return a column of the mount that a path is on. Raises StationError."""
    argv = [require("findmnt", "mount"), "-n", "-o", column, "--target", str(path)]
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode:
        raise StationError(f"{path}: no such folder: name a store with --store DIR")
    return done.stdout.split()[-1]


def _prepare_btrfs(store: Path) -> None:
    btrfs = require("btrfs", "btrfs-progs")
    if store.stat().st_ino != SUBVOLUME_INODE:
        raise StationError(
            f"{store} is a folder, and snapshots need a subvolume; stop the station, then run\n"
            f"  mv {store} {store}.old && btrfs subvolume create {store} && "
            f"cp -a --reflink=always {store}.old/. {store}/"
        )
    # A subvolume, too: otherwise each snapshot would change the store, and cause the next one.
    folder = store / SNAPSHOTS
    if not folder.exists() and os.access(store, os.W_OK):
        argv = [btrfs, "subvolume", "create", str(folder)]
        done = subprocess.run(argv, capture_output=True, text=True)
        if done.returncode:
            raise StationError(f"{folder}: {done.stderr.strip()}")
    if not os.access(folder if folder.exists() else store, os.W_OK):
        raise StationError(f"{folder} is read-only: mount its disk with -o rw")
    if folder.stat().st_ino != SUBVOLUME_INODE:
        raise StationError(f"{folder} is a folder, expected a subvolume: move it away")


def _btrbk(store: Path, keep: str) -> tuple[str, str]:
    text = BTRBK_CONF.format(keep=keep, unit=UNIT, store=store, folder=SNAPSHOTS, name=BASE_NAME)
    return "btrbk/fpvstation.conf", text


def _sanoid(store: Path, keep: str) -> tuple[str, str]:
    return sanoid_configuration(_mount(store, "SOURCE"), keep)


def sanoid_configuration(dataset: str, keep: str) -> tuple[str, str]:
    """Return path and content of a configuration of sanoid, for a ZFS dataset."""
    kept: Mapping[str, str] = {period[-1]: period[:-1] for period in keep.split()}
    lines = "\n".join(f"{PERIODS[unit]} = {kept.get(unit, 0)}" for unit in PERIODS)
    return "sanoid/fpvstation/sanoid.conf", SANOID_CONF.format(dataset=dataset, keep=lines)


TOOLS = {
    "btrfs": Tool(
        "btrbk",
        SNAPSHOTS,
        re.compile(rf"{BASE_NAME}\.(\d{{8}}T\d{{6}}[+-]\d{{4}})(?:_\d+)?"),
        "%Y%m%dT%H%M%S%z",
        _prepare_btrfs,
        _btrbk,
        "-q -c {} run",
    ),
    "zfs": Tool(
        "sanoid",
        ".zfs/snapshot",
        re.compile(r"autosnap_(\d{4}-\d\d-\d\d_\d\d:\d\d:\d\d)_[a-z]+"),
        "%Y-%m-%d_%H:%M:%S",
        lambda store: None,
        _sanoid,
        "--cron --configdir={0.parent}",
    ),
}
"""Tools by type of file system, as in findmnt(8)."""
