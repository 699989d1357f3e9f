"""Real file system that refuses some calls: FUSE, by the kernel's own messages.

    python -m testkit.recorder.odd_disk MOUNT FOLDER REFUSED

It shows FOLDER at MOUNT. The file REFUSED has a line for each failing call, with its error: "RENAME
ENOSYS"; it is read at each call. Needs root and /dev/fuse. Messages and their layout: linux/fuse.h,
version 7.31.
"""

import ctypes
import errno
import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from struct import calcsize, pack, unpack_from

CALLS = {
    1: "LOOKUP",
    2: "FORGET",
    3: "GETATTR",
    4: "SETATTR",
    9: "MKDIR",
    10: "UNLINK",
    11: "RMDIR",
    12: "RENAME",
    13: "LINK",
    14: "OPEN",
    15: "READ",
    16: "WRITE",
    17: "STATFS",
    18: "RELEASE",
    20: "FSYNC",
    25: "FLUSH",
    26: "INIT",
    27: "OPENDIR",
    28: "READDIR",
    29: "RELEASEDIR",
    30: "FSYNCDIR",
    35: "CREATE",
    36: "INTERRUPT",
    42: "BATCH_FORGET",
    45: "RENAME2",
}
UNANSWERED = ("FORGET", "BATCH_FORGET", "INTERRUPT")
HEAD, ANSWER = "=IIQQIIIHH", "=IiQ"
SIZE_MOST = 128 * 1024
SET_MODE, SET_SIZE = 1, 8
NO_FUSE = 77
libc = ctypes.CDLL(None, use_errno=True)


class NoFuse(Exception):
    """Missing support for FUSE on this machine, or in this container."""


