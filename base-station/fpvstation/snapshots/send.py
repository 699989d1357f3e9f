"""Snapshots sent to another host. A cut at any byte continues, unlike `btrfs send | receive`.

    btrfs send -> .snapshots/.outgoing/NAME.UUID.PARENT.SHA256.stream
            -> rdcp, which resumes -> DIR/.incoming/NAME.stream there
            -> sha256sum and btrfs receive there, received_uuid compared, synced
            -> both files deleted

A snapshot counts as received only after that: while its stream is there, or without its
received_uuid, it is a torn one, and is received again.
"""

import asyncio
import hashlib
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from fpvcar.runtime.files import sync
from fpvcar.runtime.pdeathsig import with_pdeathsig
from fpvstation.errors import StationError, require
from fpvstation.replicas.rdcp import SSH, Rdcp
from fpvstation.replicas.remote import CopyProgress, OnProgress, quiet
from fpvstation.snapshots.tools import BASE_NAME, SNAPSHOTS, file_system
from fpvstation.store.disk import locked, sha256_of

REMOTE = re.compile(r"(?P<host>[^/:]+):(?P<folder>.*)|:?(?P<local>.*)", re.DOTALL)
FULL = "full"
LIST = rf"""
cd -- "$1" || exit
[ "$(stat -f -c %T .)" = btrfs ] || {{ echo "$1 is not on btrfs" >&2; exit 1; }}
for name in {BASE_NAME}.*; do
    [ -d "$name" ] || continue
    echo "Snapshot: $name"
    btrfs subvolume show "$name" || exit
done
"""
"""Script that lists the snapshots in a folder."""
CLAIM = rf"""
if [ ! -e .fpvstation-snapshots ] && [ -z "$3" ]; then
    for name in {BASE_NAME}.*; do
        [ ! -e "$name" ] || {{ echo "$1 has snapshots already: name an empty folder" >&2; exit 1; }}
    done
    printf '%s\n' "$2" >.fpvstation-snapshots || exit
fi
mkdir -p .incoming || exit
printf 'Store: %s\n' "$(cat .fpvstation-snapshots)"
find .incoming -name '*.stream' -printf 'Stream: %f\n'
"""
"""Script that follows LIST at the other host: claims a new folder for a store."""
CLEAR = r'cd -- "$1/.incoming" && find . -type f ! -name "*$2*" -delete'
DELETE = r'cd -- "$1" && btrfs subvolume delete -c "$2" >&2'
RECEIVE = r"""
cd -- "$1" || exit
stream=.incoming/$2.stream
echo "$3  $stream" | sha256sum -c --quiet - >&2 || { rm -f "$stream"; exit 9; }
btrfs receive -q -f "$stream" . && btrfs filesystem sync . && echo "Snapshot: $2" &&
    btrfs subvolume show "$2"
"""
DAMAGED = 9
"""Exit status of RECEIVE if the stream differs from its SHA-256."""


class Subvolume(NamedTuple):
    """Snapshot in a folder. `received`: UUID of the sender's snapshot; "" if it was not received,
    or not completely."""

    uuid: str
    received: str

    @property
    def sent_as(self) -> str:
        """UUID that its receiver records."""
        return self.received or self.uuid


class Sent(NamedTuple):
    """Snapshot that was received at the other host."""

    name: str
    size: int
    """Bytes of its stream."""
    moved: int
    """Bytes that were moved for it now."""


def subvolumes_in(listing: str) -> dict[str, Subvolume]:
    """Return the snapshots of a listing by name, oldest first."""
    found = {}
    for text in listing.split("Snapshot: ")[1:]:
        name, _, fields = text.partition("\n")
        values = dict(re.findall(r"^\s*([\w ]+):[ \t]*(\S+)", fields, re.M))
        received = values.get("Received UUID", "-").strip("-")
        found[name] = Subvolume(values["UUID"], received)
    return dict(sorted(found.items()))


