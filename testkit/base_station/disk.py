"""Disk that forgets unsynced data, fills up, and is killed at any call."""

import errno
import hashlib
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from random import Random

from fpvcar.library.checksums import Checksummer
from fpvcar.recordings import names
from fpvcar.wire.station import Sums
from fpvstation.store.sums_file import SUMS_FILE


class Killed(BaseException):
    """End of the process, in any state of its work."""


def hash_of(data: bytes | bytearray) -> str:
    """Return the SHA-256, in hex."""
    return hashlib.sha256(data).hexdigest()


def sums_of(data: bytes) -> Sums:
    """Return the checksums of these bytes."""
    summing = Checksummer()
    summing.add(data)
    return summing.sums()


@dataclass
class Inode:
    """File in its visible state, and in its state after a power cut."""

    data: bytearray = field(default_factory=bytearray)
    synced: bytes = b""
    lost: set[int] = field(default_factory=set)
    """Places of bytes that a failed sync lost and the next one leaves out."""
    changed_s: float = 0.0


class FakeDisk:
    """Disk that forgets unsynced data, fills up, and is killed at any call."""

    def __init__(self, random: Random) -> None:
        self.names_now: dict[str, Inode] = {}
        self.names_synced: dict[str, Inode] = {}
        self._unmounted: dict[str, Inode] | None = None
        self.kill = self.full = 0.0
        """Probabilities that a call ends the process, or finds no room."""
        self.lost_by_sync = 0
        """Number of syncs that fail. The lost data is not written by the next one: Linux takes
        it for written."""
        self._random = random
        self.utc_s: Callable[[], float] = lambda: 0.0

    def _fault(self) -> None:
        if self._random.random() < self.kill:
            raise Killed
        if self._random.random() < self.full:
            raise OSError(errno.ENOSPC, "No space left on device")

    @property
    def mounted(self) -> bool:
        """Return True if the disk is mounted."""
        return self._unmounted is None

    def unmount(self) -> None:
        """Show programs the empty folder below the disk."""
        if self._unmounted is None:
            self._unmounted, self.names_now = self.names_now, {}

    def mount(self) -> None:
        """Mount the disk again, with all its files."""
        if self._unmounted is not None:
            assert not self.names_now, "the folder below the disk got bytes"
            self.names_now, self._unmounted = self._unmounted, None

    def cut_power(self) -> None:
        """Keep, lose, or halve all unsynced data."""
        self.mount()
        for path, inode in list(self.names_now.items()):
            if self.names_synced.get(path) is not inode and self._random.random() < 0.5:
                self.names_synced[path] = inode
        self.names_now = dict(self.names_synced)
        for inode in self.names_now.values():
            if bytes(inode.data) != inode.synced:
                left = bytearray(inode.data[: self._random.randint(0, len(inode.data))])
                if left and self._random.random() < 0.5:
                    left[self._random.randrange(len(left))] = 0
                inode.data = self._random.choice([bytearray(inode.synced), left])
            inode.synced, inode.lost = bytes(inode.data), set()

    def durable(self, sha256: str) -> bool:
        """Return True if a published file of these bytes, and its line, would survive a power
        cut."""
        now = self.names_now if self._unmounted is None else self._unmounted
        return any(
            hash_of(inode.synced) == sha256 and sha256.encode() in self._sums_beside(path)
            for path, inode in self.names_synced.items()
            if published(path) and now.get(path) is inode
        )

    def holds(self, sha256: str) -> bool:
        """Return True if a published file of these bytes would survive a power cut. Its line may
        be damaged."""
        now = self.names_now if self._unmounted is None else self._unmounted
        return any(
            hash_of(inode.synced) == sha256
            for path, inode in self.names_synced.items()
            if published(path) and now.get(path) is inode
        )

    def damage(self, path: str, data: bytes | None) -> None:
        """Change a file on the medium, or lose it."""
        if data is None:
            del self.names_now[path]
            self.names_synced.pop(path, None)
        else:
            inode = Inode(bytearray(data), data, changed_s=self.changed_s(path))
            self.names_now[path] = self.names_synced[path] = inode

    def _sums_beside(self, path: str) -> bytes:
        beside = f"{path.rpartition('/')[0]}/{SUMS_FILE}"
        return self.names_synced.get(beside, Inode()).synced

    # --- Disk ---

    def read(self, path: str) -> bytes:
        return bytes(self._inode(path).data)

    def size(self, path: str) -> int | None:
        inode = self.names_now.get(path)
        return None if inode is None else len(inode.data)

    def changed_s(self, path: str) -> float:
        inode = self.names_now.get(path)
        return inode.changed_s if inode else 0.0

    def sums(self, path: str) -> Sums:
        self._fault()
        return sums_of(bytes(self._inode(path).data))

    def sha256(self, path: str) -> str:
        return self.sums(path).sha256

    def write_at(self, path: str, at: int, data: bytes) -> None:
        inode = self.names_now.setdefault(path, Inode())
        inode.changed_s = self.utc_s()
        inode.data.extend(bytes(max(0, at - len(inode.data))))
        half = self._random.randint(0, len(data))
        inode.data[at : at + half] = data[:half]
        inode.lost -= set(range(at, at + half))
        self._fault()
        inode.data[at : at + len(data)] = data
        inode.lost -= set(range(at, at + len(data)))

    def rewrite(self, path: str) -> None:
        data = bytes(self._inode(path).data)
        self.write_at(path, 0, data)

    def sync(self, path: str) -> None:
        self._fault()
        inode = self._inode(path)
        if self.lost_by_sync:
            self.lost_by_sync -= 1
            inode.lost |= {
                at
                for at, byte in enumerate(inode.data)
                if inode.synced[at : at + 1] != bytes([byte])
            }
            raise OSError(errno.EIO, "Input/output error", path)
        synced = inode.synced.ljust(len(inode.data), b"?")
        inode.synced = bytes(
            synced[at] if at in inode.lost else byte for at, byte in enumerate(inode.data)
        )
        self._fault()
        self.names_synced[path] = inode

    def publish(self, old: str, new: str) -> None:
        self._fault()
        if new in self.names_now:
            raise FileExistsError(errno.EEXIST, "File exists", new)
        self.names_now[new] = self._inode(old)
        self._fault()
        del self.names_now[old]

    def replace(self, path: str, data: bytes) -> None:
        self._fault()
        inode = Inode(bytearray(data), data)
        self.names_now[path] = inode
        self._fault()
        self.names_synced[path] = inode

    def remove(self, path: str) -> None:
        self._fault()
        self.names_now.pop(path, None)

    def prune(self, path: str) -> None:
        pass

    def names(self, path: str) -> list[str]:
        head = f"{path}/" if path else ""
        inside = [one for one in self.names_now if one.startswith(head)]
        return sorted({one[len(head) :].partition("/")[0] for one in inside})

    def folders(self, path: str) -> list[str]:
        head = f"{path}/" if path else ""
        inside = [one[len(head) :] for one in self.names_now if one.startswith(head)]
        return sorted({one.partition("/")[0] for one in inside if "/" in one})

    def changing(self) -> AbstractContextManager[None]:
        return nullcontext()

    def _inode(self, path: str) -> Inode:
        try:
            return self.names_now[path]
        except KeyError:
            raise FileNotFoundError(errno.ENOENT, "No such file", path) from None


def published(path: str) -> bool:
    """Return True if this is a segment in its place."""
    return not path.startswith(".") and path.endswith(names.SEALED)