class OddDisk:
    """File system that answers the kernel until it is unmounted."""

    def __init__(self, fuse: int, folder: Path, refused: Path) -> None:
        self._fuse, self._folder, self._refused = fuse, folder, refused
        self._paths = {1: folder}
        self._ids, self._next = {folder: 1}, 2

    def serve(self) -> None:
        """Answer one message after the other."""
        while True:
            try:
                said = os.read(self._fuse, SIZE_MOST + 4096)
            except OSError as fault:
                if fault.errno == errno.ENODEV:
                    return
                raise
            _, number, unique, node, *_ = unpack_from(HEAD, said)
            call, body = CALLS.get(number, ""), said[calcsize(HEAD) :]
            if call in UNANSWERED:
                continue
            code, answer = 0, b""
            try:
                self._refuse(call)
                act = getattr(self, f"_{call.lower()}", None)
                if act is None:
                    raise OSError(errno.ENOSYS, call)
                answer = act(self._paths[node], body) if node else act(Path(), body)
            except OSError as fault:
                code = -(fault.errno or errno.EIO)
            size = calcsize(ANSWER) + len(answer)
            os.write(self._fuse, pack(ANSWER, size, code, unique) + answer)

    def _refuse(self, call: str) -> None:
        for line in self._refused.read_text().splitlines():
            name, _, fault = line.partition(" ")
            if name == call:
                raise OSError(getattr(errno, fault), call)

    # --- answers ---

    def _attributes(self, path: Path) -> bytes:
        about = path.lstat()
        times = (about.st_atime_ns, about.st_mtime_ns, about.st_ctime_ns)
        return pack(
            "=6Q10I",
            about.st_ino,
            about.st_size,
            about.st_blocks,
            *(one // 10**9 for one in times),
            *(one % 10**9 for one in times),
            about.st_mode,
            about.st_nlink,
            about.st_uid,
            about.st_gid,
            0,
            4096,
            0,
        )

    def _entry(self, path: Path) -> bytes:
        attributes = self._attributes(path)
        node = self._ids.setdefault(path, self._next)
        self._next += node == self._next
        self._paths[node] = path
        return pack("=4Q2I", node, 0, 0, 0, 0, 0) + attributes

    def _init(self, path: Path, body: bytes) -> bytes:
        _, _, ahead, _ = unpack_from("=4I", body)
        return pack("=4I2H2I2HI28x", 7, 31, ahead, 0, 4, 3, SIZE_MOST, 1, 0, 0, 0)

    def _lookup(self, path: Path, body: bytes) -> bytes:
        return self._entry(path / _names(body)[0])

    def _getattr(self, path: Path, body: bytes) -> bytes:
        return pack("=QII", 0, 0, 0) + self._attributes(path)

    def _setattr(self, path: Path, body: bytes) -> bytes:
        wanted, _, _, size = unpack_from("=IIQQ", body)
        if wanted & SET_MODE:
            path.chmod(unpack_from("=I", body, 68)[0] & 0o7777)
        if wanted & SET_SIZE:
            os.truncate(path, size)
        return self._getattr(path, body)

    def _mkdir(self, path: Path, body: bytes) -> bytes:
        made = path / _names(body[8:])[0]
        made.mkdir()
        return self._entry(made)

    def _unlink(self, path: Path, body: bytes) -> bytes:
        (path / _names(body)[0]).unlink()
        return b""

    def _rmdir(self, path: Path, body: bytes) -> bytes:
        (path / _names(body)[0]).rmdir()
        return b""

    def _rename(self, path: Path, body: bytes, head: int = 8) -> bytes:
        (to,) = unpack_from("=Q", body)
        old, new = _names(body[head:])
        was, now = path / old, self._paths[to] / new
        was.rename(now)
        node = self._ids.pop(was)
        self._paths[node], self._ids[now] = now, node
        return b""

    def _rename2(self, path: Path, body: bytes) -> bytes:
        return self._rename(path, body, 16)

    def _link(self, path: Path, body: bytes) -> bytes:
        (old,) = unpack_from("=Q", body)
        made = path / _names(body[8:])[0]
        os.link(self._paths[old], made)
        return self._entry(made)

    def _open(self, path: Path, body: bytes) -> bytes:
        return pack("=QII", 0, 0, 0)

    def _create(self, path: Path, body: bytes) -> bytes:
        _, mode, _, _ = unpack_from("=4I", body)
        made = path / _names(body[16:])[0]
        os.close(os.open(made, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode & 0o7777))
        return self._entry(made) + pack("=QII", 0, 0, 0)

    def _read(self, path: Path, body: bytes) -> bytes:
        _, at, size = unpack_from("=QQI", body)
        with path.open("rb") as file:
            return os.pread(file.fileno(), size, at)

    def _write(self, path: Path, body: bytes) -> bytes:
        _, at, size = unpack_from("=QQI", body)
        with path.open("r+b") as file:
            done = os.pwrite(file.fileno(), body[40 : 40 + size], at)
        return pack("=II", done, 0)

    def _readdir(self, path: Path, body: bytes) -> bytes:
        _, at, most = unpack_from("=QQI", body)
        made = b""
        for number, one in enumerate(sorted(path.iterdir())):
            name, kind = one.name.encode(), stat.S_IFMT(one.lstat().st_mode) >> 12
            entry = pack("=QQII", number + 1, number + 1, len(name), kind) + name
            entry += bytes(-len(entry) % 8)
            if number >= at and len(made) + len(entry) <= most:
                made += entry
        return made

    def _statfs(self, path: Path, body: bytes) -> bytes:
        disk = os.statvfs(path)
        return pack(
            "=5Q4I24x",
            disk.f_blocks,
            disk.f_bfree,
            disk.f_bavail,
            disk.f_files,
            disk.f_ffree,
            disk.f_bsize,
            disk.f_namemax,
            disk.f_frsize,
            0,
        )

    def _done(self, path: Path, body: bytes) -> bytes:
        return b""

    _opendir = _open
    _release = _releasedir = _flush = _fsync = _fsyncdir = _done


def _names(text: bytes) -> list[str]:
    return [os.fsdecode(one) for one in text.split(b"\0")[:-1]]


def mount(at: Path, folder: Path, refused: Path) -> None:
    """Serve the mount until it is unmounted."""
    try:
        fuse = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        sys.exit(NO_FUSE)
    options = f"fd={fuse},rootmode=40000,user_id=0,group_id=0".encode()
    if libc.mount(b"odd", bytes(at), b"fuse", 0, options):
        sys.exit(NO_FUSE)
    OddDisk(fuse, folder, refused).serve()


class Mounted:
    """Handle of a mounted disk for tests: its folder, and its refused calls."""

    def __init__(self, home: Path) -> None:
        self._mount, self._folder = home / "odd", home / "below"
        self._refused, self._count = home / "refused", 0
        self._mount.mkdir()
        self._folder.mkdir()
        self.anew()

    def anew(self) -> None:
        """Switch to an empty folder of the disk, without refused calls."""
        self._count += 1
        self.root, self.below = (one / f"{self._count}" for one in (self._mount, self._folder))
        self.below.mkdir()
        self.refuse()

    def refuse(self, *calls: str) -> None:
        """Refuse exactly these calls from now on."""
        new = self._refused.with_suffix(".new")
        new.write_text("\n".join(calls))
        new.rename(self._refused)

    @contextmanager
    def served(self) -> Iterator[None]:
        """Serve from a process of its own: callers wait in the kernel."""
        argv = [
            sys.executable,
            "-m",
            "testkit.recorder.odd_disk",
            str(self._mount),
            str(self._folder),
            str(self._refused),
        ]
        self.process = process = subprocess.Popen(argv)
        try:
            until = time.monotonic() + 30.0
            while not self._mount.is_mount():
                if process.poll() == NO_FUSE:
                    raise NoFuse
                assert process.poll() is None and time.monotonic() < until
                time.sleep(0.02)
            yield
        finally:
            libc.umount2(bytes(self._mount), 2)  # MNT_DETACH
            process.kill()
            process.wait()


if __name__ == "__main__":
    mount(*map(Path, sys.argv[1:]))