class Target:
    """Folder for snapshots on another host, or on another disk of this machine."""

    def __init__(self, target: str, ssh: str = SSH) -> None:
        match = REMOTE.fullmatch(target)
        assert match
        self._host, self._ssh, self.place = match["host"], ssh, target
        self._folder = match["folder"] or match["local"] or "."

    def run(self, script: str, *arguments: str) -> str:
        """Run a script there; its first argument is the folder. Return its output. Raises
        StationError, and DamagedStream."""
        argv = ["sh", "-c", script, "sh", self._folder, *arguments]
        if self._host:
            argv = [*shlex.split(self._ssh), "--", self._host, shlex.join(argv)]
        done = subprocess.run(
            with_pdeathsig(argv), stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        if done.returncode:
            lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
            kind = DamagedStream if done.returncode == DAMAGED else StationError
            raise kind(f"{self.place}: {lines[-1][:300]}")
        return done.stdout


class DamagedStream(StationError):
    """Raised when a stream differs from its SHA-256."""


class Sender:
    """Sender of one store's snapshots to one target."""

    def __init__(self, store: Path, store_id: str, target: Target, rdcp: Rdcp) -> None:
        self._store_id, self._target, self._rdcp = store_id, target, rdcp
        self._folder, self._local = store / SNAPSHOTS, Target(f":{store / SNAPSHOTS}")
        self._outgoing = self._folder / ".outgoing"
        key = hashlib.sha256(target.place.encode()).hexdigest()[:8]
        self._claimed = self._outgoing / f"{key}.claimed"
        """Present once the target was claimed; the marker is then expected there."""

    def run(self, on_progress: OnProgress = quiet) -> Iterator[Sent]:
        """Send the snapshots that are newer than the newest one there; yield each. Raises
        StationError, PlaceFault, OSError; a later run continues."""
        if file_system(self._folder) != "btrfs":
            raise StationError(f"{self._folder} is not on btrfs: syncoid sends snapshots of ZFS")
        require("btrfs", "btrfs-progs")
        self._outgoing.mkdir(exist_ok=True)
        with locked(self._outgoing / ".lock"):
            local = subvolumes_in(self._local.run(LIST))
            there = self._received()
            received = {subvolume.received for subvolume in there.values()}
            parent = max((name for name in local if local[name].sent_as in received), default="")
            for name in [name for name in local if name > parent]:
                if name in there:
                    raise StationError(
                        f"{self._target.place}/{name} is another snapshot of that name: "
                        "move it away"
                    )
                yield self._send(name, local[name], parent, on_progress)
                parent = name

    def _received(self) -> dict[str, Subvolume]:
        """Claim the target; return its snapshots by name. Delete the torn ones."""
        known = "known" if self._claimed.exists() else ""
        listing = self._target.run(LIST + CLAIM, self._store_id, known)
        stores = re.findall(r"^Store: (.*)$", listing, re.M)
        if stores != [self._store_id]:
            place = self._target.place
            if not stores[0]:
                raise StationError(f"{place}: .fpvstation-snapshots is missing: mount its disk")
            raise StationError(
                f"{place} has the snapshots of another store than {self._store_id}: "
                "give each store its own folder"
            )
        self._claimed.touch()
        unconfirmed = re.findall(rf"^Stream: ({BASE_NAME}\.[^.]+)", listing, re.M)
        there = subvolumes_in(listing)
        for name in [*there]:
            if not there[name].received or name in unconfirmed:
                self._target.run(DELETE, name)
                del there[name]
        return there

    def _send(self, name: str, subvolume: Subvolume, parent: str, on_progress: OnProgress) -> Sent:
        stream = self._stream(name, subvolume, parent)
        size, moved = stream.stat().st_size, 0

        def count(progress: CopyProgress) -> None:
            nonlocal moved
            moved = progress.moved
            on_progress(progress)

        self._target.run(CLEAR, f"{name}.stream")
        asyncio.run(self._rdcp.copy(stream, f".incoming/{name}.stream", count))
        sha256 = stream.name.split(".")[-2]
        try:
            listing = self._target.run(RECEIVE, name, sha256)
        except DamagedStream:
            stream.unlink()  # it may have been damaged here
            raise
        received = subvolumes_in(listing)[name].received
        if received != subvolume.sent_as:
            self._target.run(DELETE, name)
            raise StationError(
                f"{self._target.place}/{name}: received_uuid {received}, expected "
                f"{subvolume.sent_as}; deleted, the next run sends it again"
            )
        self._target.run(CLEAR, "/")
        stream.unlink()
        return Sent(name, size, moved)

    def _stream(self, name: str, subvolume: Subvolume, parent: str) -> Path:
        """Return the file with the stream of a snapshot: that of an earlier run, or a new one."""
        prefix = f"{name}.{subvolume.uuid[:8]}.{parent.partition('.')[2] or FULL}."
        for path in self._outgoing.glob(f"{BASE_NAME}.*"):
            if path.name.startswith(prefix) and path.suffix == ".stream":
                return path
            path.unlink()
        new = self._outgoing / f"{prefix}new"
        argv = ["btrfs", "send", "-q", "-f", str(new), *(["-p", parent] if parent else []), name]
        try:
            done = subprocess.run(
                with_pdeathsig(argv), cwd=self._folder, capture_output=True, text=True
            )
            if done.returncode:
                raise StationError(f"{shlex.join(argv)}: {done.stderr.strip()[-300:]}")
            sync(new)
        except BaseException:
            new.unlink(missing_ok=True)
            raise
        return new.rename(self._outgoing / f"{prefix}{sha256_of(new)}.stream")
